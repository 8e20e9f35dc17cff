"""Where results go: a file that is complete or not there at all, or standard output."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rooflang.errors import RooflangError, ValueRangeError

STDOUT = "-"
_FILE = "a file in a folder that can be written"
_EXPECTED = f"{_FILE}, or - for standard output"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonTarget:
    """A checked destination. `path` is None for standard output."""

    text: str
    path: Path | None

    @classmethod
    def of(cls, text: str, *, where: str) -> JsonTarget:
        """Raises `ValueRangeError`, before any work is done, for a path that could not be written."""
        if text == STDOUT:
            return cls(text=text, path=None)
        return cls(text=text, path=writable(text, where=where, expected=_EXPECTED))

    def write(self, data: Mapping[str, Any]) -> None:
        """Write the data as JSON; a reader sees the old file or the whole new one. May raise `RooflangError`."""
        if self.path is None:  # in ASCII, since nobody knows the encoding of what reads it
            click.echo(json.dumps(data, indent=2, allow_nan=False))
            return
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        with replacing(self.path, where="--json") as path:
            path.write_text(text, encoding="utf-8")


def tell(target: JsonTarget | None, data: Callable[[], Mapping[str, Any]], text: Callable[[], str]) -> None:
    """Print the text unless standard output has the data, and write the data where `--json` says: the text first, so
    that a disk that is full by then does not lose what was computed."""
    if target is None or target.path is not None:
        click.echo(text())
    if target is not None:
        target.write(data())


def writable(text: str, *, where: str, expected: str = _FILE) -> Path:
    """The path of a file to write, links followed, so that the target of one is replaced and not the link. Raises
    `ValueRangeError` for a path that could not be written."""
    path = Path(os.path.realpath(text))
    problem = _problem(path) if text else "the name is empty"
    if problem:
        raise ValueRangeError(f"cannot write {text!r}: {problem}", where=where, expected=expected)
    return path


def apart(*, read: Mapping[str, Path], written: Mapping[str, Path | None]) -> None:
    """Raises `ValueRangeError` for a file to write that is read as well, or written twice: what was in it would be
    lost. Both map what names a file to its path, links followed; None is standard output."""
    taken = [(name, path) for name, path in (*read.items(), *written.items()) if path is None or not _device(path)]
    for name, path in written.items():
        other = next((other for other, each in taken if other != name and each == path), None)
        if other is not None:
            file = STDOUT if path is None else path.name
            raise ValueRangeError(f"{file!r} is taken by {other}", where=name, expected="a file of its own")


def _device(path: Path) -> bool:
    """A pipe or a device, which is not replaced by a file."""
    return path.exists() and not path.is_file()


@contextmanager
def replacing(path: Path, *, where: str) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` when all is written: a reader sees the old file or the
    whole new one. Raises `RooflangError` for what the system refuses."""
    try:
        if _device(path):
            yield path
            return
        partial = path.with_name(f".{os.getpid()}.partial.{path.name}")  # its suffix says how it is written
        try:
            yield partial
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise RooflangError(f"cannot write {str(path)!r}: {error.strerror}", where=where, expected=_FILE) from error


def _problem(path: Path) -> str:
    if os.path.isdir(path):  # unlike the method, false for a name that is too long
        return "it is a folder"
    if not os.path.isdir(path.parent):
        return f"there is no folder {str(path.parent)!r}"
    if not os.access(path if _device(path) else path.parent, os.W_OK):
        return "permission denied"
    return ""
