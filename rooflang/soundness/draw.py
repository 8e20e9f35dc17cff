"""Random extents, arrays and layouts for a graph of one operator: shards uneven, empty, scattered; ties; few ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, REPLICATED, Spec
from rooflang.ir.digits import Digits
from rooflang.ir.evaluate import indexed
from rooflang.ir.exact import is_exact, settled
from rooflang.ir.graph import Graph
from rooflang.ir.kinds.joint import JOINT, features, joint_label
from rooflang.ir.op import Op, op_kind, signature
from rooflang.ir.reference.base import Array, reference
from rooflang.ir.tensor import INDEX_DTYPES, Tensor
from rooflang.ir.values import Value, place
from rooflang.soundness.source import Source

#: How often extents are drawn before an operator is taken to have none that fit.
_TRIES = 200


def extents(graph: Graph, source: Source, *, most: int = 5) -> Graph:
    """The graph with random extents that its operators accept. Raises `GraphError` if none are found."""
    for _ in range(_TRIES):
        sizes = {label: source.extent(most) for label in graph.sizes}
        for op in graph.ops:
            _fit(op, sizes, graph.sizes, source)
        if all(_accepted(op, sizes) for op in graph.ops):
            return graph.resized(**sizes)
    raise GraphError(f"no extents up to {most} fit", where=graph.name)


def _accepted(op: Op, sizes: Mapping[str, int]) -> bool:
    try:
        op_kind(op.kind).check_sizes(op, sizes)
    except GraphError:
        return False
    return True


def _fit(op: Op, sizes: dict[str, int], given: Mapping[str, int], source: Source) -> None:
    """Make extents agree where an operator relates them; what random extents meet often is left to chance."""
    for inside in (op.attr("outer"), op.attr("inner")):
        if isinstance(inside, Op):
            _fit(inside, sizes, given, source)
    for label in ("gate", "tap"):
        if label in sizes:
            sizes[label] = given[label]
    for label in ("even", "blocks"):
        if label in sizes:
            sizes[label] += sizes[label] % 2
    if op.kind in ("view", "flatten"):
        sizes["whole"] = sizes["outer"] * sizes["inner"]
    if op.kind == "rename":
        sizes["new"] = sizes["old"]
    if op.kind == JOINT:
        sizes[joint_label(op)] = sum(sizes[label] for label in features(op))
    if op.kind in ("segment", "part"):
        sizes["qkv"] = sizes["first"] + sizes["part"] + source.below(3)
    if op.kind == "repeat":
        sizes["kv"] = min(sizes["kv"], sizes["member"])
    if op.kind == "grouped_attention":
        sizes["kv"] = min(sizes["kv"], sizes["head"])
        sizes["ctx"] += sizes.get("seq", 0)
    if op.kind in ("latent_attention", "latent_norm", "expand_latent"):
        sizes["width"] += sizes["rank"]
    if "made" in sizes:
        sizes["made"] = sizes["part"] + sizes["width"] - sizes["rank"]
    if "query" in sizes:
        sizes["query"] += sizes.get("width", 0)
    if "nope" in sizes:
        sizes["nope"] = source.integer(1, sizes["query"])


def leaves(graph: Graph, source: Source, *, exact: bool = True) -> dict[str, Array]:
    """Arrays for the leaves: small integers with many ties, or indices where an operator looks rows up by them."""
    found = {}
    for leaf in graph.leaves:
        shape = [graph.sizes[d] for d in leaf.dims]
        bounds = [graph.sizes[label] for label in indexed(graph, leaf.name)]
        if leaf.dtype in INDEX_DTYPES and not bounds:
            bounds = [64]
        if bounds:
            found[leaf.name] = source.generator().integers(0, min(bounds), shape)
        else:
            found[leaf.name] = source.numbers(shape, exact=exact)
    return found


def whole(graph: Graph, arrays: Mapping[str, Array]) -> Array:
    """What the graph's one operator computes unsharded."""
    (op,) = graph.ops
    operands = [arrays[t.name] for t in op.operands]
    return settled((reference(op.kind).full(op, graph.sizes, *operands),), operands)[0]


def digits(graph: Graph, axis_sizes: Sequence[int], source: Source, *, loose: bool = False) -> Digits:
    """Owners of every label along every axis: nested and even as in a plan, nested and uneven, or scattered.

    Labels that an operator groups keep their groups together, and shards keep their alignment, unless `loose`.
    """
    rows = [] if loose else [row for op in graph.ops for row in signature(op)]
    pairs = {(row.grouped[0], row.grouped[1]) for row in rows if row.grouped}
    aligned = {row.dim: row.multiple_of for row in rows if row.multiple_of > 1}
    axes = range(len(axis_sizes))
    style = source.below(3)
    if style == 0:
        return Digits.nested(axis_sizes, graph.sizes, dict.fromkeys(graph.sizes, axes), sorted(pairs), aligned)
    rng = source.generator()
    owner: dict[tuple[str, int], Array] = {}
    for label, size in graph.sizes.items():
        blocks = size // aligned.get(label, 1)
        shards = rng.integers(0, int(np.prod(axis_sizes)), blocks)
        coordinates = np.unravel_index(np.sort(shards) if style == 1 else shards, axis_sizes)
        owner |= {(label, a): np.repeat(coordinates[a], aligned.get(label, 1)) for a in axes}
    for members, groups in sorted(pairs):
        each = -(-graph.sizes[members] // graph.sizes[groups])
        owner |= {(members, a): owner[(groups, a)][np.arange(graph.sizes[members]) // each] for a in axes}
    return Digits(axis_sizes=tuple(axis_sizes), sizes=graph.sizes, owner=owner)


def laid(tensor: Tensor, array: Array, spec: Spec, on: Digits, source: Source) -> Value:
    """An array over the mesh as its spec says; a partial one as random summands."""
    partial = [axis for axis, entry in enumerate(spec) if entry == PARTIAL]
    calm = tuple(REPLICATED if entry == PARTIAL else entry for entry in spec)
    if not partial:
        return place(tensor, array, spec, on)
    rest, pieces = array, {}
    shares = list(np.ndindex(*(on.axis_sizes[axis] for axis in partial)))
    for at in shares:
        summand = rest if at == shares[-1] else 0.5 * source.numbers(array.shape, exact=is_exact(array))
        rest = rest - summand
        for rank, piece in place(tensor, summand, calm, on).pieces.items():
            if all(rank[axis] == coordinate for axis, coordinate in zip(partial, at, strict=True)):
                pieces[rank] = piece
    return Value(tensor=tensor, spec=spec, pieces=pieces)
