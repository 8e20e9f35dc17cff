"""Is a graph well formed? Names, shapes, dtypes, attributes, dangling tensors, two writers, cycles (named)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rooflang.errors import GraphError, RooflangError, UnknownNameError
from rooflang.ir.graph import Graph
from rooflang.ir.op import Op, OpKind, op_kind, signature
from rooflang.ir.tensor import DTYPES, LEAF_ROLES, Tensor

if TYPE_CHECKING:
    import networkx


def to_networkx(graph: Graph) -> networkx.DiGraph:
    """Operators and tensors as a bipartite digraph; node keys are `("op", name)` and `("tensor", name)`."""
    import networkx

    out = networkx.DiGraph(name=graph.name)
    for op in graph.ops:
        out.add_node(("op", op.name), kind="op", item=op)
        for tensor in op.operands:
            out.add_node(("tensor", tensor.name), kind="tensor", item=tensor)
            out.add_edge(("tensor", tensor.name), ("op", op.name))
        out.add_node(("tensor", op.output.name), kind="tensor", item=op.output)
        out.add_edge(("op", op.name), ("tensor", op.output.name))
    return out


def verify(graph: Graph) -> Graph:
    """Return the graph with operators in topological order, or raise `GraphError` that names what is wrong."""
    _check_writers(graph)
    for op in graph.ops:
        _check_op(graph, op)
    _check_dangling(graph)
    return Graph(name=graph.name, dims=graph.dims, ops=_ordered(graph), outputs=graph.outputs)


def _check_writers(graph: Graph) -> None:
    writers: dict[str, str] = {}
    names: set[str] = set()
    for op in graph.ops:
        if op.name in names:
            raise GraphError(f"two operators are called {op.name!r}", where=graph.name)
        names.add(op.name)
        if op.output.name in writers:
            raise GraphError(
                f"tensor {op.output.name!r} has two writers: {writers[op.output.name]} and {op.name}",
                where=graph.name,
            )
        writers[op.output.name] = op.name


def _check_op(graph: Graph, op: Op) -> None:
    where = f"{graph.name}: {op.name}"
    for tensor in (*op.operands, op.output):
        _check_tensor(graph, tensor, where)
    try:
        kind = op_kind(op.kind)
        _check_attrs(op, kind)
        kind.check(op)
        kind.check_sizes(op, graph.sizes)
    except RooflangError as error:
        error.where = f"{graph.name}: {error.where}" if error.where else graph.name
        raise
    for cut in signature(op):
        if len(cut.operands) != len(op.operands):
            raise GraphError(f"{op.kind} takes {len(cut.operands)} operands, not {len(op.operands)}", where=where)


def _check_attrs(op: Op, kind: OpKind) -> None:
    """A misspelt attribute would silently leave its default in force."""
    where = op.name
    for name, value in op.attrs:
        if name not in kind.attrs:
            raise UnknownNameError(f"attribute of {op.kind}", name, kind.attrs, where=where)
        types = kind.attrs[name]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise GraphError(
                f"attribute {name} is {value!r}", where=where, expected=" or ".join(t.__name__ for t in types)
            )
        try:
            hash(value)
        except TypeError:
            raise GraphError(f"attribute {name} is {value!r}", where=where, expected="an immutable value") from None


def _check_tensor(graph: Graph, tensor: Tensor, where: str) -> None:
    if tensor.dtype not in DTYPES:
        raise GraphError(f"tensor {tensor.name!r} has the unknown dtype {tensor.dtype!r}", where=where,
                         expected="one of " + ", ".join(DTYPES))  # fmt: skip
    if not (tensor.fill > 0 and math.isfinite(tensor.fill)):
        raise GraphError(f"tensor {tensor.name!r} has fill={tensor.fill}", where=where, expected="a positive share")
    for label in tensor.dims:
        if graph.sizes.get(label, 0) < 1:
            raise GraphError(
                f"tensor {tensor.name!r} has the dim {label!r}, which has no size",
                where=where,
                hint="declare it with a size of at least 1",
            )
        if label != label.lower():
            raise GraphError(f"dim label {label!r} is not lower case", where=where)
    if len(set(tensor.dims)) != len(tensor.dims):
        raise GraphError(f"tensor {tensor.name!r} has a dim twice", where=where)


def _check_dangling(graph: Graph) -> None:
    leaves: dict[str, Tensor] = {}
    for op in graph.ops:
        for tensor in op.operands:
            made = graph.producer.get(tensor.name)
            if made is None and tensor.role not in LEAF_ROLES:
                raise GraphError(
                    f"{op.name} reads {tensor.name!r}, which nothing produces",
                    where=graph.name,
                    expected="an operator's output, or a leaf: input, weight, kv_cache, state",
                )
            declared = made.output if made is not None else leaves.setdefault(tensor.name, tensor)
            if declared != tensor:
                raise GraphError(
                    f"{op.name} reads {tensor.name!r} as {_show(tensor)}, but "
                    f"{f'{made.name} makes' if made else 'another operator reads'} {_show(declared)}",
                    where=graph.name,
                )
    for name in graph.outputs:
        if name not in graph.producer:
            raise GraphError(f"output {name!r} is not produced by any operator", where=graph.name)
    if len(set(graph.outputs)) < len(graph.outputs):
        raise GraphError(f"an output is named twice: {' '.join(graph.outputs)}", where=graph.name)


def _show(tensor: Tensor) -> str:
    fill = "" if tensor.fill == 1.0 else f", fill {tensor.fill}"
    return f"[{' '.join(tensor.dims)}] {tensor.dtype} ({tensor.role}{fill})"


def _ordered(graph: Graph) -> tuple[Op, ...]:
    """Kahn's algorithm, ties by program order, so that a graph in order stays as it is."""
    from heapq import heapify, heappop, heappush

    rank = {op.name: i for i, op in enumerate(graph.ops)}
    missing = {op.name: len({t.name for t in op.operands if t.name in graph.producer}) for op in graph.ops}
    ready = [rank[name] for name, count in missing.items() if count == 0]
    heapify(ready)
    order: list[Op] = []
    while ready:
        op = graph.ops[heappop(ready)]
        order.append(op)
        for user in {u.name for u, _ in graph.consumers.get(op.output.name, ())}:
            missing[user] -= 1
            if missing[user] == 0:
                heappush(ready, rank[user])
    if len(order) < len(graph.ops):
        raise GraphError("the graph has a cycle: " + " → ".join(_cycle(graph)), where=graph.name)
    return tuple(order)


def _cycle(graph: Graph) -> list[str]:
    import networkx

    edges = networkx.find_cycle(to_networkx(graph))
    names = [node[1] for node, _ in edges if node[0] == "op"]
    return [*names, names[0]]
