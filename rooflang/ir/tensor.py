"""Tensors with labelled dims, and the dtypes they are stored in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

#: A size or a quantity: a number, or an array of numbers with one entry per batch size.
Num = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Dtype:
    """How an element is stored. `bytes_per_element` includes block scales; `peak` names the compute rate it runs at."""

    name: str
    bytes_per_element: float
    peak: str


#: Scaled formats: one byte of scale per 128 × 128 block (DeepSeek's FP8 checkpoints), per 32 elements (OCP microscaling
#: formats, version 1.0), per 16 (NVFP4); integers with a 16-bit scale per group, those ending in z (AWQ, GPTQ) also
#: with a 4-bit zero point. Integer weights are widened, and multiplied at the rate of bf16.
_SCALED = {"mxfp4": (0.5, 32, 1.0, "fp4"), "nvfp4": (0.5, 16, 1.0, "fp4"), "mxfp8": (1.0, 32, 1.0, "fp8")}
_SCALED |= {f"int4_g{group}": (0.5, group, 2.0, "bf16") for group in (32, 64, 128)}
_SCALED |= {f"int4_g{group}z": (0.5, group, 2.5, "bf16") for group in (32, 64, 128)}

#: Dtypes by name.
DTYPES = {
    d.name: d
    for d in (
        Dtype(name="fp4", bytes_per_element=0.5, peak="fp4"),
        Dtype(name="fp8", bytes_per_element=1.0, peak="fp8"),
        Dtype(name="fp8_block", bytes_per_element=1.0 + 1 / 128**2, peak="fp8"),
        Dtype(name="bf16", bytes_per_element=2.0, peak="bf16"),
        Dtype(name="fp32", bytes_per_element=4.0, peak="fp32"),
        Dtype(name="int8", bytes_per_element=1.0, peak="bf16"),
        Dtype(name="int32", bytes_per_element=4.0, peak="bf16"),
        Dtype(name="int64", bytes_per_element=8.0, peak="bf16"),
        *(
            Dtype(name=name, bytes_per_element=element + scale / group, peak=peak)
            for name, (element, group, scale, peak) in _SCALED.items()
        ),
    )
}

#: Dtypes of ids, positions and tables of them; integers of other dtypes are stored weights.
INDEX_DTYPES = frozenset({"int32", "int64"})


class Role(StrEnum):
    """What a tensor is to the program: who makes it, where and how long it lives. What is `on_chip` goes from a kernel
    to its reader without a pass over memory: they are two operators of one kernel."""

    INPUT = "input"
    WEIGHT = "weight"
    KV_CACHE = "kv_cache"
    STATE = "state"
    ACTIVATION = "activation"
    ON_CHIP = "on_chip"
    OUTPUT = "output"


#: Roles of tensors that exist before the step begins: no operator produces them.
LEAF_ROLES = frozenset({Role.INPUT, Role.WEIGHT, Role.KV_CACHE, Role.STATE})

#: Roles that stay in memory between steps.
RESIDENT_ROLES = frozenset({Role.WEIGHT, Role.KV_CACHE, Role.STATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dim:
    """A labelled extent. The same label means the same index everywhere; `meaning` is the word shown to people."""

    label: str
    size: int
    meaning: str = ""

    @property
    def word(self) -> str:
        return self.meaning or self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A named array. `fill` is the share of the dense extent that exists: routed tokens carry the token dims and
    the expert dim, but only top-k of E experts hold a row (fill = k/E)."""

    name: str
    dims: tuple[str, ...]
    dtype: str
    role: Role = Role.ACTIVATION
    fill: float = 1.0

    def elements(self, sizes: Mapping[str, Num]) -> Num:
        """Number of elements when each dim has the size given."""
        return math.prod((sizes[d] for d in self.dims), start=self.fill)

    def bytes(self, sizes: Mapping[str, Num]) -> Num:
        """Stored bytes, scales included, when each dim has the size given."""
        return self.elements(sizes) * DTYPES[self.dtype].bytes_per_element
