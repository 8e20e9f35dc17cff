"""Types of options. Each reads text, with a typed error that names the option, and spells its value as it is typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click
import click.shell_completion

from rooflang.cli.output import JsonTarget, writable
from rooflang.errors import UnitError, UnknownNameError, ValueRangeError
from rooflang.units import parse, parse_count, parse_layers

#: Counts above this are refused, so that no product of a few of them overflows.
_LARGEST = 2**40


def _where(param: click.Parameter | None) -> str:
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name if param else ""


if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType  # older releases of click cannot be subscripted here


class OptionType(_Type):
    """A type whose `read` raises typed errors; values that are read already are left as they are."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self.read(value, _where(param)) if isinstance(value, str) else value

    def read(self, text: str, where: str) -> Any:
        """The value of the text. Raises a `RooflangError`."""
        raise NotImplementedError

    def spell(self, value: Any) -> str:
        """The text that `read` would read back."""
        return str(value)


class Count(OptionType):
    """A whole number, 1 or more: `65536`, `64k`, `1m`."""

    name = "N"

    def read(self, text: str, where: str) -> int:
        # Python refuses to read numbers of thousands of digits, with an error of its own.
        value = parse_count(text[:20], where=where)
        if not 1 <= value <= _LARGEST:
            what = f"{text[:20]} is not possible"
            raise ValueRangeError(what, where=where, expected=f"a whole number, 1 to {_LARGEST:,}")
        return value

    def spell(self, value: int) -> str:
        from rooflang.report.numbers import show_count

        return show_count(value)


class Counts(OptionType):
    """Whole numbers, 1 or more, with commas between them."""

    name = "N,N,…"

    def read(self, text: str, where: str) -> tuple[int, ...]:
        return tuple(Count().read(part, where) for part in text.split(","))

    def spell(self, value: Iterable[int]) -> str:
        return ",".join(map(Count().spell, value))


class Layers(OptionType):
    """Layers per pipeline stage: `3,4,4,2`, or `3,4x14,2` for fourteen stages of four."""

    name = "L,L,…"

    def read(self, text: str, where: str) -> tuple[int, ...]:
        return parse_layers(text, where=where)

    def spell(self, value: Iterable[int]) -> str:
        from rooflang.report.numbers import show_layers

        return show_layers(value)


class Seconds(OptionType):
    """A time above 0: `60`, `1.5`, `500ms`; without a unit in seconds."""

    name = "S"

    def read(self, text: str, where: str) -> float:
        try:
            value = parse(f"{text} s" if text[-1:].isdigit() else text, "s")
        except UnitError:
            value = 0.0
        if value == 0:
            raise ValueRangeError(f"{text!r} is no time", where=where, expected="seconds above 0, such as 60 or 500ms")
        return value

    def spell(self, value: float) -> str:
        return f"{value:g}"


class Amount(OptionType):
    """A number above 0: `50`, `3.5`."""

    name = "X"

    def read(self, text: str, where: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):  # false for NaN, too
            raise ValueRangeError(f"{text[:20]!r} is not possible", where=where, expected="a number above 0")
        return value

    def spell(self, value: float) -> str:
        return f"{value:g}"


class PerSecond(OptionType):
    """How often: `20`, `20/s`, `90/min`, `3600/h`; without a unit a second."""

    name = "X/s"
    _UNITS: ClassVar[dict[str, float]] = {"s": 1.0, "min": 60.0, "h": 3600.0}

    def read(self, text: str, where: str) -> float:
        number, _, unit = text.partition("/")
        if (unit or "s") not in self._UNITS:
            raise ValueRangeError(f"{text[:20]!r} is no rate", where=where, expected="a number, or N/s, N/min, N/h")
        value: float = Amount().read(number, where)
        return value / self._UNITS[unit or "s"]

    def spell(self, value: float) -> str:
        return f"{value:g}/s"


class Share(OptionType):
    """A part of a whole, less than all of it: `0.3%`, `0.003`."""

    name = "X%"

    def read(self, text: str, where: str) -> float:
        try:
            value = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1:  # true for NaN, too
            raise ValueRangeError(f"{text[:20]!r} is no share", where=where, expected="0% or more, less than 100%")
        return value

    def spell(self, value: float) -> str:
        return f"{value:.17g}"


class Bytes(OptionType):
    """An amount of memory above 0: `8GB`, `512MiB`."""

    name = "BYTES"

    def read(self, text: str, where: str) -> float:
        value = parse(text, "bytes", where=where)
        if value == 0:
            raise ValueRangeError(f"{text!r} is nothing", where=where, expected="an amount above 0, such as 8GB")
        return value

    def spell(self, value: float) -> str:
        return f"{value:.17g}B"


class Seed(OptionType):
    """A whole number, 0 or more."""

    name = "N"

    def read(self, text: str, where: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) >= 2**32:
            raise ValueRangeError(f"{text[:20]!r} is no seed", where=where, expected="a whole number, less than 2^32")
        return int(text)


class Known(OptionType):
    """One of a few names, in any case. `names` is called when there is text to read; a path ends in `suffix`."""

    def __init__(self, kind: str, names: Callable[[], Iterable[str]], *, suffix: str = "") -> None:
        self.name = kind
        self._names = names
        self._suffix = suffix

    def read(self, text: str, where: str) -> str:
        if self._suffix and text.endswith(self._suffix):
            return text
        names = {name.lower(): name for name in self._names()}
        if text.lower() not in names:
            raise UnknownNameError(self.name, text, names.values(), where=where)
        return names[text.lower()]

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """The names that begin so, and files where a file can be named."""
        begun = [name for name in self._names() if name.lower().startswith(incomplete.lower())]
        found = [click.shell_completion.CompletionItem(name) for name in begun]
        if self._suffix:
            found.append(click.shell_completion.CompletionItem(incomplete, type="file"))
        return found


class JsonFile(OptionType):
    """A file to write JSON to, checked when it is read; `-` is standard output."""

    name = "FILE"

    def read(self, text: str, where: str) -> JsonTarget:
        return JsonTarget.of(text, where=where)

    def spell(self, value: JsonTarget) -> str:
        return value.text


class NamedFile(OptionType):
    """A file to write `what` to, checked when it is read. It is no standard output: its suffix says how to write it."""

    name = "FILE"
    what: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    expected: ClassVar[str]

    def read(self, text: str, where: str) -> Path:
        if not text.endswith(self.suffixes):
            raise ValueRangeError(f"{text!r} is no name of a {self.what}", where=where, expected=self.expected)
        return writable(text, where=where)


class TraceFile(NamedFile):
    """A file to write a trace to."""

    what, suffixes, expected = "trace", (".json", ".json.gz"), "FILE.json or FILE.json.gz"


class FigureFile(NamedFile):
    """A file to draw to."""

    what, suffixes, expected = "figure", (".svg", ".png", ".pdf"), "FILE.svg, .png or .pdf"


class PageFile(NamedFile):
    """A file to write a page to."""

    what, suffixes, expected = "page", (".html", ".htm"), "FILE.html"


def hardware_names() -> tuple[str, ...]:
    """Names of the shipped platforms."""
    from rooflang.hw import platform_names

    return platform_names()


def rule_names() -> tuple[str, ...]:
    """Names of the rules that a search uses."""
    from rooflang.rules import rule_names

    return rule_names()


def profile_names() -> tuple[str, ...]:
    """Names of the assumption profiles."""
    from rooflang.assumptions import PROFILES

    return tuple(PROFILES)


def weight_formats() -> tuple[str, ...]:
    """Formats that weights may be stored in."""
    from rooflang.models.hf.quantisation import WEIGHTS

    return tuple(WEIGHTS)


def cache_formats() -> tuple[str, ...]:
    """Formats that a cache may be stored in."""
    from rooflang.models.hf.quantisation import CACHES

    return tuple(CACHES)
