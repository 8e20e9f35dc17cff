"""From a state to a plan: modes from the choices, and between them the steps that were merged and, for the rest of the
way, their halves.

`split_kernel` and its like leave a value in pieces. Before any merge the pieces come together on the first coordinate
of the axis, and whoever reads them has them from there: gather or reduce, then scatter or broadcast. A merge puts one
collective in the place of two such halves. What lies as its reader wants it needs neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rooflang.agent.state import EXIT, Edits, Read, State
from rooflang.errors import RefusedError
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, STATES, Cut, Spec, show_spec
from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.kinds.fused import covered, fuse
from rooflang.ir.layout import Choice, Mode, Transfer, make_mode, make_transfer, source_of
from rooflang.ir.op import Op, op_kind, signature
from rooflang.ir.tensor import RESIDENT_ROLES, Tensor
from rooflang.place.check import collectives
from rooflang.place.plan import BlockPlan, Plan
from rooflang.rules.theory import fusion_of


def whole(op: Op) -> Choice:
    """Whole on every coordinate: as it is, or, for an operator with side effects, by the row that says how."""
    if op_kind(op.kind).pure:
        return REPLICATED
    return next((cut for cut in signature(op) if {*cut.operands, cut.out} == {REPLICATED}), REPLICATED)


def effective(kind: BlockKind, edits: Edits, tensor: str) -> tuple[Op, tuple[str, ...]]:
    """The operator that makes a tensor, fused if it was, and the names of those of the graph that it stands for."""
    by_output = {op.output.name: op for op in kind.ops}
    op = by_output[tensor]
    for name in edits.fused.get(tensor, ()):
        inner = by_output[name]
        fusion = fusion_of(op, inner)
        if fusion is None:
            raise RefusedError("no-such-fusion", f"no named fusion computes {inner.name} inside {op.name}")
        op = fuse(fusion, op, inner)
    return op, covered(op)


def choices_of(op: Op, edits: Edits, axes: int) -> tuple[Choice, ...]:
    """What the kernel does along each axis."""
    return edits.choices.get(op.output.name, (whole(op),) * axes)


def out_spec(choices: Sequence[Choice]) -> Spec:
    """How the output of such choices lies."""
    return tuple(choice.out if isinstance(choice, Cut) else choice for choice in choices)


def modes_of(kind: BlockKind, edits: Edits, axes: int, like: Mapping[str, Mode] | None = None) -> dict[str, Mode]:
    """The kernels of a block in program order: operators that are left out, or that nothing reads any more, have none.
    Modes of `like`, of the same kind on as many axes, stay the records that they are."""
    found: dict[str, Mode] = {}
    for op in kind.ops:
        name = op.output.name
        if name not in edits.removed:
            made, covers = (op, (op.name,)) if name not in edits.fused else effective(kind, edits, name)
            choices = choices_of(made, edits, axes)
            old = like.get(name) if like else None
            same = old is not None and old.choices == choices and old.covers == covers
            found[name] = old if old is not None and same else make_mode(made, choices, covers=covers)
    if not edits.fused and not edits.removed:
        return found
    kept: set[str] = set()
    read = {source(edits, port.name) for port in kind.outputs}
    for name, mode in reversed(found.items()):
        if name in read or not op_kind(mode.op.kind).pure:
            kept.add(name)
            read |= {source(edits, tensor.name) for tensor in mode.op.operands}
    return {name: mode for name, mode in found.items() if name in kept}


def source(edits: Edits, tensor: str) -> str:
    """The tensor that stands for `tensor`: itself, unless the identity that made it is left out."""
    return source_of(edits.removed, tensor)


def reads_of(kind: BlockKind, edits: Edits, modes: Mapping[str, Mode]) -> Iterator[tuple[Read, Tensor, str]]:
    """(place, tensor as it is named there, tensor that stands for it) of whatever comes from a kernel or a port."""
    made = {*modes, *(port.name for port in kind.inputs)}
    for name, mode in modes.items():
        for index, tensor in enumerate(mode.op.operands):
            stands = source(edits, tensor.name)
            if stands in made:
                yield (name, index), tensor, stands
    for port in kind.outputs:
        yield (port.name, EXIT), port, source(edits, port.name)


def fixed(kind: BlockKind) -> frozenset[str]:
    """What a block makes that lies as it was made for all who read it: what is written in place, and copies of what
    rests in memory."""
    found: set[str] = set()
    for op in kind.ops:
        copied = op.operands[0] if op.kind in MOVES else None
        stays = copied is not None and (copied.role in RESIDENT_ROLES or copied.name in found)
        if op_kind(op.kind).in_place is not None or op.output.role in RESIDENT_ROLES or stays:
            found.add(op.output.name)
    return frozenset(found)


def lay_kind(
    kind: BlockKind, edits: Edits, modes: Mapping[str, Mode], boundary: Mapping[str, Spec]
) -> tuple[BlockPlan, Edits]:
    """The plan of a block kind whose ports lie as `boundary` says, and the edits without the merged steps that no
    longer lead anywhere. Raises `RefusedError` where a reader cannot be given what it wants."""
    stays = fixed(kind)
    made = {port.name: boundary[port.name] for port in kind.inputs} | {name: mode.out for name, mode in modes.items()}
    paths: dict[Read, tuple[Transfer, ...]] = {}
    exits: dict[str, tuple[Transfer, ...]] = {}
    kept: dict[Read, tuple[Transfer, ...]] = {}
    for read, tensor, stands in reads_of(kind, edits, modes):
        name, index = read
        wanted = boundary[name] if index == EXIT else modes[name].operands[index]
        have = made[stands]
        steps = following(tensor.name, edits.steps.get(read, ()), have)
        rest = halves(tensor, _reached(have, steps), wanted, reader=name)
        if steps:
            kept[read] = steps
        if (steps or rest) and (stands in stays or tensor.name in stays):
            raise RefusedError(
                "stays-put", f"{tensor.name} is laid {show_spec(have)} in memory and cannot move to {name}"
            )
        if steps or rest:
            if index == EXIT:
                exits[name] = (*steps, *rest)
            else:
                paths[read] = (*steps, *rest)
    gathers = dict(_gathers(kind, edits, modes))
    paths, kept = {**paths, **gathers}, {**kept, **gathers}
    plan = BlockPlan(modes=modes, paths=paths, exits=exits, tiers=edits.tiers, aliases=edits.removed)
    return plan, edits if kept == edits.steps else replace(edits, steps=kept)


def _gathers(kind: BlockKind, edits: Edits, modes: Mapping[str, Mode]) -> Iterator[tuple[Read, tuple[Transfer, ...]]]:
    """The gathers of weights that still bring them as their kernels read them."""
    leaves = {leaf.name for leaf in kind.leaves}
    for (name, index), steps in edits.steps.items():
        mode = modes.get(name)
        if mode is not None and 0 <= index < len(mode.operands):
            same = mode.op.operands[index].name == steps[0].tensor and steps[-1].after == mode.operands[index]
            if same and steps[0].tensor in leaves:
                yield (name, index), steps


def following(tensor: str, steps: Sequence[Transfer], have: Spec) -> tuple[Transfer, ...]:
    """Those of the steps that still apply, one after the other, to a value laid `have`."""
    out: list[Transfer] = []
    for step in steps:
        if all(have[axis] == step.before[axis] for axis in step.axes):
            after = tuple(step.after[axis] if axis in step.axes else entry for axis, entry in enumerate(have))
            same = have == step.before and step.tensor == tensor
            out.append(step if same else make_transfer(tensor, have, after))
            have = after
    return tuple(out)


def _reached(have: Spec, steps: Sequence[Transfer]) -> Spec:
    return steps[-1].after if steps else have


def halves(tensor: Tensor, have: Spec, wanted: Spec, *, reader: str = "") -> tuple[Transfer, ...]:
    """The way from one spec to another by the first coordinate, axis by axis: what is in pieces comes together there
    first. Raises `RefusedError` where there is none."""
    if have == wanted:
        return ()
    now, out = list(have), []
    together = [axis for axis, entry in enumerate(have) if entry != wanted[axis] and entry not in (REPLICATED, OWNER)]
    apart = [axis for axis, entry in enumerate(have) if entry != wanted[axis]]
    for axis, entry in [*((axis, OWNER) for axis in together), *((axis, wanted[axis]) for axis in apart)]:
        if now[axis] == entry:
            continue
        if entry == PARTIAL:
            raise RefusedError(
                "no-summands",
                f"{reader or 'the reader'} reads {tensor.name} as summands on axis {axis}, where it is laid"
                f" {show_spec(have)}",
                hint="cut the operator that makes it along the dim that it sums over first",
            )
        if entry not in STATES and entry not in tensor.dims:
            raise RefusedError("no-such-dim", f"{tensor.name} ({' '.join(tensor.dims)}) has no dim {entry!r}")
        before = tuple(now)
        now[axis] = entry
        out.append(make_transfer(tensor.name, before, tuple(now)))
    return tuple(out)


def plan_of(
    state: State,
    blocks: Blocks,
    modes: Mapping[str, Mapping[str, Mode]],
    *,
    known: Mapping[str, tuple[Edits, BlockPlan]],
) -> tuple[State, Plan]:
    """The plan of a state with these modes of each kind, and the state without steps that lead nowhere. `known` are
    block plans that hold as they are, with the edits they are of. Raises `RefusedError`."""
    boundary = _boundary(state, blocks, modes)
    edits: dict[str, Edits] = {}
    plans: dict[str, BlockPlan] = {}
    for kind in blocks.kinds:
        if kind.name in known:
            edits[kind.name], plans[kind.name] = known[kind.name]
            continue
        ports = {t.name: boundary[blocks.port_group[(kind.name, t.name)]] for t in (*kind.inputs, *kind.outputs)}
        plans[kind.name], edits[kind.name] = lay_kind(kind, state.edits[kind.name], modes[kind.name], ports)
    made_by = {op.name: op.output.name for op in blocks.graph.ops} if state.control or state.streams else {}
    plan = Plan(
        mesh=state.mesh,
        stages=state.stages,
        blocks=plans,
        boundary=boundary,
        control=tuple((made_by[before], made_by[after]) for before, after in state.control),
        streams={made_by.get(name, name): stream for name, stream in state.streams.items()},
        origin="session",
    )
    streams = state.streams
    if any(name not in made_by for name in streams):  # collectives, which merges and splits put others in place of
        there = collectives(plan, blocks)
        streams = {name: stream for name, stream in streams.items() if name in made_by or name in there}
        plan = replace(plan, streams={made_by.get(name, name): stream for name, stream in streams.items()})
    return replace(state, edits=edits, boundary=boundary, streams=streams), plan


def _boundary(state: State, blocks: Blocks, modes: Mapping[str, Mapping[str, Mode]]) -> dict[int, Spec]:
    """How each port group lies: as was set, but that a cache or state lies as it was made."""
    found = dict(state.boundary)
    for kind in blocks.kinds:
        stays = fixed(kind)
        for port in kind.outputs:
            name = source(state.edits[kind.name], port.name)
            if port.name in stays and name in modes[kind.name]:
                found[blocks.port_group[(kind.name, port.name)]] = modes[kind.name][name].out
    return found
