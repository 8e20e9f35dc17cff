"""`Layout`: a plan written by hand, one split at a time.

It starts with every operator whole on every rank of the mesh (`dup_kernel`); each `split_kernel` cuts one operator
along one axis, by a row of its signature. The collectives between the operators follow: `plan()` puts them in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from rooflang.errors import PlacementError, UnknownNameError
from rooflang.hw import Cluster, Mesh
from rooflang.ir.blocks import Blocks, split_blocks
from rooflang.ir.cut import PARTIAL, REPLICATED, CutKind, Spec
from rooflang.ir.graph import Graph
from rooflang.ir.layout import Choice, make_mode
from rooflang.ir.op import Op, op_kind, signature
from rooflang.notebook import html_table
from rooflang.place.connect import connect
from rooflang.place.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How each operator of a graph is cut over the axes of a mesh; frozen, every edit returns a new one.

    Layers of one kind are laid alike: an edit of an operator holds for it in all of them.
    """

    graph: Graph
    cluster: Cluster
    mesh: Mesh
    choices: Mapping[str, tuple[Choice, ...]] = field(default_factory=dict)

    @classmethod
    def start(cls, graph: Graph, cluster: Cluster, mesh: Sequence[int]) -> Layout:
        """Every operator whole on every rank; `mesh` are the axis sizes, outermost first, named x, y, …"""
        return cls(graph=graph, cluster=cluster, mesh=Mesh.lay(cluster, mesh))

    def split_kernel(self, op: str, dim: str, *, axis: str = "x") -> Layout:
        """Cut operator `op` by `dim` along an axis. Raises `UnknownNameError` or, if its signature has no such row,
        `PlacementError`."""
        found = self._op(op)
        rows = [c for c in signature(found) if c.dim == dim and c.kind is not CutKind.ROUTE]
        if not rows:
            ways = sorted({c.dim for c in signature(found)})
            raise PlacementError(
                f"{op} ({found.kind}) cannot be cut by {dim!r}",
                where="split_kernel",
                expected="one of " + ", ".join(ways),
            )
        return self._with(op, axis, rows[0])

    def dup_kernel(self, op: str, *, axis: str = "x") -> Layout:
        """Run operator `op` whole on every coordinate of an axis."""
        return self._with(op, axis, _whole(self._op(op)))

    def plan(self) -> Plan:
        """The plan: modes, the collectives between them, one pipeline stage."""
        blocks = self._blocks
        modes = {
            kind.name: {op.output.name: make_mode(op, self._choices(op)) for op in kind.ops} for kind in blocks.kinds
        }
        boundary = self._boundary(blocks)
        plans = {
            kind.name: connect(
                kind,
                modes[kind.name],
                {t.name: boundary[blocks.port_group[(kind.name, t.name)]] for t in (*kind.inputs, *kind.outputs)},
            )
            for kind in blocks.kinds
        }
        return Plan(mesh=self.mesh, stages=(blocks.sequence,), blocks=plans, boundary=boundary, origin="layout")

    def _repr_html_(self) -> str:
        """For notebooks: how each operator of a block of every kind is cut along each axis."""
        axes = [f"{axis.name}: {axis.size}" for axis in self.mesh.axes]
        rows = [
            (op.name, op.kind, *(choice if isinstance(choice, str) else choice.dim for choice in self._choices(op)))
            for kind in self._blocks.kinds
            for op in kind.ops
        ]
        title = f"{self.graph.name} on {self.cluster}"
        return html_table(title, ("operator", "kind", *axes), rows, note="R: whole on every coordinate of the axis")

    @cached_property
    def _blocks(self) -> Blocks:
        return split_blocks(self.graph)

    def _boundary(self, blocks: Blocks) -> dict[int, Spec]:
        """A port lies as its first producer leaves it, partial values summed up."""
        out: dict[int, Spec] = {}
        for kind in blocks.kinds:
            by_output = {op.output.name: op for op in kind.ops}
            for tensor in kind.outputs:
                made = make_mode(by_output[tensor.name], self._choices(by_output[tensor.name])).out
                whole = tuple(REPLICATED if state == PARTIAL else state for state in made)
                out.setdefault(blocks.port_group[(kind.name, tensor.name)], whole)
        return out

    def _op(self, name: str) -> Op:
        """The operator of that name, or the one that represents it among the layers of its kind."""
        if name not in self.graph.op_by_name:
            raise UnknownNameError("operator", name, self.graph.op_by_name, where=self.graph.name)
        label = self.graph.op_by_name[name].block
        kind = self._blocks.by_name[self._blocks.kind_of[label]]
        return next(op for op in kind.ops if self._blocks.rename[label][op.name] == name)

    def _choices(self, op: Op) -> tuple[Choice, ...]:
        return self.choices.get(op.name, (_whole(op),) * len(self.mesh.axes))

    def _with(self, op: str, axis: str, choice: Choice) -> Layout:
        index = self.mesh.axes.index(self.mesh.axis(axis))
        found = self._op(op)
        new = tuple(choice if i == index else old for i, old in enumerate(self._choices(found)))
        return replace(self, choices={**self.choices, found.name: new})


def _whole(op: Op) -> Choice:
    """Whole on every coordinate: as it is, or, for an operator with side effects, by the row of its signature that says
    how."""
    if op_kind(op.kind).pure:
        return REPLICATED
    return next(cut for cut in signature(op) if {*cut.operands, cut.out} == {REPLICATED})
