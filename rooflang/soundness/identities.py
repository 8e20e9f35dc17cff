"""Identities on trial: a move between memories keeps every bit of every number that the dtype can hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rooflang.ir.exact import Exact
from rooflang.ir.graph import GraphBuilder
from rooflang.ir.tensor import LEAF_ROLES, Role, Tensor
from rooflang.rules import insert_identity, remove_identity
from rooflang.rules.record import Ok, Verdict
from rooflang.rules.theory import TIERS
from rooflang.soundness.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A binary floating-point format: bits of the significand (the hidden one too), smallest and largest exponent of a
    normal number. Below the smallest, numbers are evenly spaced; above the largest they saturate."""

    bits: int
    low: int
    high: int


#: IEEE 754 binary32; bfloat16; FP8 E4M3 (OCP 8-bit floating point specification, revision 1.0, whose code for 480 means
#: NaN there); FP4 E2M1 (OCP microscaling formats, version 1.0). Scaled formats round like these within a block.
FORMATS = {
    "fp32": Format(bits=24, low=-126, high=127),
    "bf16": Format(bits=8, low=-126, high=127),
    "fp8": Format(bits=4, low=-6, high=8),
    "fp4": Format(bits=2, low=0, high=2),
}


def stored(x: Exact, dtype: str) -> Exact:
    """The number of the format nearest to x, ties to even; what is beyond the largest becomes the largest."""
    form = FORMATS[dtype]
    if not x:
        return x
    size = abs(x)
    exponent = size.num.bit_length() - size.den.bit_length()
    exponent -= size < _two(exponent)
    step = _two(max(exponent, form.low) - form.bits + 1)
    rounded: Exact = Exact(_nearest(size / step)) * step
    largest = (2 - _two(1 - form.bits)) * _two(form.high)
    kept: Exact = min(rounded, largest)
    return kept if x > 0 else -kept


def _two(power: int) -> Exact:
    return Exact(1 << power) if power >= 0 else Exact(1, 1 << -power)


def _nearest(x: Exact) -> int:
    """The nearest integer, ties to even."""
    low, rest = divmod(x.num, x.den)
    twice = 2 * rest
    return low + (twice > x.den or (twice == x.den and low % 2 == 1))


def random_number(dtype: str, source: Source) -> Exact:
    """A number that the format can hold, of any size."""
    form = FORMATS[dtype]
    significand = source.integer(1, (1 << form.bits) - 1)
    scaled = Exact(significand) * _two(source.integer(max(form.low, -20), min(form.high, 20)) - form.bits + 1)
    return stored(-scaled if source.below(2) else scaled, dtype)


@dataclass(frozen=True, kw_only=True)
class Tiers:
    """A claim: a tensor that may be kept elsewhere, in the dtype asked for, comes back with the bits that it had; it is
    one that the next step reads, and the memory is one that moves lead to."""

    check: Callable[..., Verdict] = insert_identity.check

    def __call__(self, source: Source) -> str | None:
        dtype = source.choice(tuple(FORMATS))
        role = source.choice(tuple(Role))
        tensor = Tensor(name="x", dims=("a",), dtype=dtype, role=role)
        tier, kept_as = source.choice((*TIERS, "tape")), source.choice(("", *FORMATS))
        source.suits(isinstance(self.check(tensor, tier, dtype=kept_as), Ok))
        x = random_number(dtype, source)
        back = stored(stored(x, kept_as or dtype), dtype)
        if back != x:
            return f"{x} in {dtype}, kept in {tier} as {kept_as or dtype}, comes back as {back}"
        if role not in LEAF_ROLES - {Role.INPUT}:
            return f"an {role.value} is kept in {tier}, though nothing reads it in the next step"
        return None if tier in TIERS else f"nothing moves a tensor to {tier}"


@dataclass(frozen=True, kw_only=True)
class Copies:
    """A claim: who reads the operand of a move that may be left out reads the same bits."""

    check: Callable[..., Verdict] = remove_identity.check

    def __call__(self, source: Source) -> str | None:
        dtypes = tuple(FORMATS)
        first, second = source.choice(dtypes), source.choice(dtypes)
        kind = source.choice(("to_hbm", "to_dram", "to_nvme", "activation"))
        g = GraphBuilder("copy", a=2)
        y = g.op("y", kind, [g.input("x", "a", first)], "a", second)
        (op,) = g.build(y).ops
        source.suits(isinstance(self.check(op, ops=(op,)), Ok))
        x = random_number(first, source)
        made = stored(x if op.kind.startswith("to_") else _silu(x), second)
        return None if made == x else f"{kind} of {x} in {first}, stored as {second}, makes {made}"


def _silu(x: Exact) -> Exact:
    """What an activation makes of it: anything but x, whichever function it is."""
    array = np.array([x], dtype=object)
    result: Exact = (array * (1 + np.tanh(array)) / 2)[0]
    return result
