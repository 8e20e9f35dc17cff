"""Primitives that change place and order: set_compute, set_memory, identities, control edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rooflang.agent.actions import GRAPH, Action
from rooflang.agent.sites import Site, operator_site, pick, tensor_site
from rooflang.agent.state import State
from rooflang.agent.verdicts import asked, axes_of, needs
from rooflang.agent.wiring import fixed, plan_of
from rooflang.agent.world import World, bare
from rooflang.errors import RefusedError, RooflangError
from rooflang.hw.mesh import Mesh
from rooflang.ir.cut import OWNER, REPLICATED
from rooflang.ir.tensor import RESIDENT_ROLES, Tensor
from rooflang.place.check import collectives
from rooflang.place.grid import balanced, layer_labels, partition

HBM = "hbm"

#: Streams that a device has for us; real ones have more, a plan hardly uses three.
MOST_STREAMS = 64


def set_compute(world: World, state: State, action: Action) -> State:
    """Of the graph: the mesh of a stage, the number of stages, the layers on each. Of a block: its stage. Of an
    operator: its stream."""
    if action.target == GRAPH and action.target not in world.place_of:
        needs(action, "mesh?", "stages?", "layers?")
        return _on_devices(world, state, action)
    if action.stage is not None:
        needs(action, "stage")
        return _on_stage(world, state, action)
    needs(action, "stream", "step?")
    if action.stream is None or action.stream >= MOST_STREAMS:
        raise RefusedError("no-such-stream", f"stream {action.stream} of {MOST_STREAMS}")
    names = _collectives(world, state, action) if action.step else _kernels(world, state, action)
    streams = {**state.streams, **dict.fromkeys(names, action.stream)}
    return replace(state, streams={name: stream for name, stream in sorted(streams.items()) if stream})


def _kernels(world: World, state: State, action: Action) -> list[str]:
    """The target in the blocks that the action picks, which stay alike."""
    blocks = world.blocks(state.alike)
    kind, label, op = world.representative(blocks, action.target)
    asked(action, op, world.problem.cluster.device, f"stream {action.stream}")
    if op.output.name not in world.modes(kind, state.edits[kind.name], len(state.mesh.axes)):
        raise RefusedError("fused", f"{op.name} is no kernel of its own any more")
    labels = pick(state, kind, label, action.only) if action.only else kind.blocks
    return [blocks.rename[each][op.name] for each in labels]


def _collectives(world: World, state: State, action: Action) -> list[str]:
    """The collective `step` of the target, a tensor, in the blocks that the action picks."""
    blocks = world.blocks(state.alike)
    tensor = world.tensor(action.target)
    maker = world.graph.producer.get(tensor.name)
    if maker is None:
        raise RefusedError("no-such-step", f"{tensor.name} is a {tensor.role.value}: it rests where it is read")
    kind, label, op = world.representative(blocks, maker.name)
    labels = pick(state, kind, label, action.only) if action.only else kind.blocks
    names = [f"{blocks.rename[each][op.output.name]} {action.step}" for each in labels]
    axes = len(state.mesh.axes)
    modes = {each.name: world.modes(each, state.edits[each.name], axes) for each in blocks.kinds}
    _, plan = plan_of(state, blocks, modes, known={})
    missing = set(names) - collectives(plan, blocks)
    if missing:
        raise RefusedError("no-such-step", f"there is no {sorted(missing)[0]}")
    return names


def _on_devices(world: World, state: State, action: Action) -> State:
    blocks = world.blocks(state.alike)
    stages = action.stages or (len(action.layers) if action.layers else len(state.stages))
    sizes = action.mesh if action.mesh is not None else None
    if action.mesh is None and not action.stages and not action.layers:
        raise RefusedError("other-fields", "set_compute of the graph takes mesh, stages, layers")
    try:
        layers = action.layers or balanced(len(layer_labels(blocks)), stages)
        if len(layers) != stages:
            raise RefusedError("no-such-place", f"layers for {len(layers)} stages of {stages}")
        labels = partition(blocks, layers)
        if sizes is None:
            kept = [axis.size for axis in state.mesh.axes]
            gpus = world.problem.cluster.gpus // stages
            sizes = tuple(kept) if math.prod(kept) == gpus else (gpus,) if gpus > 1 else ()
        mesh = Mesh.lay(world.problem.cluster, sizes, stages=stages)
    except RefusedError:
        raise
    except RooflangError as error:
        raise RefusedError("no-such-place", error.what, where=error.where, expected=error.expected) from error
    if mesh == state.mesh:
        return replace(state, stages=labels)
    cut = bare(blocks, state.mesh)
    if state.edits != cut.edits or state.boundary != cut.boundary:
        raise RefusedError(
            "axes-in-use", "kernels are cut or merged over the mesh that there is", hint="choose the mesh first"
        )
    return replace(state, mesh=mesh, stages=labels, boundary=bare(blocks, mesh).boundary)


def _on_stage(world: World, state: State, action: Action) -> State:
    """A block goes to another stage; the stages still run all blocks in order."""
    blocks = world.blocks(state.alike)
    if action.only or action.target not in blocks.sequence:
        known = ", ".join(blocks.sequence[:3])
        raise RefusedError("no-such-block", f"a stage is set for a block ({known}, …), not for {action.target}")
    if action.stage is None or action.stage >= len(state.stages):
        raise RefusedError(
            "no-such-place", f"there is no stage {action.stage}", expected=f"0 to {len(state.stages) - 1}"
        )
    for op in world.graph.ops:
        if op.block == action.target:
            asked(action, op, world.problem.cluster.device)
    stage_of = {label: stage for stage, labels in enumerate(state.stages) for label in labels}
    stage_of[action.target] = action.stage
    order = [stage_of[label] for label in blocks.sequence]
    if order != sorted(order):
        raise RefusedError(
            "order", f"{action.target} on stage {action.stage} would run before what it reads, or after what reads it"
        )
    stages = tuple(
        tuple(label for label in blocks.sequence if stage_of[label] == stage) for stage in range(len(state.stages))
    )
    if not all(stages):
        raise RefusedError("empty-stage", f"{action.target} is the last block of its stage")
    return replace(state, stages=stages)


def set_memory(world: World, state: State, action: Action) -> State:
    """Of a weight, cache or state: the memory that it rests in. Of a value that passes between blocks: how its shares
    lie over the ranks, by a dim (or R: whole) along axes."""
    if action.memory:
        needs(action, "memory")
        return _rest(world, state, action)
    needs(action, "dim", "axis?")
    site, tensor = tensor_site(world, state, action)
    group = site.blocks.port_group.get((site.kind.name, tensor.name))
    if group is None or tensor.name in fixed(site.kind):
        raise RefusedError("no-port", f"{action.target} does not pass between blocks: it lies as its maker leaves it")
    axes = axes_of(action, state.mesh)
    if action.dim not in (REPLICATED, OWNER, *tensor.dims):
        raise RefusedError("no-such-dim", f"{tensor.name} ({' '.join(tensor.dims)}) has no dim {action.dim!r}")
    if action.only:
        raise RefusedError("other-fields", "what passes between blocks lies alike for all that it passes between")
    old = site.state.boundary[group]
    new = tuple(action.dim if axis in axes else entry for axis, entry in enumerate(old))
    cost = world.cost(state.mesh)
    asked(action, tensor, world.problem.cluster.tier(HBM), cost.local(cost.parts(new)))
    state = replace(site.state, boundary={**site.state.boundary, group: new})
    return _forget(world, state, site, group, axes)


def _forget(world: World, state: State, site: Site, group: int, axes: Sequence[int]) -> State:
    """Take back the merges on some axes to and from the ports of a group."""
    for kind in site.blocks.kinds:
        ports = {t.name for t in (*kind.inputs, *kind.outputs) if site.blocks.port_group[(kind.name, t.name)] == group}
        edits = state.edits[kind.name]
        own = {t.name for t in kind.inputs}
        here = Site(world=world, state=state, blocks=site.blocks, kind=kind, label=kind.blocks[0])
        modes = here.modes()
        steps = {}
        for (name, index), path in edits.steps.items():
            read = name if index < 0 else modes[name].op.operands[index].name
            near = read in ports and (index < 0 or read in own)
            left = tuple(step for step in path if not (near and set(step.axes) & set(axes)))
            if left:
                steps[name, index] = left
        if steps != edits.steps:
            state = state.edited(kind.name, replace(edits, steps=steps))
    return state


def _rest(world: World, state: State, action: Action) -> State:
    site, tensor = _leaf(world, state, action)
    if tensor.role not in RESIDENT_ROLES:
        raise RefusedError(
            "not-resident", f"{action.target} is a {tensor.role.value}: only weights, caches and states rest"
        )
    try:
        tier = world.problem.cluster.tier(action.memory)
    except RooflangError as error:
        raise RefusedError("no-such-tier", error.what, expected=error.expected) from error
    needed = _share(world, site, tensor)
    asked(action, needed[0], tier, needed[1], taken_bytes=_taken(world, site, action.memory, tensor.name))
    return _in_tier(site, tensor.name, action.memory)


def insert_identity(world: World, state: State, action: Action) -> State:
    """Keep a leaf in another memory: it is fetched from there when it is read."""
    needs(action, "memory")
    site, tensor = _leaf(world, state, action)
    tier = asked(action, tensor, action.memory)
    if tier not in {known.name for known in world.problem.cluster.tiers}:
        raise RefusedError("no-such-tier", f"{world.problem.cluster.platform.name} has no {tier}")
    if tensor.name in site.edits.tiers:
        raise RefusedError("rests-elsewhere", f"{action.target} is kept in {site.edits.tiers[tensor.name]} already")
    return _in_tier(site, tensor.name, tier)


def remove_identity(world: World, state: State, action: Action) -> State:
    """Leave out a bit-exact move, so that its readers read its operand, or a recall, of which they read the operand
    `keep`: what is computed anew, or the cache that was kept; or bring a leaf back to HBM."""
    needs(action, "keep?")
    if action.target in world.graph.tensors and action.target not in world.graph.producer:
        site, tensor = _leaf(world, state, action)
        if tensor.name not in site.edits.tiers or action.keep:
            raise RefusedError("no-identity", f"{action.target} rests in HBM: there is no move to remove")
        return _in_tier(site, tensor.name, HBM)
    actual = world.graph.op_by_name.get(action.target)
    names = [tensor.name for tensor in actual.operands] if actual else []
    if actual is not None and action.keep not in ("", *names):
        raise RefusedError("not-read", f"{action.target} does not read {action.keep!r}, but {', '.join(names)}")
    site, op = operator_site(world, state, action)
    name, index = op.output.name, names.index(action.keep) if action.keep else 0
    operand = asked(action, op, ops=site.kind.ops, **({"operand": index} if index else {}))
    if name in site.edits.removed:
        raise RefusedError("removed", f"{action.target} is left out already")
    waiting = {each for edge in state.control for each in edge} | set(state.streams)
    if {site.blocks.rename[label][op.name] for label in site.kind.blocks} & waiting:
        raise RefusedError("ordered", f"a control edge or a stream of its own hangs on {action.target}")
    edits = site.edits
    choices = {tensor: choice for tensor, choice in edits.choices.items() if tensor != name}
    steps = {read: path for read, path in edits.steps.items() if read[0] != name or read[1] < 0}
    order = [each.output.name for each in site.kind.ops]
    removed = {tensor: {**edits.removed, name: operand}[tensor] for tensor in order if tensor in (*edits.removed, name)}
    return site.with_edits(replace(edits, choices=choices, steps=steps, removed=removed)).state


def add_control_edge(world: World, state: State, action: Action) -> State:
    """Let the operator `after` wait for the target."""
    needs(action, "after")
    edge = asked(action, world.graph, action.target, action.after, control=state.control)
    _check_kernels(world, state, action)
    if edge in state.control:
        raise RefusedError("same-edge", f"{action.after} waits for {action.target} already")
    number = {op.name: index for index, op in enumerate(world.graph.ops)}
    if number[edge[0]] > number[edge[1]]:
        raise RefusedError(
            "program-order", f"{edge[1]} is issued before {edge[0]}, and would block what {edge[0]} needs"
        )
    return replace(state, control=(*state.control, edge))


def remove_control_edge(world: World, state: State, action: Action) -> State:
    """Let the operator `after` wait for the target no longer."""
    needs(action, "after")
    edge = asked(action, world.graph, action.target, action.after, control=state.control)
    return replace(state, control=tuple(other for other in state.control if other != edge))


def _check_kernels(world: World, state: State, action: Action) -> None:
    if action.only:
        raise RefusedError("other-fields", "a control edge is between two operators, not in all blocks of a kind")
    blocks = world.blocks(state.alike)
    for name in (action.target, action.after):
        kind, label, op = world.representative(blocks, name)
        site = Site(world=world, state=state, blocks=blocks, kind=kind, label=label)
        if op.output.name not in site.modes():
            raise RefusedError("no-kernel", f"{name} is fused into another kernel, or was removed")


# -- leaves -----------------------------------------------------------------------------------------------------------


def _leaf(world: World, state: State, action: Action) -> tuple[Site, Tensor]:
    tensor = world.tensor(action.target)
    if tensor.name in world.graph.producer:
        raise RefusedError("not-resident", f"{action.target} is made in the step: only leaves rest between steps")
    return tensor_site(world, state, action)


def _in_tier(site: Site, leaf: str, tier: str) -> State:
    tiers = {name: where for name, where in site.edits.tiers.items() if name != leaf}
    if tier != HBM:
        order = {tensor.name: number for number, tensor in enumerate(site.kind.leaves)}
        tiers = dict(sorted({**tiers, leaf: tier}.items(), key=lambda item: order[item[0]]))
    return site.with_edits(replace(site.edits, tiers=tiers)).state


def _share(world: World, site: Site, tensor: Tensor) -> tuple[Tensor, dict[str, float]]:
    """A leaf with the extents of the largest share that a kernel reads on one rank."""
    cost = world.cost(site.state.mesh)
    specs = [
        spec
        for mode in site.modes().values()
        for operand, spec in zip(mode.op.operands, mode.operands, strict=True)
        if operand.name == tensor.name
    ]
    spec = max(specs, key=lambda each: float(cost.bytes(tensor, each)), default=(REPLICATED,) * site.axes)
    return tensor, dict(cost.local(cost.parts(spec)))


def _taken(world: World, site: Site, tier: str, leaf: str) -> float:
    """Bytes of the leaves that rest in a memory beside HBM already, on the fullest stage, a rank's share of each; of
    HBM none, as what it holds at one time is for the simulation to say."""
    if tier == HBM:
        return 0.0
    held = []
    for labels in site.state.stages:
        total = 0.0
        for kind in site.blocks.kinds:
            count = sum(site.blocks.kind_of[label] == kind.name for label in labels)
            here = Site(world=world, state=site.state, blocks=site.blocks, kind=kind, label=kind.blocks[0])
            for other in kind.leaves:
                if here.edits.tiers.get(other.name) == tier and (kind is not site.kind or other.name != leaf):
                    tensor, sizes = _share(world, here, other)
                    total += count * float(tensor.bytes(sizes))
        held.append(total)
    return max(held)
