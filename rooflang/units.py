"""Quantities with units, read and shown. Inside the program everything is SI: seconds, bytes, bytes/s, FLOP/s."""

from __future__ import annotations

import re

from rooflang.errors import UnitError

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_TIME = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_QUANTITY = re.compile(r"^\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-zµ/]*)\s*$")

#: unit name -> (suffix of the text, what the parsed number is in)
KINDS = {"bytes": "B", "bytes_per_s": "B/s", "flop_per_s": "FLOP/s", "s": "s"}


def parse(text: str | float, kind: str, *, where: str = "") -> float:
    """Read `"3.35 TB/s"`, `"288 GB"`, `"2250 TFLOP/s"`, `"0.5 us"` as a number in SI units.

    `kind` is one of `bytes`, `bytes_per_s`, `flop_per_s`, `s`. A bare number is already SI.
    Decimal prefixes are powers of 1000, binary ones (`GiB`) powers of 1024. Raises `UnitError`.
    """
    if isinstance(text, (int, float)):
        return float(text)
    match = _QUANTITY.match(text)
    suffix = KINDS[kind]
    expected = f"a number and a unit such as '1.5 T{suffix}'" if kind != "s" else "a number and ns, us, ms or s"
    if not match:
        raise UnitError(f"cannot read {text!r}", where=where, expected=expected)
    value, unit = float(match[1]), match[2]
    if kind == "s":
        scale = _TIME.get(unit)
    elif unit.endswith(suffix):
        prefix = unit[: -len(suffix)]
        scale = _DECIMAL.get(prefix, _BINARY.get(prefix))
    else:
        scale = None
    if scale is None:
        raise UnitError(f"cannot read {text!r}: {unit!r} is not a unit of {kind}", where=where, expected=expected)
    return value * scale


def parse_count(text: str | int, *, where: str = "") -> int:
    """Read a count such as `65536`, `64k` or `1m`; `k` and `m` are binary here, as in `64k` tokens = 65,536."""
    if isinstance(text, int):
        return text
    match = re.match(r"^\s*([0-9]+)\s*([kKmM]?)\s*$", text)
    if not match:
        raise UnitError(f"cannot read the count {text!r}", where=where, expected="a whole number, or 64k, 1m")
    return int(match[1]) * {"": 1, "k": 2**10, "m": 2**20}[match[2].lower()]


def show_seconds(value_s: float) -> str:
    """`0.0157` as `15.7 ms`."""
    for name, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value_s >= scale:
            return f"{value_s / scale:.4g} {name}"
    return f"{value_s / 1e-9:.4g} ns"


def show_bytes(value: float) -> str:
    """`288e9` as `288 GB` (decimal, as hardware is sold)."""
    for name, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.4g} {name}"
    return f"{value:.0f} B"
