"""Numbers as people read them. The JSON has them in full."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rooflang.units import show_bytes


def show_rate(value: float) -> str:
    """Tokens per second: `3,484.0`, `599.51`, `88.857`, `0.0124`."""
    if value < 0.1:  # three digits would be too few, or none
        return f"{value:.3g}"
    digits = 1 if value >= 1000 else 2 if value >= 100 else 3
    return f"{value:,.{digits}f}"


def show_share(value: float) -> str:
    """A part of a whole: `0.4312` as `43.1%`; what would round to nothing as `<0.1%`."""
    return "<0.1%" if 0 < value < 0.0005 else f"{value:.1%}"


def show_dollars(value: float) -> str:
    """An amount of money in four digits: `0.01412`, `3.1`."""
    return f"{value:,.4g}"


def show_gap(value: float | None) -> str:
    """A relative distance to a lower bound, as `0.31%`; `–` where there is no bound."""
    return "–" if value is None else f"{value:.2%}"


def show_error(value: float) -> str:
    """A signed relative error, as `+0.12%`; below 0.005% as `0.00%`, without a sign."""
    return _plain_zero(f"{value:+.2%}")


def show_gain(value: float) -> str:
    """A relative gain, as `+12.3%`; from threefold on as a factor, `×5.2`; below 0.05% as `0.0%`, without a sign."""
    return f"×{value + 1:.1f}" if value >= 2 else _plain_zero(f"{value:+.1%}")


def _plain_zero(text: str) -> str:
    """A number without its sign where it is nothing but zeros."""
    return text.lstrip("+-") if set(text) <= set("+-0.%") else text


def show_count(value: int) -> str:
    """`65536` as `64k`, `1048576` as `1m`, other counts in full: what `units.parse_count` reads back."""
    for suffix, scale in (("m", 2**20), ("k", 2**10)):
        if value and value % scale == 0:
            return f"{value // scale}{suffix}"
    return str(value)


def show_layers(layers: Iterable[int]) -> str:
    """Layers per pipeline stage, runs of equal ones as layers × stages: `3,4x14,2`, which `--partition` reads."""
    runs = [(size, len(list(run))) for size, run in groupby(layers)]
    return ",".join(str(size) if length == 1 else f"{size}x{length}" for size, length in runs)


def show_memory(peak_bytes: int, capacity_bytes: int) -> str:
    """A peak as amount and share of the capacity: `123.4 GB 43%`."""
    return f"{show_bytes(peak_bytes)} {peak_bytes / capacity_bytes:4.0%}"
