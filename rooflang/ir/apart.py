"""Taking a sum apart: an operator that sums over a dim, such as a combine over experts, as a sum over groups of its
elements, each with operators of its own all the way back.

It is `split_kernel` over ranges of a dim instead of an axis. A row of the signature that sums over the dim makes it the
sum of the parts; a row that cuts an operator along the dim makes each part that of its operands, and so on back to
leaves, which fall into parts too. What no row cuts, such as a choice among all experts, stays, and a `segment` of it is
taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rooflang.errors import RefusedError
from rooflang.ir.cut import CutKind
from rooflang.ir.graph import Graph
from rooflang.ir.op import Op, op_kind, signature
from rooflang.ir.tensor import Dim, Role, Tensor
from rooflang.ir.verify import verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Elements `start` … `stop` of a dim, under a label of their own; `after` are the labels of the parts before."""

    dim: str
    start: int
    stop: int
    after: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{self.dim}.{self.start}-{self.stop}"

    def name(self, name: str) -> str:
        """The name of the part of a tensor or operator."""
        return f"{name}.{self.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Operators, one of each of some blocks that are copies of each other, that become sums of parts of so many
    elements of a dim."""

    targets: tuple[str, ...]
    dim: str
    counts: tuple[int, ...]

    def of(self, graph: Graph) -> Graph:
        """The graph in which they are sums. Raises `RefusedError`."""
        for target in self.targets:
            graph = taken_apart(graph, target, self.dim, self.counts)
        return graph


def parts_of(dim: str, counts: Sequence[int]) -> tuple[Part, ...]:
    """Parts of so many elements each, in order."""
    found: list[Part] = []
    start = 0
    for count in counts:
        after = tuple(part.label for part in found)
        found.append(Part(dim=dim, start=start, stop=start + count, after=after))
        start += count
    return tuple(found)


def taken_apart(graph: Graph, target: str, dim: str, counts: Sequence[int]) -> Graph:
    """The graph in which operator `target` is the sum of parts of so many elements of `dim`.

    Raises `RefusedError` unless it sums over the dim, and the counts are two or more, above 0, and make its extent.
    """
    if target not in graph.op_by_name:
        raise RefusedError("unknown-name", f"there is no operator {target!r}")
    op = graph.op_by_name[target]
    if not any(row.kind is CutKind.SUM and row.dim == dim for row in signature(op)):
        raise RefusedError("no-sum", f"{op.kind} {op.name} does not sum over {dim!r}: parts do not add up to it")
    if len(counts) < 2 or min(counts) < 1 or sum(counts) != graph.sizes[dim]:
        shown = ", ".join(map(str, counts[:8]))
        raise RefusedError("uneven", f"parts of {shown} do not make the {graph.sizes[dim]} of {dim}")
    parts = parts_of(dim, counts)
    made: list[Op] = []
    summands = []
    for part in parts:
        maker = _Maker(graph, op.block, part)
        summands.append(maker.clone(op).output)
        made += maker.ops
    made = _new(graph, [*made, *_sums(op, summands)], op)
    dims = {each.label: each for each in graph.dims}
    for part in parts:
        dims.setdefault(part.label, Dim(label=part.label, size=part.stop - part.start, meaning=graph.words[dim]))
    ops = [other for other in graph.ops if other is not op]
    at = graph.ops.index(op)
    return _without_unread(replace(graph, dims=tuple(dims.values()), ops=(*ops[:at], *made, *ops[at:])))


def _new(graph: Graph, made: Sequence[Op], target: Op) -> list[Op]:
    """Those operators that the graph does not have yet, from another sum. Raises `RefusedError` for names that are
    taken."""
    for op in made:
        other = graph.op_by_name.get(op.name, op)
        if other not in (op, target):
            raise RefusedError("name-taken", f"there is an operator {op.name} already, which is no part of this sum")
    return [op for op in made if graph.op_by_name.get(op.name, target) is target]


class _Maker:
    """Makes the operators of one part, each once."""

    def __init__(self, graph: Graph, block: str, part: Part) -> None:
        self.graph = graph
        self.block = block
        self.part = part
        self.ops: list[Op] = []
        self._known: dict[str, Tensor] = {}

    def clone(self, op: Op) -> Op:
        """The operator on the part: operands that have the dim, and what is said of it in attributes, are of the
        part."""
        operands = tuple(self.piece(t) if self.part.dim in t.dims else t for t in op.operands)
        attrs = {name: self._attr(value) for name, value in op.attrs}
        if "expert" in op_kind(op.kind).attrs and op.attr("expert", "expert") == self.part.dim:
            attrs["expert"] = self.part.label
        name = self.part.name(op.name)
        output = replace(self._relabelled(op.output), name=self.part.name(op.output.name), role=_inside(op.output.role))
        made = replace(op, name=name, operands=operands, output=output, attrs=tuple(sorted(attrs.items())))
        self.ops.append(made)
        return made

    def piece(self, tensor: Tensor) -> Tensor:
        """The part of a tensor."""
        if tensor.name not in self._known:
            self._known[tensor.name] = self._fresh(tensor)
        return self._known[tensor.name]

    def _fresh(self, tensor: Tensor) -> Tensor:
        op = self.graph.producer.get(tensor.name)
        if op is None and tensor.role is not Role.INPUT:
            return replace(self._relabelled(tensor), name=self.part.name(tensor.name))
        if op is not None and op.block == self.block and op_kind(op.kind).pure:
            rows = [row for row in signature(op) if row.kind is CutKind.PAR]
            if any((row.dim, row.out) == (self.part.dim, self.part.dim) for row in rows):
                return self.clone(op).output
        output = replace(self._relabelled(tensor), name=self.part.name(tensor.name), role=Role.ACTIVATION)
        attrs = (("after", self.part.after),) if self.part.after else ()
        group = "" if op is None else op.group
        self.ops.append(
            Op(
                name=output.name,
                kind="segment",
                operands=(tensor,),
                output=output,
                attrs=attrs,
                block=self.block,
                group=group,
            )
        )
        return output

    def _relabelled(self, tensor: Tensor) -> Tensor:
        return replace(tensor, dims=tuple(self.part.label if d == self.part.dim else d for d in tensor.dims))

    def _attr(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._attr(each) for each in value)
        return self.part.label if value == self.part.dim else value


def _inside(role: Role) -> Role:
    """What was an output of the graph is now summed up first."""
    return Role.ACTIVATION if role is Role.OUTPUT else role


def _sums(op: Op, summands: Sequence[Tensor]) -> list[Op]:
    """Additions that end in the operator's own output."""
    ops: list[Op] = []
    total = summands[0]
    for number, summand in enumerate(summands[1:], start=1):
        last = number == len(summands) - 1
        name = op.name if last else f"{op.name}.sum{number}"
        output = op.output if last else replace(total, name=name)
        ops.append(Op(name=name, kind="add", operands=(total, summand), output=output, block=op.block, group=op.group))
        total = output
    return ops


def _without_unread(graph: Graph) -> Graph:
    """The graph without pure operators that nothing reads any more."""
    while True:
        kept = tuple(
            op
            for op in graph.ops
            if op.output.name in graph.outputs or op.output.name in graph.consumers or not op_kind(op.kind).pure
        )
        if len(kept) == len(graph.ops):
            return verify(graph)
        graph = replace(graph, ops=kept)
