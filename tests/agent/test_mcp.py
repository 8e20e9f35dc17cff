"""The server with the SDK's own client over stdio; garbage on its input; an agent that is run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rooflang.cli import program

pytest.importorskip("mcp.server.mcpserver", reason="the extra 'agent' is not installed")

HERE = Path(__file__).parent
GRAPH = str(HERE / "mcp_graph.rl")
WORDS = ["-m", "rooflang", "agent", "--mcp", GRAPH, "--hardware", "b300", "--gpus", "8", "--budget", "5"]


def talk(do: Callable[[Any], Awaitable[None]], *more: str) -> None:
    """Run a conversation with a server in a process of its own."""
    import anyio
    from mcp import Client, StdioServerParameters

    async def main() -> None:
        async with Client(StdioServerParameters(command=sys.executable, args=[*WORDS, *more])) as client:
            with anyio.fail_after(120):
                await do(client)

    anyio.run(main)


async def told(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    data: dict[str, Any] = result.structured_content
    return data


async def refused(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    data: dict[str, Any] = json.loads(result.content[0].text)
    return data


def test_a_session_over_stdio(tmp_path: Path) -> None:
    async def do(client: Any) -> None:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"describe", "graph", "actions", "check", "apply", "simulate", "explain", "undo", "branch"} <= tools
        whole = await told(client, "simulate")
        assert (await told(client, "actions", filter="split_kernel up", size=3))["actions"]
        assert (await told(client, "apply", lines="tensor_parallel axis=x"))["taken"] > 1
        split = await told(client, "simulate")
        assert split["step_s"] < whole["step_s"]
        error = await refused(client, "apply", lines="merge_gather_broadcast up axis=x")
        assert error["error"] == "refused" and error["refusal"]
        await told(client, "undo", steps=1)
        assert (await told(client, "explain"))["lines"]
        journal = await client.read_resource("rooflang://journal")
        assert "tensor_parallel axis=x" in journal.contents[0].text
        law = await client.read_resource("rooflang://primitives/split_kernel")
        assert "before" in law.contents[0].text

    journal, report = tmp_path / "kept.journal", tmp_path / "report.json"
    talk(do, "--journal", str(journal), "--json", str(report))
    assert "tensor_parallel" in journal.read_text(encoding="utf-8")
    data = json.loads(report.read_text(encoding="utf-8"))
    assert data["simulations"] == 3 and data["refused"] == 1  # `explain` tells the time of a plan that is new, too
    assert data["best"]["certificate"]["evaluated"]["verdict"] == "equal"
    outcome = CliRunner().invoke(program, ["agent", "replay", str(journal), "--model", GRAPH])
    assert outcome.exit_code == 0, outcome.output


def test_what_an_agent_says_wrong_is_answered_and_the_session_goes_on() -> None:
    async def do(client: Any) -> None:
        await told(client, "apply", lines="split_kernel up dim=ffn axis=x")
        for lines in (
            "",
            "nonsense",
            "split_kernel",
            "split_kernel up dim=x'",
            "\x00\x07",
            "x" * 10_000_000,
            "🙂 " * 99,
        ):
            assert (await refused(client, "apply", lines=lines))["error"]
        for tool, arguments in (
            ("apply", {"lines": 5}),
            ("apply", {}),
            ("apply", {"lines": None}),
            ("undo", {"steps": "many"}),
            ("actions", {"page": [1]}),
            ("no such tool", {}),
        ):
            try:
                assert (await client.call_tool(tool, arguments)).is_error
            except Exception as error:  # the protocol's own error, which the client raises
                assert type(error).__name__ == "MCPError"
        with pytest.raises(Exception, match=r"(?i)unknown|not found|no such"):
            await client.read_resource("rooflang://secrets")
        assert (await refused(client, "undo", steps=-1))["expected"]
        assert (await told(client, "describe"))["actions_taken"] == 1

    talk(do)


def test_calls_at_once_are_answered_one_by_one_and_keep_to_the_budget(tmp_path: Path) -> None:
    async def do(client: Any) -> None:
        import anyio

        answers: list[bool] = []

        async def ask(tool: str, arguments: dict[str, Any]) -> None:
            answers.append((await client.call_tool(tool, arguments)).is_error)

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                lines = f"split_kernel {('up dim=ffn', 'down dim=ffn')[number % 2]} axis=x"
                tasks.start_soon(ask, "apply", {"lines": lines})
                tasks.start_soon(ask, "simulate", {})
        left = await told(client, "describe")
        assert left["actions_taken"] == left["counts"]["accepted"] == 12
        assert left["simulations_left"] >= 0
        assert len(answers) == 24

    talk(do)


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_the_server_and_leaves_the_report(tmp_path: Path, how: str) -> None:
    report = tmp_path / "report.json"
    server = subprocess.Popen(
        [sys.executable, *WORDS, "--json", str(report)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end_s = time.monotonic() + 300.0
    while not report.with_suffix(".started").exists() and time.monotonic() < end_s:
        time.sleep(0.05)
    time.sleep(1.0)  # it says that it has started just before it listens
    server.send_signal(getattr(signal, how))
    assert server.wait(30.0) == 130
    assert json.loads(report.read_text(encoding="utf-8"))["best"] is None
    assert not report.with_suffix(".started").exists()


def test_lines_that_are_no_messages_leave_the_server_alive() -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    ask = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "describe", "arguments": {}}}
    garbage = [
        b"{", b"not json", b"[]", b"null", b'{"jsonrpc": "1.0"}', b"\xff\xfe\x00", b'{"id": {}}', b"[" * 5000, b"",
        b'{"jsonrpc": "2.0", "id": 3, "method": "no/such"}',
        b'{"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": 5}',
    ]  # fmt: skip
    lines = [json.dumps(hello).encode(), json.dumps(ready).encode(), *garbage, json.dumps(ask).encode()]
    child = subprocess.Popen(
        [sys.executable, *WORDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(b"\n".join(lines) + b"\n")
    child.stdin.flush()
    answers = {}
    for line in child.stdout:
        answer = json.loads(line)
        answers[answer.get("id")] = answer
        if answer.get("id") == 7:
            break
    child.stdin.close()
    child.stdout.close()
    assert child.wait(20) == 0
    assert child.stderr is not None
    assert b"Traceback" not in child.stderr.read()
    child.stderr.close()
    assert answers[7]["result"]["structuredContent"]["gpus"] == 8


def run(*more: str) -> Any:
    words = ["agent", "--run", f"{sys.executable} {HERE / 'mcp_agent.py'}", GRAPH, "--hardware", "b300", "--gpus", "8"]
    return CliRunner().invoke(program, [*words, *more], catch_exceptions=False)


def test_an_agent_is_run_and_reported(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    outcome = run("--json", str(target))
    assert outcome.exit_code == 0, outcome.output
    data = json.loads(target.read_text(encoding="utf-8"))
    assert (data["accepted"], data["refused"], data["simulations"]) == (2, 1, 2)
    assert data["stated"] == {"tokens": 42}
    assert data["exit_status"] == 0
    assert "ffn→8" in data["best"]["plan"]
    assert "2 accepted, 1 refused" in outcome.stdout


def test_an_agent_that_cannot_be_run_or_does_not_end(tmp_path: Path) -> None:
    words = ["agent", "run", GRAPH, "--hardware", "b300", "--gpus", "8", "--run"]
    outcome = CliRunner().invoke(program, [*words, "no-such-command-anywhere"], catch_exceptions=False)
    assert outcome.exit_code == 2
    assert "cannot run" in outcome.stderr
    outcome = CliRunner().invoke(program, [*words, "sleep 60", "--time-limit", "1"], catch_exceptions=False)
    assert outcome.exit_code == 0
    assert "ended by time limit" in outcome.stdout
