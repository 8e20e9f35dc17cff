"""The JSON of a certificate, as records: what may stand in it, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

SCHEMA = "rooflang.certificate/1"


class StepJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One application of a primitive; `axis` is -1 where none is concerned (see `ir.layout.Step`)."""

    primitive: str
    target: str
    dim: str
    axis: int


class MoveJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A transfer of a tensor between two specs, and the primitives that make it."""

    tensor: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    steps: tuple[StepJson, ...]


class ReadJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How operand number `operand` of a kernel comes to lie as the kernel reads it."""

    operand: int
    steps: tuple[MoveJson, ...]


class KernelJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The kernel that makes tensor `kernel`: the primitives that lead to its mode, and its reads."""

    kernel: str
    steps: tuple[StepJson, ...]
    reads: tuple[ReadJson, ...]


class IdentityJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An identity that is inserted (target: a leaf, dim: a memory tier) or removed (dim: its operand)."""

    primitive: str
    target: str
    dim: str


class KindJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is done to all `blocks` of one kind."""

    kind: str
    blocks: tuple[str, ...]
    kernels: tuple[KernelJson, ...]
    exits: dict[str, tuple[MoveJson, ...]]
    tiers: tuple[IdentityJson, ...]
    removed: tuple[IdentityJson, ...]


class ApartJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The split of operators, one of each of some blocks, into sums of parts of so many elements of a dim."""

    targets: tuple[str, ...]
    dim: str
    counts: tuple[int, ...]


class JointJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The joint products of operators that share their input, a group of some blocks each, beside those operators."""

    targets: tuple[tuple[str, ...], ...]


class EvaluatedJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """That the plan was evaluated beside the unsharded graph, in which arithmetic, on which dims and mesh, from which
    seed, and what came of it. Nothing is built on it: who doubts it evaluates again."""

    verdict: str
    arithmetic: tuple[str, ...]
    dims: dict[str, int]
    mesh: tuple[int, ...]
    seed: int


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """All of it: `graph` is the fingerprint of the initial graph, with what `apart` takes apart and `joint` adds,
    `boundary` the spec of each port group. `control` are the pairs of kernels of add_control_edge, `streams` the
    streams that set_compute gave to kernels."""

    schema: str
    graph: str
    mesh: tuple[int, ...]
    stages: tuple[tuple[str, ...], ...]
    boundary: dict[int, tuple[str, ...]]
    kinds: tuple[KindJson, ...]
    control: tuple[tuple[str, str], ...] = ()
    streams: dict[str, int] = {}
    apart: tuple[ApartJson, ...] = ()
    joint: tuple[JointJson, ...] = ()
    evaluated: EvaluatedJson | None = None


def first_difference(stated: Any, again: Any) -> tuple[str, Any, Any] | None:
    """Where two JSON values differ first, as `kinds[0].kernels[2].steps`, and what stands there in either."""
    return next(_differences(stated, again, ""), None)


def _differences(stated: Any, again: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(stated, dict) and isinstance(again, dict):
        for key in {**again, **stated}:
            yield from _differences(stated.get(key), again.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(stated, (list, tuple)) and isinstance(again, (list, tuple)):
        for index, (one, other) in enumerate(zip(stated, again, strict=False)):
            yield from _differences(one, other, f"{where}[{index}]")
        if len(stated) != len(again):
            yield f"the number of {where}", len(stated), len(again)
    elif stated != again:
        yield where, stated, again
