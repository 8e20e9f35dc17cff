"""The certificate of a plan: the script of primitives that leads from the initial graph to it, and its replay.

The script is JSON data (`place.script` lists its fields). Steps are addressed by (block kind, the blocks of that kind,
operator or tensor), in topological order; replaying them on the initial graph rebuilds the plan from the operators'
signatures alone. Nothing in the script is trusted: a step that no signature supports is refused, the rebuilt plan has
to connect, and its own script has to be the one that was replayed, so that no field goes unread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rooflang.errors import PlacementError, RefusedError
from rooflang.hw.cluster import Cluster
from rooflang.hw.mesh import Mesh
from rooflang.ir.apart import Apart
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import OWNER, REPLICATED, CutKind
from rooflang.ir.graph import Graph
from rooflang.ir.joint import Joint, Rewriting
from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.kinds.fused import NAMED, fits, fuse
from rooflang.ir.kinds.joint import JOINT
from rooflang.ir.kinds.recall import RECALL
from rooflang.ir.layout import Choice, Mode, Step, Transfer, make_mode, make_transfer
from rooflang.ir.op import Op, op_kind, signature
from rooflang.ir.tensor import RESIDENT_ROLES
from rooflang.place.check import check_connected
from rooflang.place.lawful import check_lawful
from rooflang.place.plan import BlockPlan, Plan
from rooflang.place.script import (
    SCHEMA,
    ApartJson,
    IdentityJson,
    JointJson,
    KernelJson,
    KindJson,
    MoveJson,
    ReadJson,
    Script,
    StepJson,
    first_difference,
)

Json = dict[str, Any]


def certificate(plan: Plan, blocks: Blocks) -> Json:
    """The script as JSON data."""
    data: Json = msgspec.json.decode(msgspec.json.encode(_script(plan, blocks)))
    return data


def _script(plan: Plan, blocks: Blocks) -> Script:
    return Script(
        schema=SCHEMA,
        graph=blocks.graph.fingerprint,
        mesh=tuple(axis.size for axis in plan.mesh.axes),
        stages=plan.stages,
        boundary=dict(sorted(plan.boundary.items())),
        kinds=tuple(_kind(kind, plan.blocks[kind.name]) for kind in blocks.kinds),
        control=plan.control,
        streams=dict(sorted(plan.streams.items())),
        apart=tuple(
            ApartJson(targets=a.targets, dim=a.dim, counts=a.counts) for a in plan.apart if isinstance(a, Apart)
        ),
        joint=tuple(JointJson(targets=each.targets) for each in plan.apart if isinstance(each, Joint)),
    )


def _kind(kind: BlockKind, plan: BlockPlan) -> KindJson:
    return KindJson(
        kind=kind.name,
        blocks=kind.blocks,
        kernels=tuple(_kernel(name, mode, plan) for name, mode in plan.modes.items()),
        exits={name: _moves(steps) for name, steps in plan.exits.items()},
        tiers=tuple(_identity("insert_identity", leaf, tier) for leaf, tier in plan.tiers.items()),
        removed=tuple(_identity("remove_identity", name, operand) for name, operand in plan.aliases.items()),
    )


def _kernel(name: str, mode: Mode, plan: BlockPlan) -> KernelJson:
    reads = tuple(
        ReadJson(operand=index, steps=_moves(plan.paths[(name, index)]))
        for index in range(len(mode.op.operands))
        if (name, index) in plan.paths
    )
    return KernelJson(kernel=name, steps=_steps(mode.derivation), reads=reads)


def _steps(steps: Sequence[Step]) -> tuple[StepJson, ...]:
    return tuple(StepJson(primitive=s.primitive, target=s.target, dim=s.dim, axis=s.axis) for s in steps)


def _moves(path: Sequence[Transfer]) -> tuple[MoveJson, ...]:
    return tuple(MoveJson(tensor=t.tensor, before=t.before, after=t.after, steps=_steps(t.derivation)) for t in path)


def _identity(primitive: str, target: str, dim: str) -> IdentityJson:
    return IdentityJson(primitive=primitive, target=target, dim=dim)


def kinds_of(script: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """The labels of the blocks that a script treats alike, kind by kind: what `split_blocks` has to be told for its
    replay. Raises `PlacementError`."""
    return tuple(entry.blocks for entry in _record(script).kinds)


def apart_of(script: Mapping[str, Any]) -> tuple[Rewriting, ...]:
    """What a script takes apart, and joins, before anything is laid. Raises `PlacementError`."""
    return _rewritings(_record(script))


def _rewritings(record: Script) -> tuple[Rewriting, ...]:
    return (*map(_apart, record.apart), *(Joint(targets=entry.targets) for entry in record.joint))


def _check_joined(record: Script, graph: Graph) -> None:
    """Raise `PlacementError` for operators that a script joins though they are not those of one kernel."""
    for joint in _rewritings(record):
        if isinstance(joint, Joint) and joint.name not in {op.name for op in graph.ops if op.kind == JOINT}:
            try:
                joint.of(graph)
            except RefusedError as error:
                raise PlacementError(error.what, where=f"certificate: fuse_kernels of {joint.name}") from error


def _apart(entry: ApartJson) -> Apart:
    return Apart(targets=entry.targets, dim=entry.dim, counts=entry.counts)


def _record(script: Mapping[str, Any]) -> Script:
    try:
        return msgspec.convert(script, Script, str_keys=True)
    except msgspec.ValidationError as error:
        raise PlacementError(str(error), where="certificate", expected=SCHEMA) from error


def replay(script: Mapping[str, Any], blocks: Blocks, cluster: Cluster) -> Plan:
    """Rebuild the plan from the initial graph, with what the script takes apart (`apart_of`), whose blocks are of the
    kinds that it names (`kinds_of`).

    Raises `PlacementError` naming the first step that does not apply.
    """
    record = _record(script)
    if record.schema != SCHEMA:
        raise PlacementError(f"schema {record.schema!r}", where="certificate", expected=SCHEMA)
    if record.graph != blocks.graph.fingerprint:
        _check_joined(record, blocks.graph)
        raise PlacementError("it was made for another graph", where="certificate", expected=blocks.graph.fingerprint)
    mesh = Mesh.lay(cluster, record.mesh, stages=len(record.stages))
    plans = {}
    for entry in record.kinds:
        if entry.kind not in blocks.by_name:
            raise PlacementError(f"no block kind {entry.kind!r} in the graph", where="certificate")
        plans[entry.kind] = _replay_kind(entry, blocks.by_name[entry.kind], cluster, len(mesh.axes))
    plan = Plan(
        mesh=mesh,
        stages=record.stages,
        blocks=plans,
        boundary=record.boundary,
        control=record.control,
        streams=record.streams,
        apart=_rewritings(record),
        origin="replayed certificate",
    )
    check_connected(plan, blocks)
    _expect_same(msgspec.structs.replace(record, evaluated=None), _script(plan, blocks))
    return plan


def _expect_same(stated: Script, again: Script) -> None:
    """Raise `PlacementError` that names the first field in which a script is not that of the plan that it leads to."""
    difference = first_difference(msgspec.to_builtins(stated), msgspec.to_builtins(again))
    if difference is not None:
        where, found, wanted = difference
        raise PlacementError(f"{where} is {found!r}", where="certificate", expected=repr(wanted))


def _replay_kind(entry: KindJson, kind: BlockKind, cluster: Cluster, axes: int) -> BlockPlan:
    where = f"certificate: {kind.name}"
    tiers = {step.target: step.dim for step in entry.tiers}
    resident = {leaf.name for leaf in kind.leaves if leaf.role in RESIDENT_ROLES}
    for leaf, tier in tiers.items():
        if leaf not in resident or tier not in {known.name for known in cluster.tiers}:
            raise PlacementError(f"{leaf} cannot be kept in {tier}", where=where)
    aliases = {step.target: step.dim for step in entry.removed}
    moves = {(op.output.name, t.name) for op in kind.ops if op.kind in (*MOVES, RECALL)
             for t in op.operands if t.dtype == op.output.dtype}  # fmt: skip
    for name, operand in aliases.items():
        if (name, operand) not in moves:
            raise PlacementError(f"{name} is not an identity of {operand}", where=where)
    modes = {kernel.kernel: _replay_mode(kind, kernel, axes) for kernel in entry.kernels}
    if list(modes) != [op.output.name for op in kind.ops if op.output.name in modes]:
        raise PlacementError("its kernels are not in the order of the graph", where=where)
    plan = BlockPlan(
        modes=modes,
        paths={(k.kernel, read.operand): _replay_path(read.steps) for k in entry.kernels for read in k.reads},
        exits={name: _replay_path(steps) for name, steps in entry.exits.items()},
        tiers=tiers,
        aliases=aliases,
    )
    check_lawful(kind, plan, axes)
    return plan


def _replay_path(steps: Sequence[MoveJson]) -> tuple[Transfer, ...]:
    out = []
    for step in steps:
        try:
            transfer = make_transfer(step.tensor, step.before, step.after)
        except ValueError as error:
            raise PlacementError(str(error), where=f"certificate: {step.tensor}") from error
        out.append(transfer)
    return tuple(out)


def _replay_mode(kind: BlockKind, kernel: KernelJson, axes: int) -> Mode:
    where = f"certificate: {kind.name}: {kernel.kernel}"
    op, covers = _fused_op(kind, kernel, where)
    choices: list[Choice | None] = [None] * axes
    for step in kernel.steps:
        if step.axis < 0:
            continue
        if not step.axis < axes:
            raise PlacementError(f"axis {step.axis} of a mesh with {axes}", where=where)
        choices[step.axis] = _applied(op, step, where)
    decided = [choice for choice in choices if choice is not None]
    if len(decided) < axes:
        raise PlacementError("an axis is left undecided", where=where)
    return make_mode(op, decided, covers=covers)


def _applied(op: Op, step: StepJson, where: str) -> Choice:
    """The choice along one axis after a step: dup and dedup run the operator whole, split takes a row of its
    signature, fuse turns a token cut into the routed one."""
    if step.primitive in ("dup_kernel", "dedup_kernel"):
        if not op_kind(op.kind).pure:
            raise PlacementError(f"{step.primitive} of {op.name}: {op.kind} has side effects", where=where)
        return REPLICATED if step.primitive == "dup_kernel" else OWNER
    rows = [cut for cut in signature(op) if cut.kind is not CutKind.ROUTE and cut.dim == step.dim]
    if step.primitive == "fuse_kernels":
        rows = [cut for cut in signature(op) if cut.kind is CutKind.ROUTE and f"{cut.dim}→{cut.out}" == step.dim]
    if not rows:
        raise PlacementError(
            f"{step.primitive} of {op.name} by {step.dim!r}: its signature has no such row", where=where
        )
    return rows[0]


def _fused_op(kind: BlockKind, kernel: KernelJson, where: str) -> tuple[Op, tuple[str, ...]]:
    """The operator that makes a kernel's tensor: one of the block, or one fused from two by the script's fuse step."""
    by_output = {op.output.name: op for op in kind.ops}
    if kernel.kernel not in by_output:
        raise PlacementError(f"no operator makes {kernel.kernel!r}", where=where)
    op = by_output[kernel.kernel]
    covers: tuple[str, ...] = (op.name,)
    for step in kernel.steps:
        if step.primitive != "fuse_kernels" or step.axis >= 0:
            continue
        fusion = NAMED.get(step.dim)
        inner = next((other for other in kind.ops if fusion is not None and fits(fusion, op, other)), None)
        if fusion is None or inner is None:
            raise PlacementError(f"no fusion {step.dim!r} applies to {op.name}", where=where)
        op, covers = fuse(fusion, op, inner), (inner.name, *covers)
    return op, covers
