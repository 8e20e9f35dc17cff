"""`Layout`: a plan written by hand, one split at a time.

It starts with every operator whole on every rank of the mesh (`dup_kernel`); each `split_kernel` cuts one operator
along one axis, by a row of its signature. The collectives between the operators follow: `plan()` puts them in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rooflang.errors import PlacementError, UnknownNameError
from rooflang.hw import Cluster, Mesh
from rooflang.ir.blocks import Blocks, split_blocks
from rooflang.ir.cut import PARTIAL, REPLICATED, CutKind, Spec
from rooflang.ir.graph import Graph
from rooflang.ir.layout import Choice, make_mode
from rooflang.ir.op import Op, signature
from rooflang.place.connect import connect
from rooflang.place.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How each operator of a graph is cut over the axes of a mesh; frozen, every edit returns a new one."""

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
        self._op(op)
        return self._with(op, axis, REPLICATED)

    def plan(self) -> Plan:
        """The plan: modes, the collectives between them, one pipeline stage."""
        blocks = split_blocks(self.graph)
        modes = {
            kind.name: {op.output.name: make_mode(op, self._choices(op.name)) for op in kind.ops}
            for kind in blocks.kinds
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

    def _boundary(self, blocks: Blocks) -> dict[int, Spec]:
        """A port lies as its first producer leaves it, partial values summed up."""
        out: dict[int, Spec] = {}
        for kind in blocks.kinds:
            by_output = {op.output.name: op for op in kind.ops}
            for tensor in kind.outputs:
                made = make_mode(by_output[tensor.name], self._choices(by_output[tensor.name].name)).out
                whole = tuple(REPLICATED if state == PARTIAL else state for state in made)
                out.setdefault(blocks.port_group[(kind.name, tensor.name)], whole)
        return out

    def _op(self, name: str) -> Op:
        if name not in self.graph.op_by_name:
            raise UnknownNameError("operator", name, self.graph.op_by_name, where=self.graph.name)
        return self.graph.op_by_name[name]

    def _choices(self, op: str) -> tuple[Choice, ...]:
        return self.choices.get(op, (REPLICATED,) * len(self.mesh.axes))

    def _with(self, op: str, axis: str, choice: Choice) -> Layout:
        index = self.mesh.axes.index(self.mesh.axis(axis))
        new = tuple(choice if i == index else old for i, old in enumerate(self._choices(op)))
        return replace(self, choices={**self.choices, op: new})
