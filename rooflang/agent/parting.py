"""Taking operators apart: some experts are to be laid otherwise than the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rooflang.agent.actions import Action
from rooflang.agent.sites import Site, operator_site
from rooflang.agent.state import Edits, State
from rooflang.agent.verdicts import needs
from rooflang.agent.world import Placed
from rooflang.errors import RefusedError
from rooflang.ir.apart import Apart
from rooflang.ir.blocks import Blocks


def take_apart(placed: Placed, action: Action) -> Placed:
    """The placed graph in which an operator that sums over a dim is a sum of parts, in the blocks that the action
    picks. What goes into parts may not be cut, fused or ordered yet. Raises `RefusedError`."""
    needs(action, "dim", "parts")
    site, op = operator_site(placed.world, placed.state, action)
    targets = tuple(site.blocks.rename[label][op.name] for label in site.kind.blocks)
    world = placed.world.parted(Apart(targets=targets, dim=action.dim, counts=action.parts or ()))
    blocks = world.blocks(site.state.alike)
    gone = {other.name for other in placed.world.graph.ops} - {other.name for other in world.graph.ops}
    _check_whole(site, blocks, {*gone, *targets})
    return world.settled(carried(site.state, site.blocks, blocks))


def _check_whole(site: Site, blocks: Blocks, gone: set[str]) -> None:
    """Nothing was done to what is taken apart."""
    made = {op.output.name for op in site.blocks.graph.ops if op.name in gone}
    left = {leaf.name for leaf in blocks.by_name[site.kind.name].leaves}
    edits = site.edits
    touched = {
        *(name for name in edits.choices if name in made),
        *(name for outer, inside in edits.fused.items() for name in (outer, *inside) if name in made),
        *(name for name, _ in edits.steps if name in made),
        *(step.tensor for steps in edits.steps.values() for step in steps if step.tensor in made),
        *(name for name in edits.removed if name in made),
        *(leaf for leaf in edits.tiers if leaf not in left),
        *(name for name in (*site.state.streams, *(n for edge in site.state.control for n in edge)) if name in gone),
    }
    if touched:
        shown = ", ".join(sorted(touched)[:4])
        raise RefusedError("in-use", f"something was done to {shown} already", hint="take apart first, then cut")


def carried(state: State, old: Blocks, new: Blocks) -> State:
    """The state over the blocks of the graph after it: kinds have the names that they had, ports too."""
    lies = {port: state.boundary[group] for port, group in old.port_group.items()}
    boundary = {group: lies[port] for port, group in new.port_group.items()}
    edits: Mapping[str, Edits] = {kind.name: state.edits[kind.name] for kind in new.kinds}
    return replace(state, edits=edits, boundary=boundary)
