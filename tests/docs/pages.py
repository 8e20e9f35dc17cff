"""The commands that README.md and the pages of docs/ show, and what they show of the output.

In a `sh` block every line is a command. In a `console` block, what follows `$ ` is one (`> ` goes on with it) and the
other lines are what it prints; a line that is only `…` stands for lines left out. A page is run from top to bottom in
one empty folder. Above a block may stand

    <!-- not run: WHY -->      it is left alone
    <!-- file: NAME -->        it is the text of a file that later commands read
    <!-- slow -->              anywhere in a page: its commands are run with the slow tests
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = "…"

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>not run|file): (?P<value>.+?) -->\n+)?^```(?P<lang>\w*)\n(?P<body>.*?)^```$", re.M | re.S
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A command of a page, the line that it stands on, the output beside it, or None, and where in the page that begins
    and ends."""

    line: int
    command: str
    output: str | None = None
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: where its body begins and ends in the page, the file it is the text of, its commands."""

    start: int
    end: int
    file: str = ""
    body: str = ""
    commands: tuple[Shown, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page: its path, its text, and those of its blocks that something is done with."""

    path: Path
    text: str
    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def slow(self) -> bool:
        return "<!-- slow -->" in self.text

    @classmethod
    def read(cls, path: Path) -> Page:
        text = path.read_text(encoding="utf-8")
        return cls(path=path, text=text, blocks=tuple(_blocks(text)))


def all_pages() -> list[Page]:
    """README.md and every page of docs/ in which there is something to run."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in map(Page.read, paths) if any(block.commands for block in page.blocks)]


def _blocks(text: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(text):
        start, end, body = found.start("body"), found.end("body"), found["body"]
        line = text.count("\n", 0, start) + 1
        if found["note"] == "file":
            yield Block(start=start, end=end, file=found["value"], body=body)
        elif found["note"] is None and found["lang"] == "sh":
            yield Block(start=start, end=end, commands=tuple(_script(body, line)))
        elif found["note"] is None and found["lang"] == "console":
            yield Block(start=start, end=end, commands=tuple(_session(body, line, start)))


def _script(body: str, line: int) -> Iterator[Shown]:
    for found in re.finditer(r"(?:.*\\\n)*.*\n", body):
        command = found[0].rstrip("\n")
        if command.strip() and not command.startswith("#"):
            yield Shown(line=line + body.count("\n", 0, found.start()), command=command)


def _session(body: str, line: int, start: int) -> Iterator[Shown]:
    for found in re.finditer(r"^\$ (?P<typed>.*\n(?:> .*\n)*)(?P<output>(?:(?!\$ ).*\n)*)", body, flags=re.M):
        yield Shown(
            line=line + body.count("\n", 0, found.start()),
            command=found["typed"].replace("\n> ", "\n").rstrip("\n"),
            output=found["output"],
            span=(start + found.start("output"), start + found.end("output")),
        )
