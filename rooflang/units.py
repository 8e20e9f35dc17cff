"""Quantities with units, read and shown. Inside the program all is SI: seconds, bytes, bytes/s, FLOP/s."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from typing import SupportsIndex

from rooflang.errors import UnitError, ValueRangeError

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_PREFIXES = {**_DECIMAL, **_BINARY}
# Keyboards and editors produce two signs for micro: one has a code of its own, the other is the Greek letter.
_MICRO = dict.fromkeys(["us", "\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s"], 1e-6)

_QUANTITY = re.compile(r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([^\W\d_]+(?:/s)?)?")
_COUNT = re.compile(r"([0-9]+)\s*([kKmM]?)")
#: `4x14` in a partition: fourteen stages of four layers. Longer numbers are a slip of the finger.
_RUN = re.compile(r"(?P<layers>[0-9]{1,4})(?:[x×*](?P<stages>[0-9]{1,3}))?")
_BIT_RATE = re.compile(r"[kKMGTP]i?(b/s|bit/s|bps)")


def _units(suffix: str) -> dict[str, float]:
    return {prefix + suffix: scale for prefix, scale in _PREFIXES.items()}


#: kind of quantity -> every unit it can be written in, with the unit's size in SI
KINDS: Mapping[str, Mapping[str, float]] = {
    "bytes": _units("B"),
    "bytes_per_s": _units("B/s"),
    "flop_per_s": _units("FLOP/s"),
    "s": {"ns": 1e-9, **_MICRO, "ms": 1e-3, "s": 1.0},
}

_EXAMPLES = {"bytes": "288 GB", "bytes_per_s": "3.35 TB/s", "flop_per_s": "2250 TFLOP/s", "s": "0.5 us"}


def parse(text: str | float, kind: str, *, where: str = "") -> float:
    """Read `"3.35 TB/s"`, `"288 GB"`, `"2250 TFLOP/s"` or `"0.5 us"` as a finite SI number, not negative.

    `kind` is one of `bytes`, `bytes_per_s`, `flop_per_s`, `s`. A number that is not text is already SI.
    Decimal prefixes are powers of 1000, binary ones (`GiB`) powers of 1024. Raises `UnitError`.
    """
    expected = f"a number and a unit, such as {_EXAMPLES[kind]!r}"
    if isinstance(text, bool):  # Python counts these as whole numbers, and TOML can hold one by mistake
        raise UnitError(f"cannot read {text!r} as {kind}", where=where, expected=expected)
    if isinstance(text, (int, float)):
        value = float(text)
    else:
        match = _QUANTITY.fullmatch(text.strip())
        if match is None:
            raise UnitError(f"cannot read {text!r} as {kind}", where=where, expected=expected)
        unit = match[2] or ""
        scale = KINDS[kind].get(unit)
        if scale is None:
            near = next((each for each in KINDS[kind] if unit and _letters(each) == _letters(unit)), "")
            hint = f"did you mean {near}?" if near else ""
            hint = "rates are in bytes: 400 Gb/s is 50 GB/s" if _BIT_RATE.fullmatch(unit) else hint
            what = f"{unit!r} is not a unit of {kind}" if unit else "the unit is missing"
            raise UnitError(f"cannot read {text!r}: {what}", where=where, expected=expected, hint=hint)
        value = float(match[1]) * scale
    if not math.isfinite(value) or value < 0:
        raise UnitError(f"{text!r} is not a size", where=where, expected="a finite number, not negative")
    return value


def _letters(unit: str) -> str:
    """What is the same of `TFLOP/s` and `TFLOPS`, and of `GB` and `gb`."""
    return unit.replace("/", "").casefold()


def parse_count(text: str | int, *, where: str = "") -> int:
    """Read a count such as `65536`, `64k` or `1m`; `k` and `m` are binary here, as in `64k` tokens = 65,536.

    A number that is not text is returned as it is. Raises `UnitError`.
    """
    if isinstance(text, int):
        return text
    match = _COUNT.fullmatch(text.strip())
    if match is None:
        raise UnitError(f"cannot read the count {text!r}", where=where, expected="a whole number, or 64k, 1m")
    return int(match[1]) * {"": 1, "k": 2**10, "m": 2**20}[match[2].lower()]


def parse_layers(text: str, *, where: str = "") -> tuple[int, ...]:
    """Read layers per pipeline stage: `3,4,4,2`, or `3,4x14,2` for fourteen stages of four. Raises
    `ValueRangeError`."""
    layers: list[int] = []
    for part in text.split(","):
        match = _RUN.fullmatch(part.strip())
        if match is None:
            raise ValueRangeError(
                f"cannot read the partition {text!r}",
                where=where,
                expected="layers per stage, such as 3,4,4,2 or 3,4x14,2",
            )
        layers.extend([int(match["layers"])] * int(match["stages"] or 1))
    return tuple(layers)


def whole(value: object, *, where: str, least: int | None = 1) -> int:
    """A value that has to be a whole number, `least` or more if that is one, as Python's own `int`. Raises
    `ValueRangeError`."""
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        number = operator.index(value)
        if least is None or number >= least:
            return number
    more = "" if least is None else f", {least} or more"
    raise ValueRangeError(f"{value!r} is not possible", where=where, expected=f"a whole number{more}")


def positive(value: object, *, where: str) -> None:
    """Raises `ValueRangeError` for what is no finite number above 0."""
    if not (isinstance(value, (int, float)) and 0.0 < value < math.inf):  # false for NaN, too
        raise ValueRangeError(f"{value!r} is not possible", where=where, expected="a finite number above 0")


def show_seconds(value_s: float) -> str:
    """`0.0157` as `15.7 ms`."""
    return _show(value_s, {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9})


def show_bytes(value: float) -> str:
    """`288e9` as `288 GB` (decimal, as hardware is sold)."""
    return _show(value, {"PB": 1e15, "TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0})


def _show(value: float, units: Mapping[str, float]) -> str:
    """Four digits in the largest unit that leaves at least one before the point; whole numbers above that."""
    name, scale = next(((n, s) for n, s in units.items() if abs(value) >= s), list(units.items())[-1])
    scaled = value / scale
    return f"{scaled:,.0f} {name}" if abs(scaled) >= 1e4 else f"{scaled:.4g} {name}"
