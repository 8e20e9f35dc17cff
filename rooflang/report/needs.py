"""What a step needs of any machine: bytes and FLOPs per token, by kind of byte and by part of the model.

It is read off the graph, with every operator run whole on one device: the least that a layout could do, but for caches
that would keep activations on the chip. It explains the ends of a frontier: the paper's analysis (arXiv 2609.12551,
Tables 7 and 8) splits the bytes of a decoded token into weights, which the batch shares, and KV cache, which nothing
shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from rooflang.assumptions import Assumptions, profile
from rooflang.hw.cluster import Device
from rooflang.ir.graph import Graph
from rooflang.ir.op import Op, op_kind
from rooflang.ir.tensor import Num, Role, Tensor
from rooflang.models import Model, Workload, load
from rooflang.models.workload import Stage

#: Parts of a model by the groups of its operators, in the order in which they are shown. Experts are FFNs, too.
PARTS = {
    "attention": ("attention", "projections", "rope", "kv cache", "state", "compressor", "indexer"),
    "FFN": ("experts", "shared expert", "latent adapters", "dense ffn", "ffn"),
    "routing": ("router", "dispatch"),
    "head": ("head", "embedding"),
    "other": (),
}

_PART = {group: part for part, groups in PARTS.items() for group in groups}

_KEPT = (Role.KV_CACHE, Role.STATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What an operator, a part of a model or a step needs, per token: bytes that memory moves, and FLOPs by the peak
    rate that they run at."""

    weight_bytes: float = 0.0
    kv_bytes: float = 0.0
    activation_bytes: float = 0.0
    flops: Mapping[str, float]

    @property
    def bytes(self) -> float:
        return self.weight_bytes + self.kv_bytes + self.activation_bytes

    @property
    def total_flops(self) -> float:
        return sum(self.flops.values())

    @property
    def intensity(self) -> float:
        """Arithmetic intensity, FLOPs per byte."""
        return self.total_flops / self.bytes if self.bytes else float("inf")

    def memory_s(self, device: Device) -> float:
        """Seconds of the memory of one device."""
        return self.bytes / device.hbm_bytes_per_s

    def compute_s(self, device: Device) -> float:
        """Seconds of one device's peaks. Raises `HardwareError` where it has none for a dtype."""
        return sum(flops / device.peak(dtype) for dtype, flops in self.flops.items())

    def __add__(self, other: Need) -> Need:
        flops = {k: self.flops.get(k, 0.0) + other.flops.get(k, 0.0) for k in {**self.flops, **other.flops}}
        return Need(
            weight_bytes=self.weight_bytes + other.weight_bytes,
            kv_bytes=self.kv_bytes + other.kv_bytes,
            activation_bytes=self.activation_bytes + other.activation_bytes,
            flops=flops,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNeed:
    """What a step of a batch over a context needs per token, by part of the model."""

    context: int
    batch: int
    parts: Mapping[str, Need]

    @property
    def total(self) -> Need:
        return sum(self.parts.values(), start=Need(flops={}))


def model_needs(
    model: str | Path | Model,
    *,
    stage: str,
    contexts: Sequence[int],
    batches: Sequence[int],
    assumptions: str | Assumptions = "physical",
) -> list[StepNeed]:
    """The needs of a model for every context and batch size. Raises a `RooflangError` for what no model or step is."""
    taken = assumptions if isinstance(assumptions, Assumptions) else profile(assumptions)
    known = model if isinstance(model, Model) else load(model)
    out = []
    for context in contexts:
        workload = Workload(stage=cast(Stage, stage), context=context, batch=1)
        graph = known.build(workload, taken)
        out += _graph_needs(graph, context, batches, workload.tokens, taken)
    return out


def _graph_needs(
    graph: Graph, context: int, batches: Sequence[int], tokens: int, assumptions: Assumptions
) -> list[StepNeed]:
    sizes: dict[str, Num] = {**graph.sizes, "batch": np.array(batches, np.float64)}
    steps: list[dict[str, Need]] = [{part: Need(flops={}) for part in PARTS} for _ in batches]
    known: dict[tuple[Any, ...], list[Need]] = {}
    for op in graph.ops:
        key = _alike(op)
        if key not in known:
            known[key] = _op_needs(op, sizes, batches, tokens, assumptions)
        part = _PART.get(op.group, "other")
        for step, need in zip(steps, known[key]):
            step[part] = step[part] + need
    return [StepNeed(context=context, batch=batch, parts=step) for batch, step in zip(batches, steps)]


def _alike(op: Op) -> tuple[Any, ...]:
    """What two operators have in common that need the same: layers repeat."""
    tensors = tuple((t.dims, t.dtype, t.role, t.fill) for t in (*op.operands, op.output))
    return op.kind, op.attrs, op.group, op.peak, tensors


def _op_needs(
    op: Op, sizes: Mapping[str, Num], batches: Sequence[int], tokens: int, assumptions: Assumptions
) -> list[Need]:
    kind = op_kind(op.kind)
    moved: dict[str, Num] = {"weight_bytes": 0.0, "kv_bytes": 0.0, "activation_bytes": 0.0}
    for index, tensor in enumerate(op.operands):
        share = kind.read_fraction(op, index, sizes, sizes, assumptions)
        moved[_purpose(tensor)] = moved[_purpose(tensor)] + _moved(tensor, sizes, share)
    written = _purpose(op.operands[kind.in_place]) if kind.in_place is not None else _purpose(op.output)
    moved[written] = moved[written] + _moved(op.output, sizes, kind.write_fraction(op, sizes, sizes))
    flops = kind.flops(op, sizes, sizes)
    per_token = 1.0 / (np.array(batches, np.float64) * tokens)
    bytes_of = {name: np.broadcast_to(value * per_token, per_token.shape) for name, value in moved.items()}
    flops_of = {peak: np.broadcast_to(value * per_token, per_token.shape) for peak, value in flops.items()}
    return [
        Need(
            **{name: float(values[at]) for name, values in bytes_of.items()},
            flops={peak: float(values[at]) for peak, values in flops_of.items()},
        )
        for at in range(len(batches))
    ]


def _purpose(tensor: Tensor) -> str:
    if tensor.role is Role.WEIGHT:
        return "weight_bytes"
    return "kv_bytes" if tensor.role in _KEPT else "activation_bytes"


def _moved(tensor: Tensor, sizes: Mapping[str, Num], share: Num) -> Num:
    """Bytes that memory moves; what comes on chip does so once (as in `rooflang.cost.model`)."""
    return tensor.bytes(sizes) * (np.maximum(0.0, share - 1.0) if tensor.role is Role.ON_CHIP else share)
