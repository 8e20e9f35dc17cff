"""`shrunk`: a graph small enough to be evaluated, without touching any label, so that modes and transfers of the large
graph apply to the small one."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from rooflang.ir.graph import Graph
from rooflang.ir.kinds.conv import tap_label
from rooflang.ir.kinds.einsum import GATE
from rooflang.ir.kinds.heads import replaced
from rooflang.ir.kinds.hyper import copies_label
from rooflang.ir.kinds.joint import JOINT, features, joint_label
from rooflang.ir.kinds.moe import expert_label
from rooflang.ir.kinds.quantised import BLOCK
from rooflang.ir.kinds.segment import PART, parted
from rooflang.ir.op import Op, signature

#: Smallest extent of a dim, and of one where it is known which axes cut it.
_LEAST, _LEAST_KNOWN = 4, 2

#: What one operator needs another may have made longer: groups of heads the width of a key, and that a joint product.
_PASSES = 6


def shrunk(graph: Graph, axis_sizes: Sequence[int], cuts: Mapping[str, Collection[int]] | None = None) -> Graph:
    """The graph with small dims, each of which divides over the axes that cut it: those in `cuts` (default: all).

    A choice stays a choice (more experts than are chosen, more entries than are selected) and an entry of a cache pools
    several positions.
    """
    everywhere = dict.fromkeys(graph.sizes, range(len(axis_sizes)))
    units = _units(graph, axis_sizes, everywhere if cuts is None else cuts)
    least = _LEAST if cuts is None else _LEAST_KNOWN
    sizes = {label: _multiple(least, unit) for label, unit in units.items()}
    for _ in range(_PASSES):
        before = dict(sizes)
        for op in graph.ops:
            sizes.update(_needs(op, units, sizes))
        if sizes == before:
            break
    for op in graph.ops:
        if op.kind == "embed":  # a row for every token, so that no two of them have to be told apart by rounding
            vocab = op.operands[1].dims[0]
            sizes[vocab] = _multiple(math.prod(sizes[d] for d in op.operands[0].dims), units[vocab])
    return graph.resized(**sizes)


def _multiple(least: int, unit: int) -> int:
    return unit * -(-least // unit)


def _units(graph: Graph, axis_sizes: Sequence[int], cuts: Mapping[str, Collection[int]]) -> dict[str, int]:
    """What each extent has to be a multiple of. Labels that are cut together are cut by the axes of both."""
    axes = {label: set(cuts.get(label, ())) for label in graph.sizes}
    pairs = [row.grouped for op in graph.ops for row in signature(op) if row.grouped]
    for _ in pairs:  # at most so many steps lead from one label to another
        for one, other in pairs:
            axes[one] = axes[other] = axes[one] | axes[other]
    return {label: math.prod(axis_sizes[axis] for axis in found) for label, found in axes.items()}


def _needs(op: Op, units: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    """Extents of labels to which an operator gives a meaning of their own."""
    if op.kind == "gated_matmul":
        return {GATE: 2}
    if op.kind == "pool":
        return {op.operands[0].dims[1]: 2 * sizes[op.output.dims[1]]}
    if op.kind == "index_select":
        return {op.output.dims[-1]: max(1, sizes[op.operands[2].dims[1]] // 2)}
    if op.kind == "route":
        expert = expert_label(op)
        return {expert: max(sizes[expert], _multiple(2 * op.attr("top_k", 1), units[expert]))}
    if op.kind == "hash_route":
        return dict.fromkeys(op.operands[2].dims[1:], 2)
    if op.kind in ("hyper_expand", "hyper_read", "hyper_write"):
        return {copies_label(op): 2}
    if op.kind == "short_conv":
        return {tap_label(op): op.attr("taps")}
    return _parts_need(op, units, sizes)


def _parts_need(op: Op, units: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    """The same for operators that take a dim apart, in segments, rows, blocks, groups or pairs."""
    if op.kind == JOINT:
        return {joint_label(op): sum(sizes[label] for label in features(op))}
    if op.kind in ("segment", PART):
        old, (new,) = parted(op)
        taken = sizes[new] + sum(sizes[label] for label in op.attr("after", ()))
        return {old: max(sizes[old], _multiple(taken, units[old]))}
    if op.kind == "view":
        old, (outer, inner) = parted(op)
        return {old: sizes[outer] * sizes[inner]}
    if op.kind == "rename":
        old, (new,) = parted(op)
        return dict.fromkeys((old, new), max(sizes[old], sizes[new]))
    if op.kind == "flatten":
        (outer, inner), new = replaced(op)
        return {new: sizes[outer] * sizes[inner]}
    if op.kind == "repeat":
        (group,), member = replaced(op)
        return {member: 2 * sizes[group]}
    if op.kind == "block_matmul":
        label = op.operands[0].dims[-1]
        return {label: units[label] * int(op.attr("block", BLOCK))}
    if op.kind == "grouped_attention":
        return {op.operands[0].dims[-2]: 2 * sizes[op.operands[1].dims[2]]}
    if op.kind == "rope":
        label = op.operands[0].dims[-1]
        return {label: max(sizes[label], 2 * units[label])}
    if op.kind in ("latent_norm", "absorb_query", "latent_attention", "expand_latent"):
        return _latent_needs(op, units, sizes)
    return {}


def _latent_needs(op: Op, units: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    """An entry has its rank and rotary elements; a query is as long as either of its parts."""
    first, second = op.operands[:2]
    if op.kind == "latent_norm":
        width, rank = first.dims[-1], second.dims[0]
        return {width: max(sizes[width], _multiple(sizes[rank] + 1, units[width]))}
    if op.kind == "expand_latent":
        return _expanded_needs(op, units, sizes)
    if op.kind == "absorb_query":
        query, nope = first.dims[-1], second.dims[1]
        return {query: max(sizes[query], _multiple(sizes[nope], units[query]))}
    width, rank, query = op.operands[2].dims[2], first.dims[-1], second.dims[-1]
    wide = max(sizes[width], _multiple(sizes[rank] + 1, units[width]))
    return {width: wide, query: max(sizes[query], _multiple(wide - sizes[rank], units[query]))}


def _expanded_needs(op: Op, units: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    """A key has what is made of the rank, and the rotary elements; a value has the first of them only."""
    width, (_, part, rank), made = op.operands[0].dims[2], op.operands[1].dims, op.output.dims[-1]
    wide = max(sizes[width], _multiple(sizes[rank] + 1, units[width]))
    if made == part:
        return {width: wide}
    long = _multiple(wide - sizes[rank] + 1, units[made])
    return {width: wide, made: max(long, sizes[made]), part: max(long, sizes[made]) - (wide - sizes[rank])}
