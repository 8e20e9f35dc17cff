"""Running a command of a page as a reader would, and holding what it prints beside what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import LEFT_OUT, ROOT, Block

#: Wall-clock times and counts of such, which differ from run to run.
_VOLATILE = re.compile(r"\b(after|in|took) [\d.,]+ (?:s|ms|µs|min)\b")
_PLACE = {"examples": ROOT / "examples"}


def prepare(folder: Path) -> None:
    """What a reader who stands in a checkout has beside the pages."""
    for name, path in _PLACE.items():
        if path.exists():
            (folder / name).symlink_to(path)


def run(command: str, folder: Path) -> tuple[int, str]:
    """Exit status and output (both streams) of a shell command in that folder, 110 columns wide, without colour."""
    beside = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{command}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=600,
    )
    return done.returncode, "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def write_file(block: Block, folder: Path) -> None:
    target = folder / block.file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(block.body, encoding="utf-8")


def same(shown: str, printed: str) -> bool:
    """Does the page show what was printed, but for wall-clock times and the lines that it leaves out?"""
    parts = _steady(shown).split(f"{LEFT_OUT}\n")
    pattern = "(?:.*\n)*?".join(re.escape(part) for part in parts)
    return re.fullmatch(pattern, _steady(printed)) is not None


def as_shown(shown: str, printed: str) -> str:
    """What a page should show of an output: as many lines before and after those left out as it shows now."""
    if f"{LEFT_OUT}\n" not in shown:
        return printed
    head, tail = (part.count("\n") for part in shown.split(f"{LEFT_OUT}\n", 1))
    lines = printed.splitlines(keepends=True)
    return "".join([*lines[:head], f"{LEFT_OUT}\n", *lines[max(head, len(lines) - tail) :]])


def _steady(text: str) -> str:
    return _VOLATILE.sub(r"\1 some time", text)
