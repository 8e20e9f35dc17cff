"""Where JSON goes: a file that is complete or not there at all, or standard output."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rooflang.errors import RooflangError, ValueRangeError

STDOUT = "-"
_EXPECTED = "a file in a folder that can be written, or - for standard output"


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
        # A link is followed, so that its target is replaced and not the link.
        path = Path(os.path.realpath(text))
        problem = _problem(path) if text else "the name is empty"
        if problem:
            raise ValueRangeError(f"cannot write {text!r}: {problem}", where=where, expected=_EXPECTED)
        return cls(text=text, path=path)

    def write(self, data: Mapping[str, Any]) -> None:
        """Write the data as JSON; a reader sees the old file or the whole new one. May raise `RooflangError`."""
        if self.path is None:  # in ASCII, since nobody knows the encoding of what reads it
            click.echo(json.dumps(data, indent=2, allow_nan=False))
            return
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            _replace(self.path, text)
        except OSError as error:
            raise RooflangError(
                f"cannot write {self.text!r}: {error.strerror}", where="--json", expected=_EXPECTED
            ) from error


def _problem(path: Path) -> str:
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"there is no folder {str(path.parent)!r}"
    if not os.access(path if path.exists() and not path.is_file() else path.parent, os.W_OK):
        return "permission denied"
    return ""


def _replace(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():  # a pipe or a device, which must not be replaced by a file
        path.write_text(text, encoding="utf-8")
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
