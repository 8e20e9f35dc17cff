"""What a session cannot change: graph, cluster, batch, assumptions; and what is derived from them, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property

from rooflang.agent.actions import LONGEST_NAME
from rooflang.agent.state import Edits, State
from rooflang.agent.wiring import modes_of, plan_of
from rooflang.cost.model import CostModel
from rooflang.errors import RefusedError, RooflangError
from rooflang.hw.mesh import Mesh
from rooflang.ir.blocks import BlockKind, Blocks, split_blocks
from rooflang.ir.cut import REPLICATED, Spec, show_spec
from rooflang.ir.graph import Graph
from rooflang.ir.joint import Joint, Rewriting
from rooflang.ir.layout import Mode
from rooflang.ir.op import Op
from rooflang.ir.tensor import Tensor
from rooflang.place.check import check_connected
from rooflang.place.lawful import check_lawful
from rooflang.place.plan import BlockPlan, Plan
from rooflang.rules.theory import Theory
from rooflang.search.problem import Problem

#: Groupings of blocks that are kept ready.
_KEPT = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """A state that holds together, in a world, and its plan."""

    world: World
    state: State
    blocks: Blocks
    plan: Plan


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """A problem at one batch size. Every session about it may share it."""

    problem: Problem
    batch: int
    _blocks: dict[tuple[tuple[str, ...], ...], Blocks] = field(default_factory=dict)
    _theories: dict[tuple[str, int, int], tuple[BlockKind, Theory]] = field(default_factory=dict)
    _costs: dict[Mesh, CostModel] = field(default_factory=dict)
    _modes: dict[str, tuple[BlockKind, Edits, int, dict[str, Mode]]] = field(default_factory=dict)
    _divides: dict[int, tuple[Mode, Mesh]] = field(default_factory=dict)
    _parted: dict[Rewriting, World] = field(default_factory=dict)
    _steps: set[tuple[Mesh, str, Spec, Spec]] = field(default_factory=set)

    @property
    def graph(self) -> Graph:
        """The graph that is laid: that of the problem, with what was taken apart or joined."""
        return self.problem.laid

    def parted(self, apart: Rewriting) -> World:
        """The world in which this is taken apart, or joined, too. Raises `RefusedError`."""
        if apart not in self._parted:
            done = sorted((*self.problem.apart, apart), key=lambda each: isinstance(each, Joint))
            problem = replace(self.problem, alike=(), apart=tuple(done))
            found = World(problem=problem, batch=self.batch)
            if found.graph.ops:  # refuses what is no sum of parts
                self._parted[apart] = found
        return self._parted[apart]

    def blocks(self, alike: tuple[tuple[str, ...], ...] = ()) -> Blocks:
        """The graph by blocks, grouped as given (default: all of one structure are alike)."""
        if alike not in self._blocks:
            if len(self._blocks) >= _KEPT:
                self._blocks.pop(next(iter(self._blocks)))
            self._blocks[alike] = split_blocks(self.graph, alike=alike)
        return self._blocks[alike]

    def theory(self, kind: BlockKind, axes: int) -> Theory:
        """The theory of a block kind, for the checks of the rules."""
        key = (kind.name, len(kind.blocks), axes)
        known = self._theories.get(key)
        if known is None or known[0] is not kind:
            labels = tuple(dict.fromkeys(label for op in kind.ops for label in op.labels))
            known = kind, Theory(kind=kind, axes=axes, kernels=kind.ops, pairs=(), labels=labels)
            self._theories[key] = known
        return known[1]

    def modes(self, kind: BlockKind, edits: Edits, axes: int) -> Mapping[str, Mode]:
        """The kernels of a block kind. Those that are as they were when it was last asked for stay the same records."""
        known = self._modes.get(kind.name)
        if known is not None and known[0] is kind and known[2] == axes:
            if known[1] is edits:
                return known[3]
            like = known[3]
        else:
            like = {}
        found = modes_of(kind, edits, axes, like)
        self._modes[kind.name] = kind, edits, axes, found
        return found

    def cost(self, mesh: Mesh) -> CostModel:
        """Costs on one rank of the mesh, at the batch size of the session."""
        if mesh not in self._costs:
            self._costs[mesh] = self.problem.cost(mesh, self.batch)
        return self._costs[mesh]

    @cached_property
    def place_of(self) -> dict[str, tuple[str, int]]:
        """(block label, number in the block) of every operator by name."""
        counts: dict[str, int] = {}
        found = {}
        for op in self.graph.ops:
            found[op.name] = (op.block, counts.get(op.block, 0))
            counts[op.block] = counts.get(op.block, 0) + 1
        return found

    def initial(self) -> Placed:
        """Every operator whole on every GPU, one stage, one mesh axis over all GPUs, all blocks of a structure alike,
        every leaf in HBM."""
        blocks, gpus = self.blocks(), self.problem.cluster.gpus
        return self.settled(bare(blocks, Mesh.lay(self.problem.cluster, [gpus] if gpus > 1 else [])))

    def representative(self, blocks: Blocks, name: str) -> tuple[BlockKind, str, Op]:
        """(kind, block label, the kind's operator) for an operator by name. Raises `RefusedError`."""
        if name not in self.place_of:
            raise unknown("operator", name, self.place_of)
        label, number = self.place_of[name]
        kind = blocks.by_name[blocks.kind_of[label]]
        return kind, label, kind.ops[number]

    def tensor(self, name: str) -> Tensor:
        """A tensor of the graph. Raises `RefusedError`."""
        tensors = self.graph.tensors
        if name not in tensors:
            raise unknown("tensor", name, tensors)
        return tensors[name]

    # -- does it hold together? -------------------------------------------------------------------------------------

    def settled(self, state: State, before: Placed | None = None) -> Placed:
        """The state with its plan. What is unchanged since `before` is not looked at again.

        Raises `RefusedError` where a reader cannot be given what it reads, a rule refuses a step, or extents do not
        divide.
        """
        blocks = self.blocks(state.alike)
        known = _unchanged(state, blocks, before) if before is not None else {}
        axes = len(state.mesh.axes)
        modes = {kind.name: self.modes(kind, state.edits[kind.name], axes) for kind in blocks.kinds}
        state, plan = plan_of(state, blocks, modes, known=known)
        plan = replace(plan, apart=self.problem.apart)
        try:
            check_connected(plan, blocks)
            for kind in blocks.kinds:
                if kind.name not in known:
                    check_lawful(kind, plan.blocks[kind.name], axes)
                    self._check_extents(kind, plan.blocks[kind.name], state.mesh)
        except RefusedError:
            raise
        except RooflangError as error:
            raise RefusedError(error.code, error.what, where=error.where, expected=error.expected) from error
        return Placed(world=self, state=state, blocks=blocks, plan=plan)

    def _check_extents(self, kind: BlockKind, plan: BlockPlan, mesh: Mesh) -> None:
        cost = self.cost(mesh)
        tensors = {t.name: t for op in kind.ops for t in (*op.operands, op.output)}
        for name, mode in plan.modes.items():
            known = self._divides.get(id(mode))
            if known is not None and known[0] is mode and known[1] is mesh:
                continue
            if cost.mode(mode).memory_s == float("inf"):
                laid = " ".join(show_spec(spec) for spec in mode.operands)
                raise RefusedError("uneven", f"{name} cannot run as {laid} → {show_spec(mode.out)}: it does not divide")
            self._divides[id(mode)] = mode, mesh
        for path in (*plan.paths.values(), *plan.exits.values()):
            for step in path:
                key = (mesh, step.tensor, step.before, step.after)
                if key in self._steps:
                    continue
                if cost.transfer(tensors[step.tensor], step).memory_s == float("inf"):
                    raise RefusedError("uneven", f"{step.tensor} does not divide as {show_spec(step.after)}")
                self._steps.add(key)


def unknown(kind: str, name: str, known: Iterable[str]) -> RefusedError:
    """The refusal of a name that nothing has. A model has thousands of names: the nearest ones are told."""
    near = get_close_matches(name[:LONGEST_NAME], list(known), n=3, cutoff=0.6)
    return RefusedError(
        "unknown-name", f"there is no {kind} {name!r}", hint=f"did you mean {' or '.join(near)}?" if near else ""
    )


def bare(blocks: Blocks, mesh: Mesh) -> State:
    """Nothing cut, nothing moved; all blocks on one stage."""
    spec = (REPLICATED,) * len(mesh.axes)
    return State(
        mesh=mesh,
        stages=(blocks.sequence,),
        alike=tuple(kind.blocks for kind in blocks.kinds),
        edits={kind.name: Edits() for kind in blocks.kinds},
        boundary=dict.fromkeys(sorted(set(blocks.port_group.values())), spec),
    )


def _unchanged(state: State, blocks: Blocks, before: Placed) -> dict[str, tuple[Edits, BlockPlan]]:
    """Block plans that the state has in common with the one before."""
    if before.blocks is not blocks or before.state.mesh != state.mesh:
        return {}
    moved = {group for group, spec in state.boundary.items() if before.state.boundary[group] != spec}
    return {
        kind.name: (state.edits[kind.name], before.plan.blocks[kind.name])
        for kind in blocks.kinds
        if state.edits[kind.name] is before.state.edits[kind.name]
        and not any(blocks.port_group[(kind.name, t.name)] in moved for t in (*kind.inputs, *kind.outputs))
    }
