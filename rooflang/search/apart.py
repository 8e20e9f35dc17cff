"""What a plan takes apart, evaluated beside what it was: the rewriting is done again on small dims, with as many parts,
and has to make the same of the same leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rooflang.errors import PlacementError
from rooflang.ir.apart import Apart, parts_of, taken_apart
from rooflang.ir.evaluate import evaluate, random_leaves
from rooflang.ir.graph import Graph
from rooflang.ir.op import Op
from rooflang.ir.shrink import shrunk
from rooflang.ir.tensor import Role
from rooflang.ir.verify import verify
from rooflang.search.problem import Problem


def check_apart(problem: Problem, *, seed: int = 0) -> None:
    """Evaluate everything that a problem takes apart beside what it was. Raises `PlacementError` where they differ."""
    graph = problem.graph
    for each in problem.apart:
        if isinstance(each, Apart):  # what joins operators only adds to them, and is evaluated where it is read
            check_parts(graph, each, seed=seed)
        graph = each.of(graph)


def check_parts(graph: Graph, apart: Apart, *, seed: int = 0) -> None:
    """Evaluate each sum beside its parts, exactly, on small dims. Raises `PlacementError` where they differ."""
    for target in apart.targets:
        small = _small(graph, target, apart)
        counts = _shares(small.sizes[apart.dim], len(apart.counts))
        leaves = random_leaves(small, seed, exact=True)
        parts = parts_of(apart.dim, counts)
        given = {
            part.name(leaf.name): np.take(leaves[leaf.name], range(part.start, part.stop), leaf.dims.index(part.dim))
            for leaf in small.leaves
            if apart.dim in leaf.dims
            for part in parts
        }
        whole = evaluate(small, leaves)
        found = evaluate(taken_apart(small, target, apart.dim, counts), {**leaves, **given})
        if not np.array_equal(whole[small.outputs[0]], found[small.outputs[0]]):
            raise PlacementError(f"the parts of {target} do not add up to it", where=graph.name)


def _small(graph: Graph, target: str, apart: Apart) -> Graph:
    """The operators of a block that lead to the target, on small dims."""
    op = graph.op_by_name[target]
    wanted, ops = {op.output.name}, list[Op]()
    for other in reversed(graph.ops):
        if other.output.name in wanted and other.block == op.block:
            wanted |= {tensor.name for tensor in other.operands}
            ops.append(other)
    made = {other.output.name for other in ops}
    given = {
        tensor.name: replace(tensor, role=Role.INPUT)
        for other in ops
        for tensor in other.operands
        if tensor.name not in made and tensor.name in graph.producer
    }
    ops = [replace(o, operands=tuple(given.get(t.name, t) for t in o.operands)) for o in reversed(ops)]
    alone = verify(Graph(name=target, dims=graph.dims, ops=tuple(ops), outputs=(op.output.name,)))
    return shrunk(alone, (len(apart.counts),), {apart.dim: (0,)})


def _shares(total: int, parts: int) -> tuple[int, ...]:
    """Uneven where it can be: the first part is larger."""
    return (total - parts + 1, *(1,) * (parts - 1))
