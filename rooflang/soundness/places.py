"""Placement on trial: a device has every rate that its operators compute at, a memory has room for what lies in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from rooflang.hw.cluster import Cluster
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import DTYPES, Role, Tensor
from rooflang.rules import set_compute, set_memory
from rooflang.rules.record import Ok, Verdict
from rooflang.soundness.cases import case_names, example, the_op
from rooflang.soundness.source import Source

_DEVICE = lru_cache(maxsize=1)(lambda: Cluster.of("b300", 8).device)
_MEMORY = lru_cache(maxsize=1)(lambda: Cluster.of("b300", 8).tier("hbm"))
_PEAKS = ("fp4", "fp8", "bf16", "fp32")


@dataclass(frozen=True, kw_only=True)
class Devices:
    """A claim: an operator runs on a device that it is put on: each of its FLOPs has a rate, none goes missing."""

    check: Callable[..., Verdict] = set_compute.check

    def __call__(self, source: Source) -> str | None:
        op = the_op(example(source.choice(case_names())))
        op = replace(op, compute=source.choice(("", *_PEAKS)))
        known = [peak for peak in _PEAKS if source.below(2)]
        device = replace(_DEVICE(), peaks=dict.fromkeys(known, 1e12))
        source.suits(isinstance(self.check(op, device), Ok))
        ones = dict.fromkeys(op.labels, 2)
        lost = [peak for peak in op_kind(op.kind).flops(op, ones, ones) if peak not in device.peaks]
        return f"{op.kind} computes in {lost[0]}, the device in {', '.join(known) or 'nothing'}" if lost else None


@dataclass(frozen=True, kw_only=True)
class Memories:
    """A claim: tensors that a memory takes one after the other never need more than it has."""

    check: Callable[..., Verdict] = set_memory.check

    def __call__(self, source: Source) -> str | None:
        room = source.integer(1, 64)
        tier = replace(_MEMORY(), capacity_bytes=float(room))
        taken, shown = 0.0, []
        for n in range(1 + source.below(5)):
            dtype = source.choice(("fp4", "fp8", "bf16", "fp32"))
            sizes = {"a": source.integer(1, 6), "b": source.integer(1, 4)}
            tensor = Tensor(name=f"t{n}", dims=("a", "b"), dtype=dtype, role=Role.WEIGHT)
            if isinstance(self.check(tensor, tier, sizes, taken_bytes=taken), Ok):
                taken += sizes["a"] * sizes["b"] * DTYPES[dtype].bytes_per_element
                shown.append(f"{sizes['a']}×{sizes['b']} {dtype}")
        return f"{' + '.join(shown)} = {taken} bytes in {room}" if taken > room else None
