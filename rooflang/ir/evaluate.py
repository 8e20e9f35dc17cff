"""What a graph computes: its references run on whole arrays."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir.exact import settled, shortened, to_exact
from rooflang.ir.graph import Graph
from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.kinds.recall import RECALL
from rooflang.ir.op import Op, op_kind
from rooflang.ir.reference.base import Array, reference
from rooflang.ir.tensor import INDEX_DTYPES, Tensor

#: Ids that look no rows up are below this.
_LARGEST = 64


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
    """Of the tensors in `short` those that an operator reads shortened: all of its operands, but for a move's or a
    recall's, whose output is its operand."""
    return frozenset() if op.kind in (*MOVES, RECALL) else frozenset(t.name for t in op.operands if t.name in short)


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
    different if there are enough; other ids, such as positions, are below `_LARGEST`.

    With `exact` the numbers are integers from −3 to 3, as exact numbers (`rooflang.ir.exact`). Caches that are recalled
    hold what they are the caches of.
    """
    rng = np.random.default_rng(seed)
    leaves = {}
    for leaf in graph.leaves:
        shape = [graph.sizes[d] for d in leaf.dims]
        bounds = [graph.sizes[label] for label in indexed(graph, leaf.name)]
        if leaf.dtype in INDEX_DTYPES and not bounds:
            bounds = [_LARGEST]
        if bounds:
            leaves[leaf.name] = _ids(rng, min(bounds), shape)
        else:
            leaves[leaf.name] = to_exact(1.0 * rng.integers(-3, 4, shape)) if exact else rng.uniform(-1.0, 1.0, shape)
    return _with_kept(graph, leaves)


def _with_kept(graph: Graph, leaves: dict[str, Array]) -> dict[str, Array]:
    """The leaves, recalled caches holding what is computed in their place. An append puts this step's entry over the
    last one."""
    recalls = [op for op in graph.ops if op.kind == RECALL]
    values = evaluate(graph, leaves) if recalls else {}
    for op in recalls:
        computed, cache = op.operands[0], op.operands[1]
        while cache.name in graph.producer:
            writer = graph.producer[cache.name]
            place = op_kind(writer.kind).in_place
            if place is None:
                break
            cache = writer.operands[place]
        if cache.name in leaves:
            order = [computed.dims.index(label) for label in cache.dims]
            leaves[cache.name] = np.transpose(values[computed.name], order)
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
