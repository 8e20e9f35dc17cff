"""Broken checks of control edges, copies, side effects, identities and placement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from rooflang.hw.cluster import Device
from rooflang.hw.levels import Tier
from rooflang.ir.graph import Graph
from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.op import Op, op_kind
from rooflang.ir.tensor import DTYPES, Tensor
from rooflang.rules import (
    add_control_edge,
    insert_identity,
    remove_identity,
)
from rooflang.rules.order import Cells, ControlEdge, conflicts, overwritten, path, stateful
from rooflang.rules.record import Ok, Refusal, Verdict
from rooflang.soundness.identities import FORMATS, Copies, Tiers
from rooflang.soundness.mutants.record import Mutant
from rooflang.soundness.orders import AddedEdges, Owned, RemovedEdges, RemovedMoves, Repeated
from rooflang.soundness.places import Devices, Memories

_NO = Refusal(code="no", reason="")

Edges = Collection[ControlEdge]


def _ok(yes: bool) -> Verdict:
    return Ok(result=None) if yes else _NO


# -- copies and side effects ------------------------------------------------------------------------------------------


def _pure_too(*kinds: str) -> Callable[[Op], Verdict]:
    """These kinds taken for pure ones."""
    return lambda op: _ok(op_kind(op.kind).pure or op.kind in kinds)


def _by_name(op: Op) -> Verdict:
    """Only an append is known to have a side effect."""
    return _ok(op.kind != "kv_append")


def _by_memory(op: Op) -> Verdict:
    """Only what writes in place is known to have a side effect."""
    return _ok(op_kind(op.kind).in_place is None)


_EFFECTS: dict[str, Callable[[Op], Verdict]] = {
    "an append to a KV cache": _pure_too("kv_append"),
    "a random operator": _pure_too("stateful_sample"),
    "a push into a state": _pure_too("conv_push"),
    "side effects known by one name": _by_name,
    "side effects known by their memory": _by_memory,
}


# -- control edges ----------------------------------------------------------------------------------------------------


def _any_edge(graph: Graph, before: str, after: str, *, control: Edges = ()) -> Verdict:
    return _ok(before != after)


def _no_two_cycle(graph: Graph, before: str, after: str, *, control: Edges = ()) -> Verdict:
    """Only cycles of two are seen."""
    reads = {t.name for t in graph.op_by_name[before].operands}
    return _ok(before != after and (after, before) not in control and graph.op_by_name[after].output.name not in reads)


def _data_only(graph: Graph, before: str, after: str, *, control: Edges = ()) -> Verdict:
    return add_control_edge.check(graph, before, after, control=())


def _control_only(graph: Graph, before: str, after: str, *, control: Edges = ()) -> Verdict:
    """Paths of control edges are seen, data are not."""
    followers: dict[str, list[str]] = {}
    for first, second in control:
        followers.setdefault(first, []).append(second)
    seen, stack = {after}, [after]
    while stack:
        for name in followers.get(stack.pop(), ()):
            if name not in seen:
                seen.add(name)
                stack.append(name)
    return _ok(before not in seen)


def _self_edge(graph: Graph, before: str, after: str, *, control: Edges = ()) -> Verdict:
    return _ok(before == after or not path(graph, control, after, before))


def _any_removal(graph: Graph, before: str, after: str, *, control: Edges) -> Verdict:
    return _ok((before, after) in control)


def _unless(blocks: Callable[[Graph, ControlEdge, Edges, Op, Op], bool]) -> Callable[..., Verdict]:
    """Refuse only where this says so of some conflict."""

    def check(graph: Graph, before: str, after: str, *, control: Edges) -> Verdict:
        edge = (before, after)
        return _ok(not any(blocks(graph, edge, control, a, b) for a, b in conflicts(graph)))

    return check


def _own_pair(graph: Graph, edge: ControlEdge, control: Edges, a: Op, b: Op) -> bool:
    """Only an edge between the two themselves is kept."""
    return set(edge) == {a.name, b.name}


def _still_some_path(graph: Graph, edge: ControlEdge, control: Edges, a: Op, b: Op) -> bool:
    """A path that the removed edge is on counts too."""
    pair = (a.name, b.name) if path(graph, control, a.name, b.name) else (b.name, a.name)
    return set(edge) <= set(pair) and not path(graph, control, *pair)


def _lost(graph: Graph, edge: ControlEdge, control: Edges, a: str, b: str) -> bool:
    rest = [other for other in control if other != edge]
    return bool(path(graph, control, a, b)) and not path(graph, rest, a, b)


def _writes_first(graph: Graph, edge: ControlEdge, control: Edges, a: Op, b: Op) -> bool:
    """Only a write before a read is kept, a read before a write is not."""
    return _lost(graph, edge, control, a.name, b.name) and op_kind(a.kind).in_place is not None


def _memory_only(graph: Graph, edge: ControlEdge, control: Edges, a: Op, b: Op) -> bool:
    """The order of draws is not kept."""
    lost = _lost(graph, edge, control, a.name, b.name) or _lost(graph, edge, control, b.name, a.name)
    return lost and not stateful(a)


# -- identities -------------------------------------------------------------------------------------------------------


def _any_dtype(tensor: Tensor, tier: str, *, dtype: str = "") -> Verdict:
    return insert_identity.check(tensor, tier)


def _smaller(tensor: Tensor, tier: str, *, dtype: str = "") -> Verdict:
    """A cast to fewer bits is taken for a move."""
    fewer = not dtype or FORMATS[dtype].bits <= FORMATS[tensor.dtype].bits
    return insert_identity.check(tensor, tier) if fewer else _NO


def _any_tensor(tensor: Tensor, tier: str, *, dtype: str = "") -> Verdict:
    verdict = insert_identity.check(tensor, tier, dtype=dtype)
    return Ok(result=tier) if isinstance(verdict, Refusal) and verdict.code == "not-resident" else verdict


def _any_tier(tensor: Tensor, tier: str, *, dtype: str = "") -> Verdict:
    verdict = insert_identity.check(tensor, tier, dtype=dtype)
    return Ok(result=tier) if isinstance(verdict, Refusal) and verdict.code == "no-such-tier" else verdict


def _lossy_move(op: Op, *, ops: Sequence[Op] = ()) -> Verdict:
    return _ok(op.kind in MOVES)


def _any_unary(op: Op, *, ops: Sequence[Op] = ()) -> Verdict:
    return _ok(len(op.operands) == 1 and op.operands[0].dtype == op.output.dtype)


def _narrowing(op: Op, *, ops: Sequence[Op] = ()) -> Verdict:
    """A move to fewer bits is left out, one to more is not."""
    order = list(FORMATS)
    return _ok(op.kind in MOVES and order.index(op.operands[0].dtype) <= order.index(op.output.dtype))


def _snapshot(of_operand: bool, of_output: bool) -> Callable[..., Verdict]:
    """Moves left out although operand or output are overwritten."""

    def check(op: Op, *, ops: Sequence[Op] = ()) -> Verdict:
        written, cells = overwritten(ops), Cells.of(ops)
        kept = [op.operands[0]] * of_operand + [op.output] * of_output
        seen = any(cells.of_tensor(t.name) in written for t in kept)
        return Refusal(code="snapshot", reason="") if seen else remove_identity.check(op)

    return check


# -- placement --------------------------------------------------------------------------------------------------------


def _any_device(op: Op, device: Device, stream: str = "compute") -> Verdict:
    return Ok(result=(device.name, stream))


def _own_peak(op: Op, device: Device, stream: str = "compute") -> Verdict:
    """Only the rate of the operator's main work is looked for."""
    return _ok(op.peak in device.peaks)


def _some_peak(op: Op, device: Device, stream: str = "compute") -> Verdict:
    """One rate of several is enough."""
    needed = op_kind(op.kind).flops(op, dict.fromkeys(op.labels, 1), dict.fromkeys(op.labels, 1))
    return _ok(not needed or any(peak in device.peaks for peak in needed))


def _weights_peak(op: Op, device: Device, stream: str = "compute") -> Verdict:
    """The dtype of the first operand is taken for the rate."""
    return _ok(DTYPES[op.operands[0].dtype].peak in device.peaks)


def _memory(needed: Callable[[Tensor, Mapping[str, int]], float], *, slack: float = 0.0, all_free: bool = False) -> Any:
    def check(tensor: Tensor, memory: Tier, sizes: Mapping[str, int], *, taken_bytes: float = 0.0) -> Verdict:
        free = memory.capacity_bytes - (0.0 if all_free else taken_bytes)
        return _ok(needed(tensor, sizes) <= free + slack)

    return check


_TABLE: dict[str, dict[str, Any]] = {
    "add_control_edge": {
        "an edge that closes a cycle": AddedEdges(check=_any_edge),
        "cycles of two only are seen": AddedEdges(check=_no_two_cycle),
        "cycles by control edges are not seen": AddedEdges(check=_data_only),
        "cycles by data are not seen": AddedEdges(check=_control_only),
        "an operator that waits for itself": AddedEdges(check=_self_edge),
    },
    "remove_control_edge": {
        "an edge from a write to a read": RemovedEdges(check=_any_removal),
        "a path that the edge is part of": RemovedEdges(check=_unless(_own_pair)),
        "the edge counted on after it is gone": RemovedEdges(check=_unless(_still_some_path)),
        "an edge from a read to a write": RemovedEdges(check=_unless(_writes_first)),
        "an edge between two draws": RemovedEdges(check=_unless(_memory_only)),
    },
    "insert_identity": {
        "a lossy cast": Tiers(check=_any_dtype),
        "a cast to fewer bits": Tiers(check=_smaller),
        "an activation": Tiers(check=_any_tensor),
        "a memory that no move leads to": Tiers(check=_any_tier),
    },
    "remove_identity": {
        "a lossy move": Copies(check=_lossy_move),
        "a move to fewer bits": Copies(check=_narrowing),
        "any operator of one operand": Copies(check=_any_unary),
        "a copy of what is overwritten": RemovedMoves(check=_snapshot(False, True)),
        "a copy that is overwritten": RemovedMoves(check=_snapshot(True, False)),
    },
    "set_compute": {
        "a device without the rate": Devices(check=_any_device),
        "one rate of two": Devices(check=_own_peak),
        "any rate of several": Devices(check=_some_peak),
        "the first operand's rate": Devices(check=_weights_peak),
    },
    "set_memory": {
        "what lies there already is not counted": Memories(check=_memory(lambda t, s: t.bytes(s), all_free=True)),
        "one byte too many": Memories(check=_memory(lambda t, s: t.bytes(s), slack=1.0)),
        "elements for bytes": Memories(check=_memory(lambda t, s: t.elements(s))),
        "one dim forgotten": Memories(check=_memory(lambda t, s: t.bytes({**s, "b": 1}))),
    },
}


def mutants() -> Iterator[Mutant]:
    """All of them."""
    for name, check in _EFFECTS.items():
        yield Mutant(name=f"copied: {name}", rule="dup_kernel", claim=Repeated(check=check))
        yield Mutant(name=f"left to its owner: {name}", rule="dedup_kernel", claim=Owned(check=check))
    for rule, claims in _TABLE.items():
        for name, claim in claims.items():
            yield Mutant(name=name, rule=rule, claim=claim)
