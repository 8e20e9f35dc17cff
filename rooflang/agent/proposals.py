"""What can be done now: the actions that apply, each with the step time that it would lead to, as far as costs alone
can tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rooflang.agent.actions import GRAPH, Action
from rooflang.agent.estimate import Estimator
from rooflang.agent.primitives import apply
from rooflang.agent.sites import Site, edges_of
from rooflang.agent.wiring import effective, fixed
from rooflang.agent.world import Placed
from rooflang.errors import RooflangError
from rooflang.hw import mesh_factorisations
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, CutKind
from rooflang.ir.joint import groups
from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.kinds.fused import FUSIONS
from rooflang.ir.kinds.recall import RECALL
from rooflang.ir.op import op_kind, signature
from rooflang.ir.tensor import RESIDENT_ROLES

if TYPE_CHECKING:
    from rooflang.agent.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """An action that applies. `predicted_s` is the step time after it and `gain` the throughput that it adds, both by
    the sums of uncontended costs (None where they were not asked for): the simulation has the last word."""

    action: Action
    predicted_s: float | None = None
    gain: float | None = None


def proposals(session: Session, filter: str = "", *, predict: bool = True, limit: int = 0) -> list[Proposal]:
    """The actions that apply now.

    `filter` are words that all have to fit: patterns (`*` is anything), each of which the primitive or some name in the
    action has to match, such as the operator's. With `predict` the best come first; `limit` is how many at most (0:
    all), of those that are looked at. Edits that hold for all blocks of a kind are proposed, `only` is for who asks;
    control edges, streams and parts, of which there are too many, are not proposed.
    """
    words = filter.split()
    estimator = Estimator()
    placed = session.placed
    now_s = estimator.step_s(placed, session.overlap) if predict else 0.0
    found: list[Proposal] = []
    for action in candidates(session):
        if not all(_fits(action, word) for word in words):
            continue
        try:
            after = apply(placed, action)
        except RooflangError:
            continue
        if after.plan == placed.plan:
            continue
        if predict:
            after_s = estimator.step_s(after, session.overlap)
            found.append(Proposal(action=action, predicted_s=after_s, gain=now_s / after_s - 1.0))
        else:
            found.append(Proposal(action=action))
            if limit and len(found) >= limit:
                break
    if predict:
        found.sort(key=lambda proposal: -(proposal.gain or 0.0))
    return found[:limit] if limit else found


def _fits(action: Action, word: str) -> bool:
    names = (action.primitive, action.target, action.reader, action.inner, action.after, action.dim, action.memory)
    return any(fnmatchcase(name, word) for name in names if name)


def candidates(session: Session) -> Iterator[Action]:
    """Every action that might apply, for the representative of each kind of block; whether it does is for the rules to
    say."""
    placed = session.placed
    for kind in placed.blocks.kinds:
        site = Site(world=session.world, state=placed.state, blocks=placed.blocks, kind=kind, label=kind.blocks[0])
        yield from _on_kernels(site)
        yield from _shared(site)
        yield from _on_reads(site)
        yield from _on_places(session, site)
    yield from _on_devices(session, placed)


def _on_kernels(site: Site) -> Iterator[Action]:
    axes = [axis.name for axis in site.state.mesh.axes]
    covered = {op.output.name: op.name for op in site.kind.ops}
    for name, mode in site.modes().items():
        op = covered[name]
        for number, axis in enumerate(axes):
            now = mode.choices[number]
            for row in signature(mode.op):
                if row.kind is CutKind.ROUTE:
                    yield Action(primitive="fuse_kernels", target=op, dim=f"{row.dim}→{row.out}", axis=axis)
                elif row != now:
                    yield Action(primitive="split_kernel", target=op, dim=row.dim, axis=axis)
            if op_kind(mode.op.kind).pure:
                if now != REPLICATED:
                    yield Action(primitive="dup_kernel", target=op, axis=axis)
                if now != OWNER:
                    yield Action(primitive="dedup_kernel", target=op, axis=axis)
        yield from _fusions(site, name)


def _fusions(site: Site, name: str) -> Iterator[Action]:
    by_output = {op.output.name: op for op in site.kind.ops}
    outer = effective(site.kind, site.edits, name)[0]
    for fusion in FUSIONS:
        if fusion.outer == outer.kind and fusion.operand < len(outer.operands):
            inner = by_output.get(outer.operands[fusion.operand].name)
            if inner is not None and inner.kind == fusion.inner:
                yield Action(primitive="fuse_kernels", target=by_output[name].name, inner=inner.name)


def _shared(site: Site) -> Iterator[Action]:
    """Products that share their input, each by itself so far."""
    made = {op.name: op.output.name for op in site.kind.ops}
    for names in groups(site.kind.ops):
        if all(effective(site.kind, site.edits, made[name])[0].kind == "matmul" for name in names):
            yield Action(primitive="fuse_kernels", target=names[-1], inner=",".join(names[:-1]))


def _on_reads(site: Site) -> Iterator[Action]:
    """Merges where a value is in pieces and is wanted otherwise."""
    axes = [axis.name for axis in site.state.mesh.axes]
    maker = {op.output.name: op.name for op in site.kind.ops}
    names = dict.fromkeys([*(port.name for port in site.kind.inputs), *site.modes()])
    for tensor in names:
        for edge in edges_of(site, tensor):
            steps = site.edits.steps.get(edge.read, ())
            now = steps[-1].after if steps else edge.have
            reader = maker[edge.read[0]] if edge.read[1] >= 0 else ""
            if not reader and tensor not in maker:
                continue
            for number, axis in enumerate(axes):
                if now[number] == edge.wanted[number] or now[number] in (REPLICATED, OWNER):
                    continue
                kind = "reduce" if now[number] == PARTIAL else "gather"
                merge = Action(primitive=f"merge_{kind}_broadcast", target=tensor, axis=axis, reader=reader)
                yield merge
                for dim in edge.tensor.dims:
                    if dim != now[number]:
                        yield replace(merge, primitive=f"merge_{kind}_scatter", dim=dim)


def _on_places(session: Session, site: Site) -> Iterator[Action]:
    axes = [axis.name for axis in site.state.mesh.axes]
    tiers = [tier.name for tier in session.world.problem.cluster.tiers]
    for leaf in site.kind.leaves:
        if leaf.role in RESIDENT_ROLES:
            here = site.edits.tiers.get(leaf.name, tiers[0])
            for tier in tiers:
                if tier != here:
                    yield Action(primitive="set_memory", target=leaf.name, memory=tier)
            if here == tiers[0]:
                for tier in tiers[1:]:
                    yield Action(primitive="insert_identity", target=leaf.name, memory=tier)
            else:
                yield Action(primitive="remove_identity", target=leaf.name)
    for port in site.kind.outputs:
        if port.name not in fixed(site.kind):
            for axis in axes:
                for dim in (REPLICATED, *port.dims):
                    yield Action(primitive="set_memory", target=port.name, dim=dim, axis=axis)
    for op in site.kind.ops:
        if op.kind in (*MOVES, RECALL):
            yield Action(primitive="remove_identity", target=op.name)
            for other in op.operands[1:]:
                yield Action(primitive="remove_identity", target=op.name, keep=other.name)


def _on_devices(session: Session, placed: Placed) -> Iterator[Action]:
    cluster = session.world.problem.cluster
    stages = len(placed.state.stages)
    for count in range(1, min(cluster.gpus, len(placed.blocks.sequence)) + 1):
        if cluster.gpus % count == 0:
            try:
                for sizes in mesh_factorisations(cluster, count, 2):
                    yield Action(primitive="set_compute", target=GRAPH, mesh=sizes, stages=count)
            except RooflangError:
                continue
    for stage, labels in enumerate(placed.state.stages):
        if stage + 1 < stages:
            yield Action(primitive="set_compute", target=labels[-1], stage=stage + 1)
        if stage:
            yield Action(primitive="set_compute", target=labels[0], stage=stage - 1)
    for before, after in placed.state.control:
        yield Action(primitive="remove_control_edge", target=before, after=after)
