"""From a certificate to the actions that lead to its plan: what the search found, as an agent would have done it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflang.agent.actions import GRAPH, Action
from rooflang.agent.sites import LEAVES
from rooflang.agent.wiring import fixed
from rooflang.hw.mesh import AXIS_NAMES
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import REPLICATED
from rooflang.ir.joint import Joint
from rooflang.ir.kinds.segment import PART
from rooflang.ir.layout import PRIMITIVE_OF, Transfer
from rooflang.ir.op import op_kind
from rooflang.place.grid import layer_labels, partition
from rooflang.place.plan import BlockPlan, Plan

#: Merges that always leave a value whole, so that no dim has to be said.
_WHOLE = ("merge_gather_broadcast", "merge_reduce_broadcast")


def actions_of(plan: Plan, blocks: Blocks, whole: Blocks) -> Iterator[Action]:
    """The actions that lead from the initial graph to a plan over `blocks`; `whole` are the blocks of the same graph,
    all of one structure alike."""
    block_of = {op.name: op.block for op in blocks.graph.ops}
    for apart in plan.apart:
        if isinstance(apart, Joint):
            continue
        labels = ",".join(block_of[target] for target in apart.targets)
        first = apart.targets[0]
        yield Action(primitive="split_kernel", target=first, dim=apart.dim, parts=apart.counts, only=labels)
    yield from _devices(plan, blocks)
    for joint in plan.apart:
        if isinstance(joint, Joint):
            *inner, target = joint.targets[0]
            labels = ",".join(block_of[names[0]] for names in joint.targets)
            yield Action(primitive="fuse_kernels", target=target, inner=",".join(inner), only=labels)
    default = {kind.blocks for kind in whole.kinds}
    only = {kind.name: "" if kind.blocks in default else ",".join(kind.blocks) for kind in blocks.kinds}
    for kind in blocks.kinds:
        yield from _kernels(kind, plan.blocks[kind.name], only[kind.name])
    yield from _boundaries(plan, blocks)
    for kind in blocks.kinds:
        yield from _steps(kind, plan.blocks[kind.name], only[kind.name])
    name_of = {op.output.name: op.name for op in blocks.graph.ops}
    for before, after in plan.control:
        yield Action(primitive="add_control_edge", target=name_of[before], after=name_of[after])
    for kernel, stream in plan.streams.items():
        tensor, _, step = kernel.partition(" ") if kernel not in name_of else (name_of[kernel], "", "")
        yield Action(primitive="set_compute", target=tensor, step=step, stream=stream, only="this")


def _devices(plan: Plan, blocks: Blocks) -> Iterator[Action]:
    """The mesh and the stages; blocks that are no layers may be on other stages than layers would take them to."""
    layers = set(layer_labels(blocks))
    counts = tuple(sum(label in layers for label in labels) for labels in plan.stages)
    sizes = tuple(axis.size for axis in plan.mesh.axes)
    yield Action(primitive="set_compute", target=GRAPH, mesh=sizes, stages=len(counts), layers=counts)
    stage_of = {label: stage for stage, labels in enumerate(partition(blocks, counts)) for label in labels}
    wanted = {label: stage for stage, labels in enumerate(plan.stages) for label in labels}
    later = [label for label in blocks.sequence if wanted[label] < stage_of[label]]
    sooner = [label for label in reversed(blocks.sequence) if wanted[label] > stage_of[label]]
    for label in (*later, *sooner):
        yield Action(primitive="set_compute", target=label, stage=wanted[label])


def _kernels(kind: BlockKind, plan: BlockPlan, only: str) -> Iterator[Action]:
    """Identities, fusions, and how each kernel runs along each axis."""
    op_of = {op.output.name: op for op in kind.ops}
    for name, operand in plan.aliases.items():
        first = op_of[name].operands[0].name
        keep = "" if operand == first else operand
        yield Action(primitive="remove_identity", target=op_of[name].name, keep=keep, only=only)
    for leaf, tier in plan.tiers.items():
        yield Action(primitive="insert_identity", target=leaf, memory=tier, only=only)
    for name, mode in plan.modes.items():
        for inner in reversed(mode.covers[:-1] if mode.op.kind != PART else ()):
            yield Action(primitive="fuse_kernels", target=op_of[name].name, inner=inner, only=only)
    for name, mode in plan.modes.items():
        for step in mode.derivation:
            pure = op_kind(mode.op.kind).pure
            if step.axis >= 0 and (pure or step.primitive not in ("dup_kernel", "dedup_kernel")):
                axis = AXIS_NAMES[step.axis]
                yield Action(primitive=step.primitive, target=op_of[name].name, dim=step.dim, axis=axis, only=only)


def _boundaries(plan: Plan, blocks: Blocks) -> Iterator[Action]:
    """How what passes between blocks lies, by one port of each group. A cache lies as it is written."""
    done: set[int] = set()
    for kind in blocks.kinds:
        stays = fixed(kind)
        for port in kind.outputs:
            group = blocks.port_group[kind.name, port.name]
            if group not in done and port.name not in stays:
                done.add(group)
                for axis, entry in enumerate(plan.boundary[group]):
                    if entry != REPLICATED:
                        yield Action(primitive="set_memory", target=port.name, dim=entry, axis=AXIS_NAMES[axis])


def _steps(kind: BlockKind, plan: BlockPlan, only: str) -> Iterator[Action]:
    """The collectives and slices on the way to each reader."""
    op_of, leaves = {op.output.name: op for op in kind.ops}, {leaf.name for leaf in kind.leaves}
    for (name, _), path in plan.paths.items():
        gathers = bool(path) and path[0].tensor in leaves
        yield from _path(path, op_of[name].name, only, rests=gathers)
    for path in plan.exits.values():
        yield from _path(path, LEAVES, only)


def _path(path: Sequence[Transfer], reader: str, only: str, *, rests: bool = False) -> Iterator[Action]:
    """The steps of a path; of one that begins with what `rests`, the dim is that along which it does."""
    for step in path:
        primitive = PRIMITIVE_OF.get(step.collective, "split_kernel")
        entry = step.before[step.axes[0]] if rests else step.after[step.axes[0]]
        yield Action(
            primitive=primitive,
            target=step.tensor,
            dim="" if (primitive in _WHOLE and not rests) or entry == REPLICATED else entry,
            axis=",".join(AXIS_NAMES[axis] for axis in step.axes),
            reader=reader,
            only=only,
        )
