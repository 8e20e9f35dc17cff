"""Defaults of one's own: a TOML file with a table for each command, whose keys are the long names of its options. A
command of a group has a table such as [agent.run]."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
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
    """The table of the command that is `running` as click takes defaults: parameters by their Python names, values as
    they would be typed.

    Raises `RooflangError` for a table that is no command, and for a key that is no option of the command; those of the
    others are not looked at, so that nothing else has to be imported.
    """
    known = program.list_commands(click.Context(program))
    for name in tables:
        if name not in known:
            raise UnknownNameError("command", name, known, where=str(path))
    command = program.get_command(click.Context(program), running) if running in tables and running else None
    return {running or "": _defaults(tables[running or ""], command, f"{path}: {running}")} if command else {}


def _defaults(table: Mapping[str, Any], command: click.Command, where: str) -> dict[str, Any]:
    options = {
        name.removeprefix("--"): param
        for param in command.params
        if isinstance(param, click.Option) and not param.is_eager
        for name in param.opts
        if name.startswith("--")
    }
    inner = command.commands if isinstance(command, click.Group) else {}
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and key in inner:
            found[key] = _defaults(value, inner[key], f"{where}.{key}")
        elif key in options and not isinstance(value, dict):
            found[options[key].name or key] = _typed(value, options[key])
        else:
            raise _unknown(key, options, inner, where)
    return found


def _unknown(key: str, options: Iterable[str], inner: Iterable[str], where: str) -> RooflangError:
    known = [*sorted(options), *(f"the table {name}" for name in sorted(inner))]
    near = get_close_matches(key, [*options, *inner], n=1)
    return RooflangError(
        f"unknown option: {key!r}",
        where=where,
        expected="one of " + ", ".join(known) if known else "nothing: there are no options",
        hint=f"did you mean {near[0]!r}?" if near and near[0] != key else "",
    )


def _typed(value: Any, option: click.Option) -> Any:
    """A value as it would be typed, because options read their own units; a list as several values of an option that
    can be given several times, or else with commas."""
    if option.multiple:
        return [_text(each) for each in (value if isinstance(value, list) else [value])]
    return ",".join(map(str, map(_text, value))) if isinstance(value, list) else _text(value)


def _text(value: Any) -> bool | str:
    return value if isinstance(value, bool) else str(value)


def lines_of(tables: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Commands with the options that a file gives them, as they would be typed."""
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from lines_of(value, f"{before}{name} ")
        elif value is not False:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{before}--{name}" + ("" if value is True else f" {text}")
