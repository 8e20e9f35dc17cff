"""Defaults of one's own: a TOML file with a table for each command, whose keys are the long names of its options."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from rooflang.errors import RooflangError, UnknownNameError

#: Names the file, in place of `--config`.
VARIABLE = "ROOFLANG_CONFIG"


def usual_places() -> tuple[Path, ...]:
    """Where a file is looked for when none is named; the first that is there counts."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path("rooflang.toml"), Path(home) / "rooflang" / "config.toml"


def settings_file(named: str | None) -> Path | None:
    """The file in use. Raises `RooflangError` if one is named that is not there."""
    if named:
        path = Path(named)
        if not path.is_file():
            raise RooflangError(f"there is no file {named!r}", where=f"--config or {VARIABLE}")
        return path
    return next((path for path in usual_places() if path.is_file()), None)


def read_settings(path: Path) -> dict[str, dict[str, Any]]:
    """The tables of a file. Raises `RooflangError` for what is no TOML, or no table."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RooflangError(f"cannot read it: {error}", where=str(path), expected="a TOML file") from error
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise RooflangError(
                f"{name!r} stands outside of any table",
                where=str(path),
                expected="a table for each command",
                hint=f'such as [optimize], and {name} = "…" below it',
            )
    return tables


def as_defaults(
    tables: Mapping[str, Mapping[str, Any]], program: click.Group, running: str | None, path: Path
) -> dict[str, Any]:
    """The tables as click takes defaults: parameters by their Python names, values as they would be typed.

    Raises `RooflangError` for a table that is no command, and for a key that is no option of the command that is
    `running`; those of the others are not looked at, so that nothing else has to be imported.
    """
    known = program.list_commands(click.Context(program))
    for name in tables:
        if name not in known:
            raise UnknownNameError("command", name, known, where=str(path))
    if running in tables and (command := program.get_command(click.Context(program), running or "")):
        _check_keys(tables[running or ""], command, f"{path}: {running}")
    return {
        name: {key.replace("-", "_"): _typed(value) for key, value in table.items()} for name, table in tables.items()
    }


def _check_keys(table: Mapping[str, Any], command: click.Command, where: str) -> None:
    options = [param for param in command.params if isinstance(param, click.Option) and not param.is_eager]
    known = sorted(option.opts[-1].removeprefix("--") for option in options)
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            raise RooflangError(
                f"unknown option: {key!r}",
                where=where,
                expected="one of " + ", ".join(known),
                hint=f"did you mean {near[0]!r}?" if near else "",
            )


def _typed(value: Any) -> Any:
    """A number as text, because options read their own units; lists for options that can be given several times."""
    if isinstance(value, list):
        return [_typed(each) for each in value]
    return value if isinstance(value, (bool, str)) else str(value)
