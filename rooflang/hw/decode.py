"""Reading a hardware file strictly: quantities with units, and msgspec's complaints as `HardwareError`."""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

import msgspec

from rooflang.errors import HardwareError, UnitError
from rooflang.units import parse

_Record = TypeVar("_Record", bound=msgspec.Struct)


class Quantity(float):
    """A number that a file writes as text with a unit, held in SI. A bare number is refused: its unit is a guess."""

    kind: ClassVar[str]
    may_be_zero: ClassVar[bool]


class Bytes(Quantity):
    """A capacity such as `"288 GB"` (decimal gigabytes)."""

    kind = "bytes"
    may_be_zero = False


class BytesPerS(Quantity):
    """A one-way bandwidth such as `"900 GB/s"`; `"0 GB/s"` is a link that is not there (failed or never built)."""

    kind = "bytes_per_s"
    may_be_zero = True


class FlopPerS(Quantity):
    """A dense peak such as `"2250 TFLOP/s"`."""

    kind = "flop_per_s"
    may_be_zero = False


class Seconds(Quantity):
    """A latency such as `"0.5 us"`."""

    kind = "s"
    may_be_zero = True


class _RefusedQuantityError(ValueError):
    """Carries a refusal through msgspec, which adds the path of the key to any ValueError of a decode hook."""

    def __init__(self, what: str, *, expected: str, hint: str = "") -> None:
        super().__init__(what)
        self.expected = expected
        self.hint = hint


_EXAMPLES = {"bytes": '"288 GB"', "bytes_per_s": '"900 GB/s"', "flop_per_s": '"2250 TFLOP/s"', "s": '"0.5 us"'}


def _read_quantity(kind: type[Any], value: object) -> Quantity:
    """msgspec's hook for the types that it does not know, which are the quantities."""
    assert issubclass(kind, Quantity)
    expected = f"text with a unit, such as {_EXAMPLES[kind.kind]}"
    if not isinstance(value, str):
        raise _RefusedQuantityError(f"{value!r} has no unit", expected=expected)
    if value.lstrip().startswith("-"):
        raise _RefusedQuantityError(f"{value!r} is negative", expected=expected)
    try:
        number = parse(value, kind.kind)
    except UnitError as error:
        raise _RefusedQuantityError(error.what, expected=error.expected, hint=error.hint) from error
    if number == 0 and not kind.may_be_zero:
        raise _RefusedQuantityError(f"{value!r} is not positive", expected=expected)
    return kind(number)


def read_toml(path: Path, record: type[_Record]) -> _Record:
    """The TOML file at `path` as a `record`.

    Raises `HardwareError` naming the file and the key when the file cannot be read, is not TOML, lacks a key, has one
    that `record` does not know, or holds a value of the wrong type, unit or sign.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise HardwareError(f"cannot read the file: {error}", where=str(path), expected="a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        raise HardwareError(f"not TOML: {error}", where=str(path), expected="a TOML file") from error
    try:
        return msgspec.convert(table, record, dec_hook=_read_quantity)
    except msgspec.ValidationError as error:
        raise _explain(error, path, table, record) from error


_AT = re.compile(r" - at `\$\.?(?P<key>[^`]*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<field>[^`]*)`")
_MISSING = re.compile(r"^Object missing required field `(?P<field>[^`]*)`")


def _explain(
    error: msgspec.ValidationError, path: Path, table: dict[str, Any], record: type[msgspec.Struct]
) -> HardwareError:
    """msgspec's one-line message taken apart into what, where, expected and hint."""
    text = str(error)
    at = _AT.search(text)
    section = at["key"] if at else ""
    what = text[: at.start()] if at else text

    if unknown := _UNKNOWN.match(what):
        known = _known_keys(record, section)
        near = get_close_matches(unknown["field"], known, n=1)
        return HardwareError(
            f"unknown key {unknown['field']!r}",
            where=_where(path, section, unknown["field"]),
            expected="one of " + ", ".join(known),
            hint=f"did you mean {near[0]!r}?" if near else "",
        )
    if missing := _MISSING.match(what):
        field = missing["field"]
        hint = 'say where the numbers come from, such as "measured" or a data sheet' if field == "source" else ""
        return HardwareError(
            f"missing key {field!r}",
            where=_where(path, section, field),
            expected=f"the keys {', '.join(_known_keys(record, section))} (those with a default may be left out)",
            hint=hint or "the shipped presets are complete examples",
        )
    if section.endswith("[...]"):
        section = _name_entry(section.removesuffix("[...]"), table, what)
    cause = error.__cause__
    choices = _choices(record, section) if what.startswith("Invalid enum value") else ""
    refusal = cause if isinstance(cause, _RefusedQuantityError) else _RefusedQuantityError(what, expected=choices)
    hint = refusal.hint or "the shipped presets show each key"
    return HardwareError(what, where=_where(path, section), expected=refusal.expected, hint=hint)


def _where(path: Path, *keys: str) -> str:
    return f"{path}: {'.'.join(key for key in keys if key)}"


def _name_entry(section: str, table: dict[str, Any], what: str) -> str:
    """msgspec does not say which entry of a mapping it refused; its message does quote the value."""
    entries: Any = table
    for key in section.split("."):
        entries = entries[key]
    named = [key for key, value in entries.items() if repr(value) in what]
    return f"{section}.{named[0]}" if named else section


def _known_keys(record: type[msgspec.Struct], section: str) -> list[str]:
    """The keys that `record` has at a dotted path of sections, in the order of its declaration."""
    return [field.encode_name for field in _fields(record, section)]


def _choices(record: type[msgspec.Struct], path: str) -> str:
    """The words that the key at the end of a dotted path takes."""
    section, _, name = path.rpartition(".")
    kind = next(field.type for field in _fields(record, section) if field.encode_name == name)
    return "one of " + ", ".join(get_args(kind))


def _fields(record: type[msgspec.Struct], section: str) -> tuple[msgspec.structs.FieldInfo, ...]:
    for key in filter(None, section.split(".")):
        kind = next(field.type for field in msgspec.structs.fields(record) if field.encode_name == key)
        choices = (kind, *get_args(kind))
        record = next(choice for choice in choices if isinstance(choice, type) and issubclass(choice, msgspec.Struct))
    return msgspec.structs.fields(record)
