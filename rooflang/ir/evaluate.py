"""What a graph computes: its references run on whole arrays. `shrunk` makes it small enough for that, without touching
any label, so that modes and transfers of the large graph apply to the small one."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir.exact import settled, shortened, to_exact
from rooflang.ir.graph import Graph
from rooflang.ir.kinds.conv import tap_label
from rooflang.ir.kinds.einsum import GATE
from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.kinds.hyper import copies_label
from rooflang.ir.kinds.moe import expert_label
from rooflang.ir.kinds.quantised import BLOCK
from rooflang.ir.kinds.segment import parted
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, reference
from rooflang.ir.tensor import Tensor


def evaluate(graph: Graph, leaves: Mapping[str, Array], *, short: Collection[str] = ()) -> dict[str, Array]:
    """Every tensor of the graph, leaves included, from arrays for the leaves.

    Operators see exact values of the tensors in `short` shortened by an oracle (`reads_short`).

    Raises `UnknownNameError` for a leaf without an array and `GraphError` for one of another shape.
    """
    values = {leaf.name: leaf_array(graph, leaf, leaves) for leaf in graph.leaves}
    for op in graph.ops:
        read = reads_short(op, short)
        operands = [shortened(values[t.name]) if t.name in read else values[t.name] for t in op.operands]
        (values[op.output.name],) = settled((reference(op.kind).full(op, graph.sizes, *operands),), operands)
    return values


def reads_short(op: Op, short: Collection[str]) -> frozenset[str]:
    """Of the tensors in `short` those that an operator reads shortened: all of its operands, but for a move's, whose
    output is its operand."""
    return frozenset() if op.kind in MOVES else frozenset(t.name for t in op.operands if t.name in short)


def leaf_array(graph: Graph, leaf: Tensor, leaves: Mapping[str, Array]) -> Array:
    """The array given for a leaf, its shape checked."""
    if leaf.name not in leaves:
        raise UnknownNameError("leaf", leaf.name, leaves, where=graph.name)
    array = np.asarray(leaves[leaf.name])
    shape = tuple(graph.sizes[d] for d in leaf.dims)
    if array.shape != shape:
        raise GraphError(f"leaf {leaf.name!r} has the shape {array.shape}", where=graph.name, expected=str(shape))
    return array


def random_leaves(graph: Graph, seed: int = 0, *, exact: bool = False) -> dict[str, Array]:
    """Arrays for all leaves: uniform numbers in [−1, 1), or valid indices where an operator looks rows up by them, all
    different if there are enough.

    With `exact` the numbers are integers from −3 to 3, as exact numbers (`rooflang.ir.exact`).
    """
    rng = np.random.default_rng(seed)
    leaves = {}
    for leaf in graph.leaves:
        shape = [graph.sizes[d] for d in leaf.dims]
        bounds = [graph.sizes[label] for label in indexed(graph, leaf.name)]
        if bounds:
            leaves[leaf.name] = _ids(rng, min(bounds), shape)
        else:
            leaves[leaf.name] = to_exact(1.0 * rng.integers(-3, 4, shape)) if exact else rng.uniform(-1.0, 1.0, shape)
    return leaves


def _ids(rng: np.random.Generator, bound: int, shape: Sequence[int]) -> Array:
    count = math.prod(shape)
    return rng.permutation(bound)[:count].reshape(shape) if count <= bound else rng.integers(0, bound, shape)


def indexed(graph: Graph, tensor: str) -> Iterator[str]:
    """Labels whose indices a tensor holds, according to those that read it."""
    for op, index in graph.consumers.get(tensor, ()):
        if op.kind in MOVES:
            yield from indexed(graph, op.output.name)
        found = reference(op.kind).ids(op).get(index)
        if found is not None:
            yield found


def shrunk(graph: Graph, axis_sizes: Sequence[int]) -> Graph:
    """The graph with small dims, each of which divides over a mesh of these axes.

    A choice stays a choice (more experts than are chosen, more entries than are selected) and an entry of a cache pools
    several positions.
    """
    unit = math.prod(axis_sizes)
    base = unit * -(-4 // unit)
    sizes = dict.fromkeys(graph.sizes, base)
    for op in graph.ops:
        sizes.update(_needs(op, unit, base, sizes))
    for op in graph.ops:
        if op.kind == "embed":  # a row for every token, so that no two of them have to be told apart by rounding
            tokens = math.prod(sizes[d] for d in op.operands[0].dims)
            sizes[op.operands[1].dims[0]] = unit * -(-tokens // unit)
    return graph.resized(**sizes)


def _needs(op: Op, unit: int, base: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes of labels to which an operator gives a meaning of their own."""
    if op.kind == "gated_matmul":
        return {GATE: 2}
    if op.kind == "pool":
        return {op.operands[0].dims[1]: 2 * base}
    if op.kind == "index_select":
        return {op.output.dims[-1]: base // 2}
    if op.kind == "route":
        expert = expert_label(op)
        return {expert: max(sizes[expert], unit * -(-2 * op.attr("top_k", 1) // unit))}
    if op.kind == "hash_route":
        return dict.fromkeys(op.operands[2].dims[1:], 2)
    if op.kind == "segment":
        return {parted(op)[0]: max(sizes[parted(op)[0]], base * (1 + len(op.attr("after", ()))))}
    if op.kind == "view":
        return {parted(op)[0]: base * base}
    if op.kind == "block_matmul":
        return {op.operands[0].dims[-1]: unit * op.attr("block", BLOCK)}
    if op.kind == "grouped_attention":
        return {op.operands[0].dims[-2]: 2 * base}
    if op.kind in ("hyper_expand", "hyper_read", "hyper_write"):
        return {copies_label(op): 2}
    if op.kind == "short_conv":
        return {tap_label(op): op.attr("taps")}
    return {}
