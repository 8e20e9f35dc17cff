"""Running an agent: any command that starts MCP servers from a configuration, as the common agents do.

The command finds the path of that configuration in the variable `ROOFLANG_MCP_CONFIG` of its environment; the server
that it starts from there serves one session, and leaves a report when the agent goes.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from rooflang.errors import ValueRangeError

#: Where an agent finds the path of its configuration.
VARIABLE = "ROOFLANG_MCP_CONFIG"

#: Names of numbers that an agent may state about itself, in a JSON object on a line of its standard error.
STATED = ("input_tokens", "output_tokens", "tokens", "cost_usd")

#: Seconds that the server has to leave its report once the agent has ended.
_GRACE_S = 20.0


def drive(command: str, server: Sequence[str], *, time_limit_s: float | None = None) -> dict[str, Any]:
    """Run an agent until it ends, or the limit ends it. `server` is the command of its server, to which `--json FILE`
    is added. Returns the report of the last server that it started (empty if it started none), with its exit status,
    what ended it and what it stated. Raises `ValueRangeError` for a command that cannot be run."""
    words = _words(command)
    with tempfile.TemporaryDirectory() as scratch:
        report, config = Path(scratch) / "report.json", Path(scratch) / "mcp.json"
        entry = {"command": server[0], "args": [*server[1:], "--json", str(report)]}
        config.write_text(json.dumps({"mcpServers": {"rooflang": entry}}), encoding="utf-8")
        ended_by, status, said = _run(words, os.environ | {VARIABLE: str(config)}, time_limit_s)
        told = _report(report)
    return {"command": command, "exit_status": status, "ended_by": ended_by, "stated": _stated(said), **told}


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueRangeError(f"{command!r}: {error}", where="--run", expected="a command") from error
    if not words:
        raise ValueRangeError("an empty command", where="--run", expected="a command")
    return words


def _run(words: Sequence[str], environment: dict[str, str], limit_s: float | None) -> tuple[str, int, list[bytes]]:
    try:
        agent = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except OSError as error:
        what = f"cannot run {words[0]!r}: {error.strerror}"
        raise ValueRangeError(what, where="--run", expected="a command") from error
    said: list[bytes] = []
    assert agent.stderr is not None
    listener = threading.Thread(target=_listen, args=(agent.stderr, said), daemon=True)
    listener.start()
    ended_by = "itself"
    try:
        agent.wait(limit_s)
    except subprocess.TimeoutExpired:
        ended_by = "time limit"
    except KeyboardInterrupt:
        ended_by = "interrupted"
    agent.kill()
    status = agent.wait()
    listener.join(1.0)
    return ended_by, status, said


def _listen(stream: IO[bytes], said: list[bytes]) -> None:
    """Pass on what the agent says on its standard error, and keep it."""
    for line in stream:
        said.append(line)
        sys.stderr.write(line.decode("utf-8", "replace"))
        sys.stderr.flush()


def _report(path: Path) -> dict[str, Any]:
    """What the server leaves, which it does when it sees that its agent is gone: as long as there is its marker, it has
    not done all."""
    marker, end_s = path.with_suffix(".started"), time.monotonic() + _GRACE_S
    while marker.exists() and time.monotonic() < end_s:
        time.sleep(0.05)
    if not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _stated(said: Sequence[bytes]) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in said:
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if isinstance(data, dict):
            found.update({name: data[name] for name in STATED if isinstance(data.get(name), (int, float))})
    return found
