"""Primitives on what lies between kernels: the merges, and the steps that splits and dups bring with them."""

from __future__ import annotations

from dataclasses import replace

from rooflang.agent.actions import Action
from rooflang.agent.sites import LEAVES, Edge, Site, edges_of, tensor_site
from rooflang.agent.state import State
from rooflang.agent.verdicts import asked, axes_of, needs
from rooflang.agent.wiring import following
from rooflang.agent.world import World
from rooflang.errors import RefusedError
from rooflang.ir.cut import REPLICATED, STATES, Spec
from rooflang.ir.layout import Transfer, make_transfer, step_of
from rooflang.ir.tensor import Role

#: Merges that leave the value whole on every coordinate; the others leave it cut along a dim.
_WHOLE = ("merge_gather_broadcast", "merge_reduce_broadcast")

#: What an action on a read puts there by name: the steps that a primitive brings with it besides the merges.
_BROUGHT = {
    "split_kernel": ("slice", "scatter", "gather", "reduce"),
    "dedup_kernel": ("broadcast",),
}


def merge(world: World, state: State, action: Action) -> State:
    """Put one collective in the place of two halves: at one reader's read of the target, or wherever the target is read
    in its block, or leaves it, and the merge applies."""
    if action.primitive == "merge_gather_broadcast" and world.tensor(action.target).role is Role.WEIGHT:
        return _gather_weight(world, state, action)
    needs(action, "axis?", "dim?", "reader?")
    site, edges = _edges(world, state, action)
    axes = axes_of(action, state.mesh)
    done, refusals = 0, []
    spread = world.theory(site.kind, site.axes).spread
    for edge in edges:
        try:
            steps = following(edge.tensor.name, site.edits.steps.get(edge.read, ()), edge.have)
            now = steps[-1].after if steps else edge.have
            after = _after(action, edge, now, axes)
            stands = edge.tensor.name
            step: Transfer = asked(action, edge.tensor, now, after, spread=spread.get(stands, edge.tensor.dims))
        except RefusedError as error:
            refusals.append(error)
            continue
        site = _put(site, edge, (*steps, step))
        done += 1
    if not done:
        raise refusals[0]
    return site.state


def _gather_weight(world: World, state: State, action: Action) -> State:
    """Let a weight rest cut along a dim over axes on which its readers, or one of them, have it whole: it is gathered
    for them."""
    needs(action, "axis", "dim", "reader?")
    site, tensor = tensor_site(world, state, action)
    axes, found = axes_of(action, state.mesh), dict(site.edits.steps)
    reader = site.own(action.reader).output.name if action.reader else ""
    for name, mode in site.modes().items():
        for index, operand in enumerate(mode.op.operands):
            if operand.name == tensor.name and reader in ("", name):
                wanted = mode.operands[index]
                found[name, index] = (asked(action, operand, _at(wanted, axes, action.dim), wanted),)
    if found == site.edits.steps:
        raise RefusedError("not-read", f"{action.reader or 'no kernel'} reads {action.target} from memory there")
    return site.with_edits(replace(site.edits, steps=found)).state


def put_between(world: World, state: State, action: Action) -> State:
    """Put a step that splits and dups bring with them in a place of its own on the way to a reader: the slice that
    it needs, the gather or reduce to the first coordinate, the scatter or broadcast from there."""
    needs(action, "axis?", "dim?", "reader")
    site, edges = _edges(world, state, action)
    axes = axes_of(action, state.mesh)
    for edge in edges:
        steps = following(edge.tensor.name, site.edits.steps.get(edge.read, ()), edge.have)
        now = steps[-1].after if steps else edge.have
        after = _at(now, axes, action.dim or REPLICATED)
        names = {step_of(now[axis], after[axis]) for axis in axes}
        alike = len({(now[axis], after[axis]) for axis in axes}) == 1
        known = after[axes[0]] in STATES or after[axes[0]] in edge.tensor.dims
        if not alike or not known or not names <= set(_BROUGHT[action.primitive]):
            raise RefusedError(
                "no-such-step", f"{action.primitive} leads no value of {edge.tensor.name} from {now} to {after}"
            )
        site = _put(site, edge, (*steps, make_transfer(edge.tensor.name, now, after)))
    return site.state


def _edges(world: World, state: State, action: Action) -> tuple[Site, list[Edge]]:
    site, tensor = tensor_site(world, state, action)
    reader = action.reader
    if reader not in ("", LEAVES):
        op = site.own(action.reader)
        inside = [outer for outer, inner in site.edits.fused.items() if op.output.name in inner]
        reader = op.output.name if op.output.name in site.modes() or not inside else inside[0]
    edges = edges_of(site, tensor.name, reader)
    if not edges:
        raise RefusedError("not-read", f"nothing reads {action.target} there after a kernel made it")
    return site, edges


def _after(action: Action, edge: Edge, now: Spec, axes: tuple[int, ...]) -> Spec:
    """How the value lies after the merge: as the action says, or else as the reader wants it."""
    pending = [axis for axis in axes if now[axis] != edge.wanted[axis]]
    if not pending:
        reader = edge.read[0]
        raise RefusedError("nothing-to-merge", f"{edge.tensor.name} lies as {reader} reads it on that axis already")
    if action.primitive in _WHOLE:
        return _at(now, axes, REPLICATED)
    wanted = action.dim or edge.wanted[axes[0]]
    if wanted in STATES:
        raise RefusedError(
            "no-scatter", f"{edge.read[0]} reads {edge.tensor.name} cut by no dim: name one, or gather it"
        )
    return _at(now, axes, wanted)


def _at(spec: Spec, axes: tuple[int, ...], entry: str) -> Spec:
    return tuple(entry if axis in axes else old for axis, old in enumerate(spec))


def _put(site: Site, edge: Edge, steps: tuple[Transfer, ...]) -> Site:
    return site.with_edits(replace(site.edits, steps={**site.edits.steps, edge.read: steps}))
