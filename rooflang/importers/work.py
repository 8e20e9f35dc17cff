"""What a program does, in an order that does not matter: products, attention and the rest, with FLOPs and bytes; and a
comparison of two such lists.

FLOPs are counted as PyTorch's own counter (`torch.utils.flop_counter`) does: two for each multiplication and addition
of a product, and attention over all positions, masked or not. Bytes are those of operands and output, each once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rooflang.ir.graph import Graph
from rooflang.ir.kinds.einsum import summed
from rooflang.ir.op import Op

Sort = Literal["product", "attention", "other"]

#: Sorts that are compared: of other operators a trace says too little.
COMPARED: tuple[Sort, ...] = ("product", "attention")

#: Kinds that move or rename what is there, and no work of their own.
_FREE = frozenset({"view", "flatten", "rename", "repeat", "segment"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One operator: a product of `shape` = (rows, summed, columns), an attention of (queries, positions, width), of all
    batches and heads together; of others only the bytes are known."""

    sort: Sort
    name: str
    flops: float
    bytes: float
    shape: tuple[int, int, int] = (0, 0, 0)


def product_work(
    name: str, batch: float, rows: float, inner: float, columns: float, width_bytes: Sequence[float]
) -> Work:
    """A product of `batch` pairs (rows inner) by (inner columns); the last are bytes of an element of each tensor."""
    elements = (batch * rows * inner, batch * inner * columns, batch * rows * columns)
    return Work(
        sort="product",
        name=name,
        flops=2 * batch * rows * inner * columns,
        bytes=sum(each * width for each, width in zip(elements, width_bytes, strict=True)),
        shape=(round(batch * rows), round(inner), round(columns)),
    )


def graph_work(graph: Graph) -> list[Work]:
    """What a graph does."""
    return [_op_work(graph, op) for op in graph.ops if op.kind not in _FREE]


def _op_work(graph: Graph, op: Op) -> Work:
    moved = sum(tensor.bytes(graph.sizes) for tensor in (*op.operands, op.output))
    if op.kind in _PRODUCTS:
        sort: Sort = "product"
        batch, rows, inner, columns = _PRODUCTS[op.kind](op, graph.sizes)
        flops, shape = 2.0 * batch * rows * inner * columns, (round(batch * rows), inner, columns)
    elif op.kind in _ATTENTION:
        sort = "attention"
        queries, positions, key, value = _ATTENTION[op.kind](op, graph.sizes)
        flops, shape = 2.0 * queries * positions * (key + value), (queries, positions, key)
    else:
        return Work(sort="other", name=op.name, flops=0.0, bytes=moved)
    return Work(sort=sort, name=op.name, flops=flops, bytes=moved, shape=shape)


def _extent(sizes: Mapping[str, int], labels: Iterable[str]) -> int:
    return math.prod(sizes[label] for label in labels)


def _matmul(op: Op, sizes: Mapping[str, int]) -> tuple[float, float, int, int]:
    """Batch, rows, summed extent and columns of a product; gate and up are twice the columns."""
    left, right = op.operands[:2]
    batch = _extent(sizes, (d for d in right.dims if d in left.dims and d in op.output.dims))
    rows = left.fill * _extent(sizes, (d for d in left.dims if d not in right.dims))
    return batch, rows, _extent(sizes, summed(op)), _extent(sizes, (d for d in right.dims if d not in left.dims))


def _absorbed(op: Op, sizes: Mapping[str, int]) -> tuple[float, float, int, int]:
    head, nope, rank = op.operands[1].dims
    rows = _extent(sizes, (d for d in op.output.dims if d not in (head, rank)))
    return sizes[head], rows, sizes[nope], sizes[rank]


def _expanded(op: Op, sizes: Mapping[str, int]) -> tuple[float, float, int, int]:
    head, part, rank = op.operands[1].dims
    return 1, _extent(sizes, op.operands[0].dims[:2]), sizes[rank], sizes[head] * sizes[part]


def _grouped(op: Op, sizes: Mapping[str, int]) -> tuple[int, int, int, int]:
    """Queries of all heads, positions, widths of keys and of values."""
    q, k, v = op.operands[:3]
    return _extent(sizes, q.dims[:-1]), sizes[k.dims[1]], sizes[q.dims[-1]], sizes[v.dims[3]]


def _latent(op: Op, sizes: Mapping[str, int]) -> tuple[int, int, int, int]:
    absorbed, _, entries = op.operands[:3]
    positions = min(op.attr("select") or sizes[entries.dims[1]], sizes[entries.dims[1]])
    return _extent(sizes, absorbed.dims[:-1]), positions, sizes[entries.dims[2]], sizes[absorbed.dims[-1]]


_PRODUCTS: Mapping[str, Callable[[Op, Mapping[str, int]], tuple[float, float, int, int]]] = {
    "matmul": _matmul,
    "gated_matmul": _matmul,
    "block_matmul": _matmul,
    "absorb_query": _absorbed,
    "expand_latent": _expanded,
}
_ATTENTION: Mapping[str, Callable[[Op, Mapping[str, int]], tuple[int, int, int, int]]] = {
    "grouped_attention": _grouped,
    "latent_attention": _latent,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Operators of one sort: how many, their FLOPs and bytes, in the graph and in the trace."""

    sort: Sort
    ops: tuple[int, int]
    flops: tuple[float, float]
    bytes: tuple[float, float]

    @property
    def difference(self) -> float:
        """Relative difference of the FLOPs."""
        ours, theirs = self.flops
        return 0.0 if ours == theirs else abs(ours - theirs) / max(ours, theirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Lines by sort, and the products of which one side has more columns: (rows, summed) → columns in the graph and in
    the trace. A product may be split or fused: only their sum counts."""

    lines: tuple[Line, ...]
    products: dict[tuple[int, int], tuple[int, int]]

    @property
    def difference(self) -> float:
        """The largest relative difference of the FLOPs of a sort."""
        return max((line.difference for line in self.lines), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """The comparison, ready for JSON."""
        lines = {
            line.sort: {
                what: dict(zip(("graph", "trace"), pair, strict=True))
                for what, pair in (("operators", line.ops), ("flops", line.flops), ("bytes", line.bytes))
            }
            for line in self.lines
        }
        unlike = [
            {"rows": rows, "summed": inner, "columns": {"graph": ours, "trace": theirs}}
            for (rows, inner), (ours, theirs) in self.products.items()
        ]
        return {"compared": lines, "products": unlike, "difference": self.difference}


def compare(graph: Iterable[Work], trace: Iterable[Work]) -> Comparison:
    """Two programs beside each other."""
    ours, theirs = list(graph), list(trace)
    lines = []
    for sort in COMPARED:
        pair = [[work for work in side if work.sort == sort] for side in (ours, theirs)]
        lines.append(
            Line(
                sort=sort,
                ops=(len(pair[0]), len(pair[1])),
                flops=(_sum(pair[0], "flops"), _sum(pair[1], "flops")),
                bytes=(_sum(pair[0], "bytes"), _sum(pair[1], "bytes")),
            )
        )
    columns = [_columns(side) for side in (ours, theirs)]
    keys = sorted({*columns[0], *columns[1]})
    unlike = {key: (columns[0][key], columns[1][key]) for key in keys if columns[0][key] != columns[1][key]}
    return Comparison(lines=tuple(lines), products=unlike)


def _sum(works: Sequence[Work], what: Literal["flops", "bytes"]) -> float:
    return float(sum(work.flops if what == "flops" else work.bytes for work in works))


def _columns(works: Sequence[Work]) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for work in works:
        if work.sort == "product":
            found[work.shape[:2]] += work.shape[2]
    return found
