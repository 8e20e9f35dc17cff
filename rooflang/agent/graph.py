"""The graph of a session as objects: the primitives of the paper's Tables 1 and 2, each by its own name.

    graph.split_kernel("up", "ffn", axis="x")
    graph.merge_reduce_broadcast("down")
    graph.operator("experts").set_compute(stream=1)
    graph.tensor("kv").set_memory("dram")

Each call takes the action or raises `RefusedError`; `only` restricts it to some of the blocks that are laid alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflang.agent.actions import GRAPH, Action

if TYPE_CHECKING:
    from rooflang.agent.session import Applied, Session


@dataclass(frozen=True, slots=True)
class GraphView:
    """The placed graph of a session."""

    session: Session

    def _do(self, primitive: str, target: str, **fields: Any) -> Applied:
        return self.session.apply(Action(primitive=primitive, target=target, **fields))

    def operator(self, name: str) -> OperatorView:
        """An operator. Raises `RefusedError`."""
        self.session.world.representative(self.session.placed.blocks, name)
        return OperatorView(self, name)

    def tensor(self, name: str) -> TensorView:
        """A tensor. Raises `RefusedError`."""
        self.session.world.tensor(name)
        return TensorView(self, name)

    def split_kernel(self, op: str, dim: str, *, axis: str = "", only: str = "") -> Applied:
        """Cut an operator by a dim along mesh axes: each coordinate does its share."""
        return self._do("split_kernel", op, dim=dim, axis=axis, only=only)

    def split_apart(self, op: str, dim: str, parts: Sequence[int], *, only: str = "") -> Applied:
        """`split_kernel` over ranges of a dim that the operator sums over: parts of so many elements, each with
        operators of its own, which can be laid each in its own way."""
        return self._do("split_kernel", op, dim=dim, parts=tuple(parts), only=only)

    def dup_kernel(self, op: str, *, axis: str = "", only: str = "") -> Applied:
        """Run an operator on every coordinate of an axis."""
        return self._do("dup_kernel", op, axis=axis, only=only)

    def dedup_kernel(self, op: str, *, axis: str = "", only: str = "") -> Applied:
        """Run an operator on the first coordinate of an axis only."""
        return self._do("dedup_kernel", op, axis=axis, only=only)

    def fuse_kernels(self, op: str, inner: str = "", *, dim: str = "", axis: str = "", only: str = "") -> Applied:
        """Compute `inner` inside `op`, or beside it where both are products of one input, or turn the token cut of a
        dispatch or combine into the routed one (`dim` is batch→expert, say)."""
        return self._do("fuse_kernels", op, inner=inner, dim=dim, axis=axis, only=only)

    def merge_gather_scatter(
        self, tensor: str, dim: str = "", *, reader: str = "", axis: str = "", only: str = ""
    ) -> Applied:
        """An all-to-all in the place of a gather and a scatter along another dim."""
        return self._do("merge_gather_scatter", tensor, dim=dim, reader=reader, axis=axis, only=only)

    def merge_gather_broadcast(self, tensor: str, *, reader: str = "", axis: str = "", only: str = "") -> Applied:
        """An all-gather in the place of a gather and a broadcast."""
        return self._do("merge_gather_broadcast", tensor, reader=reader, axis=axis, only=only)

    def merge_reduce_scatter(
        self, tensor: str, dim: str = "", *, reader: str = "", axis: str = "", only: str = ""
    ) -> Applied:
        """A reduce-scatter in the place of a reduce and a scatter."""
        return self._do("merge_reduce_scatter", tensor, dim=dim, reader=reader, axis=axis, only=only)

    def merge_reduce_broadcast(self, tensor: str, *, reader: str = "", axis: str = "", only: str = "") -> Applied:
        """An all-reduce in the place of a reduce and a broadcast."""
        return self._do("merge_reduce_broadcast", tensor, reader=reader, axis=axis, only=only)

    def insert_identity(self, tensor: str, memory: str, *, only: str = "") -> Applied:
        """Keep a leaf in another memory, from which it is fetched when it is read."""
        return self._do("insert_identity", tensor, memory=memory, only=only)

    def remove_identity(self, target: str, *, keep: str = "", only: str = "") -> Applied:
        """Leave out a bit-exact move, or a recall, of which the operand `keep` is read instead; or bring a leaf back to
        HBM."""
        return self._do("remove_identity", target, keep=keep, only=only)

    def add_control_edge(self, before: str, after: str) -> Applied:
        """Let operator `after` wait for operator `before`."""
        return self._do("add_control_edge", before, after=after)

    def remove_control_edge(self, before: str, after: str) -> Applied:
        """Let operator `after` wait for operator `before` no longer."""
        return self._do("remove_control_edge", before, after=after)

    def set_compute(
        self, *, mesh: Sequence[int] | None = None, stages: int | None = None, layers: Sequence[int] | None = None
    ) -> Applied:
        """Lay the axes over the devices: the mesh of a stage, the number of stages, the layers on each."""
        sizes = None if mesh is None else tuple(mesh)
        counts = None if layers is None else tuple(layers)
        return self._do("set_compute", GRAPH, mesh=sizes, stages=stages, layers=counts)

    def show(self) -> str:
        """The placed graph in words: one line for each kernel of each kind of block."""
        from rooflang.agent.words import show_placed

        return show_placed(self.session.placed)


@dataclass(frozen=True, slots=True)
class OperatorView:
    """An operator of the graph, as something to be placed."""

    graph: GraphView
    name: str

    def set_compute(self, *, stream: int | None = None, stage: int | None = None, only: str = "") -> Applied:
        """Issue it on a stream of its devices, or put its whole block on a stage."""
        target = self.name if stage is None else self.graph.session.world.place_of[self.name][0]
        return self.graph._do("set_compute", target, stream=stream, stage=stage, only=only)


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor of the graph, as something to be placed."""

    graph: GraphView
    name: str

    def set_compute(self, step: str, *, stream: int, only: str = "") -> Applied:
        """Issue a collective that moves it, such as its all_reduce, on a stream."""
        return self.graph._do("set_compute", self.name, step=step, stream=stream, only=only)

    def set_memory(self, memory: str = "", *, dim: str = "", axis: str = "", only: str = "") -> Applied:
        """Keep a leaf in a memory; or let the shares of a value that passes between blocks lie by a dim along axes."""
        return self.graph._do("set_memory", self.name, memory=memory, dim=dim, axis=axis, only=only)
