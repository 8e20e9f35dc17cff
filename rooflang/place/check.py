"""Does a plan hold together? Every operand is read in a spec that its path really leads to, and no more is in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rooflang.errors import PlacementError
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import STATES, Spec, show_spec
from rooflang.ir.layout import Transfer
from rooflang.ir.tensor import Tensor
from rooflang.place.plan import BlockPlan, Plan


def check_connected(plan: Plan, blocks: Blocks) -> None:
    """Raise `PlacementError` unless the stages run every block in order, each kernel reads its operands as their
    makers, after the transfers given, leave them, and every port leaves in the spec of its group."""
    _alike([label for labels in plan.stages for label in labels], blocks.sequence, "the blocks of the stages")
    _alike(sorted(plan.blocks), sorted(blocks.by_name), "the block kinds")
    _alike(sorted(plan.boundary), sorted(set(blocks.port_group.values())), "the port groups")
    for kind in blocks.kinds:
        block = plan.blocks[kind.name]
        made: dict[str, Spec] = {}
        for port in kind.inputs:
            made[port.name] = _boundary(plan, blocks, kind, port)
        made.update({name: mode.out for name, mode in block.modes.items()})
        _check_reads(kind, block, blocks, made)
        _check_exits(kind, block, plan, blocks, made)
    if plan.control or plan.streams:
        _check_order(plan, blocks)


def collectives(plan: Plan, blocks: Blocks) -> frozenset[str]:
    """The collectives of a plan, by what they move and their kind, as streams name them."""
    return frozenset(
        f"{blocks.rename[label][block.source(step.tensor)]} {step.collective}"
        for label in blocks.sequence
        for block in (plan.blocks[blocks.kind_of[label]],)
        for path in (*block.paths.values(), *block.exits.values())
        for step in path
    )


def _check_order(plan: Plan, blocks: Blocks) -> None:
    """Control edges and streams are those of kernels, and no kernel waits for one that is issued after it."""
    kernels = {
        blocks.rename[label][name] for label in blocks.sequence for name in plan.blocks[blocks.kind_of[label]].modes
    }
    for name in (*plan.streams, *(name for pair in plan.control for name in pair)):
        if name not in kernels and not (name in plan.streams and name in collectives(plan, blocks)):
            raise PlacementError(f"no kernel makes {name}", where="plan", expected="kernels, in orders and streams")
    block_of = {op.output.name: op.block for op in blocks.graph.ops}
    order = sorted((op.output.name for op in blocks.graph.ops), key=lambda name: blocks.sequence.index(block_of[name]))
    number = {name: index for index, name in enumerate(order)}
    for before, after in plan.control:
        if number[before] >= number[after]:
            raise PlacementError(f"{after} is issued before {before}, and cannot wait for it", where="plan")
    if any(stream < 0 for stream in plan.streams.values()):
        raise PlacementError("a stream below 0", where="plan", expected="0, 1, …")


def _alike(found: Sequence[object], wanted: Sequence[object], what: str) -> None:
    if list(found) != list(wanted):
        raise PlacementError(f"{what} are {_list(found)}", where="plan", expected=_list(wanted))


def _list(items: Sequence[object]) -> str:
    return ", ".join(map(str, items[:8])) + (" …" if len(items) > 8 else "")


def _boundary(plan: Plan, blocks: Blocks, kind: BlockKind, port: Tensor) -> Spec:
    spec = plan.boundary[blocks.port_group[(kind.name, port.name)]]
    if len(spec) != len(plan.mesh.axes):
        raise PlacementError(
            f"{port.name} lies as {show_spec(spec)} on a mesh of {len(plan.mesh.axes)} axes", where=kind.name
        )
    _check_labels(port, spec, kind.name)
    return spec


def _check_labels(tensor: Tensor, spec: Spec, where: str) -> None:
    strange = set(spec) - STATES - set(tensor.dims)
    if strange:
        raise PlacementError(f"{tensor.name} has no dim {', '.join(sorted(strange))} to be cut by", where=where)


def _check_reads(kind: BlockKind, block: BlockPlan, blocks: Blocks, made: Mapping[str, Spec]) -> None:
    open_paths = set(block.paths)
    for name, mode in block.modes.items():
        for index, (tensor, wanted) in enumerate(zip(mode.op.operands, mode.operands, strict=True)):
            source = block.source(tensor.name)
            if source in made:
                steps = block.paths.get((name, index), ())
                _check_path(tensor, made[source], steps, wanted, f"{kind.name}: {name} reads {tensor.name}")
                open_paths.discard((name, index))
            elif source in blocks.graph.producer:
                raise PlacementError(f"{name} reads {source}, which no kernel of the plan makes", where=kind.name)
            elif steps := block.paths.get((name, index), ()):
                # A leaf rests as its path begins; whether it may have one is for its rule to say.
                _check_labels(tensor, steps[0].before, kind.name)
                _check_path(tensor, steps[0].before, steps, wanted, f"{kind.name}: {name} gathers {tensor.name}")
                open_paths.discard((name, index))
    _none_left(open_paths, "a path leads to something that no kernel reads", kind.name)


def _check_exits(kind: BlockKind, block: BlockPlan, plan: Plan, blocks: Blocks, made: Mapping[str, Spec]) -> None:
    for port in kind.outputs:
        wanted = _boundary(plan, blocks, kind, port)
        source = block.source(port.name)
        if source not in made:
            raise PlacementError(f"no kernel makes the port {port.name}", where=kind.name)
        steps = block.exits.get(port.name, ())
        _check_path(port, made[source], steps, wanted, f"{kind.name}: exit of {port.name}")
    _none_left(set(block.exits) - {port.name for port in kind.outputs}, "a path leads to no port", kind.name)


def _none_left(left: Collection[object], what: str, where: str) -> None:
    if left:
        raise PlacementError(f"{what}: {', '.join(sorted(map(str, left)))}", where=where)


def _check_path(tensor: Tensor, now: Spec, steps: Sequence[Transfer], wanted: Spec, where: str) -> None:
    for step in steps:
        if step.before != now:
            raise PlacementError(
                f"a {step.collective} from {show_spec(step.before)} of a value laid {show_spec(now)}", where=where
            )
        _check_labels(tensor, step.after, where)
        now = step.after
    if now != wanted:
        raise PlacementError(f"laid {show_spec(now)}, read {show_spec(wanted)}", where=where)
