"""Primitives that change how a kernel runs: split, dup, dedup, fuse."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from rooflang.agent.actions import Action
from rooflang.agent.sites import Site, operator_site
from rooflang.agent.state import Read, State
from rooflang.agent.verdicts import asked, axes_of, needs
from rooflang.agent.wiring import choices_of, effective, fixed, source, whole
from rooflang.agent.world import World
from rooflang.errors import RefusedError
from rooflang.ir.cut import REPLICATED, Cut, CutKind
from rooflang.ir.kinds.fused import wiring
from rooflang.ir.kinds.joint import JOINT
from rooflang.ir.layout import Choice, Transfer
from rooflang.ir.op import Op, op_kind, signature


def split_kernel(world: World, state: State, action: Action) -> State:
    """Cut a kernel by a dim along one axis or several."""
    needs(action, "dim", "axis?")
    site, op = operator_site(world, state, action)
    sizes = {label: int(size) for label, size in world.cost(state.mesh).sizes.items()}
    for axis in axes_of(action, state.mesh):
        kernel = site.kernel(op.output.name)
        parts = _parts(site, kernel, action.dim, axis)
        cut: Cut = asked(
            action,
            kernel,
            action.dim,
            partials=world.theory(site.kind, site.axes).partials,
            sizes=sizes,
            parts=parts,
        )
        if action.dim in sizes and sizes[action.dim] % parts:
            raise RefusedError("uneven", f"{action.dim} has {sizes[action.dim]} entries, not a multiple of {parts}")
        site = chosen(site, kernel, axis, cut)
    return site.state


def dup_kernel(world: World, state: State, action: Action) -> State:
    """Run a kernel on every coordinate of an axis."""
    return _alike(world, state, action)


def dedup_kernel(world: World, state: State, action: Action) -> State:
    """Run a kernel on the first coordinate of an axis only."""
    return _alike(world, state, action)


def _alike(world: World, state: State, action: Action) -> State:
    needs(action, "axis?")
    site, op = operator_site(world, state, action)
    for axis in axes_of(action, state.mesh):
        kernel = site.kernel(op.output.name)
        choice: Choice = asked(action, kernel)
        site = chosen(site, kernel, axis, choice)
    return site.state


def fuse_kernels(world: World, state: State, action: Action) -> State:
    """Compute the operator `inner` inside the target; or, with a `dim` such as batch→expert, turn the token cut of a
    dispatch or combine into the routed one, which holds its all-to-all."""
    site, op = operator_site(world, state, action)
    if action.dim:
        needs(action, "dim", "axis?")
        return _routed(site, op, action)
    needs(action, "inner")
    blocks = world.blocks(state.alike)
    same = world.representative(blocks, action.inner)[1] == world.representative(blocks, action.target)[1]
    inner = site.own(action.inner)
    outer = effective(site.kind, site.edits, op.output.name)[0]
    fused = asked(action, outer, inner)  # refuses what is no named fusion, and what does not feed the operand
    if not same or inner.output.name not in {t.name for t in outer.operands}:
        raise RefusedError("not-adjacent", f"{op.name} does not read {inner.name} in its own block")
    check_unfused(site, op, inner)
    choices = _fused_choices(site, outer, inner, fused)
    edits = site.edits
    merged = {**edits.fused, op.output.name: (*edits.fused.get(op.output.name, ()), inner.output.name)}
    steps = _moved_in(site, inner, fused)
    cut = {**edits.choices, op.output.name: choices}
    return site.with_edits(replace(edits, fused=merged, choices=cut, steps=steps)).state


def check_unfused(site: Site, op: Op, inner: Op) -> None:
    """Raise `RefusedError` where one of two operators is in another kernel, left out, or ordered by hand."""
    fused = site.edits.fused
    for name in (op.output.name, inner.output.name):
        if name in site.edits.removed:
            raise RefusedError("removed", f"the identity that makes {name} was removed")
    if inner.output.name in fused:
        raise RefusedError("fused", f"{', '.join(fused[inner.output.name])} is computed inside {inner.name} already")
    if op.output.name in site.edits.inside and op.kind != JOINT:  # of which others are parts
        raise RefusedError("fused", f"{op.name} is computed inside another kernel itself")
    waiting = {name for edge in site.state.control for name in edge} | set(site.state.streams)
    names = site.blocks.rename
    for label in site.kind.blocks:
        if {names[label][op.name], names[label][inner.name]} & waiting:
            raise RefusedError("ordered", f"a control edge or a stream of its own hangs on {op.name} or {inner.name}")


def _fused_choices(site: Site, op: Op, inner: Op, fused: Op) -> tuple[Choice, ...]:
    """What the fused kernel does along each axis: what the two did, if no step lies between them."""
    out: list[Choice] = []
    for axis, (own, feed) in enumerate(zip(site.choices(op), site.choices(inner), strict=True)):
        if not isinstance(own, Cut) and own == feed:
            out.append(own)
            continue
        rows = [row for row in signature(fused) if row.kind is not CutKind.ROUTE]
        outer_reads = own.operands if isinstance(own, Cut) else (own,) * len(op.operands)
        inner_reads = feed.operands if isinstance(feed, Cut) else (feed,) * len(inner.operands)
        left = own.out if isinstance(own, Cut) else own
        reads = list(zip(wiring(fused), (outer_reads, inner_reads), strict=True))
        fitting = [row for row in rows if row.out == left and all(_reads_so(row, *each) for each in reads)]
        if not fitting:
            raise RefusedError(
                "cut-apart",
                f"{op.name} and {inner.name} are not cut alike on axis {axis}, so that a step lies between them",
                hint="cut them alike first, or run both whole",
            )
        out.append(fitting[0])
    return tuple(out)


def _reads_so(row: Cut, places: Sequence[int], entries: Sequence[str]) -> bool:
    """Does a row of a fused kernel read its operands as one of its two operators did?"""
    return all(place < 0 or row.operands[place] == entry for place, entry in zip(places, entries, strict=True))


def _moved_in(site: Site, inner: Op, fused: Op) -> dict[Read, tuple[Transfer, ...]]:
    """The merged steps of the fused kernel's reads, at the numbers that its operands have now."""
    outside, inside = wiring(fused)
    outer, feed = fused.output.name, inner.output.name
    found: dict[Read, tuple[Transfer, ...]] = {}
    for (name, index), steps in site.edits.steps.items():
        if name != outer or index < 0:
            found[name, index] = steps
        elif outside[index] >= 0:
            found[outer, outside[index]] = steps
        if name == feed and index >= 0:
            found[outer, inside[index]] = steps
    return found


def _routed(site: Site, op: Op, action: Action) -> State:
    for axis in axes_of(action, site.state.mesh):
        kernel = site.kernel(op.output.name)
        rows = [row for row in signature(kernel) if row.kind is CutKind.ROUTE and f"{row.dim}→{row.out}" == action.dim]
        if not rows:
            known = ", ".join(f"{row.dim}→{row.out}" for row in signature(kernel) if row.kind is CutKind.ROUTE)
            raise RefusedError(
                "no-such-fusion", f"{kernel.kind} {op.name} has no routed cut {action.dim!r}: {known or 'none'}"
            )
        now = site.choices(kernel)[axis]
        if not isinstance(now, Cut) or now.dim != rows[0].dim:
            raise RefusedError("not-cut", f"{op.name} is not cut by {rows[0].dim!r} on that axis yet: split it first")
        site = chosen(site, kernel, axis, rows[0])
    return site.state


# -- choices ----------------------------------------------------------------------------------------------------------


def chosen(site: Site, kernel: Op, axis: int, choice: Choice) -> Site:
    """The site after a kernel has made another choice along an axis. Merges on that axis at its reads and at those of
    its output are taken back. A cache that is written and read lies alike for all: whoever shares it is cut with it."""
    todo: list[tuple[Op, Choice]] = [(kernel, choice)]
    done: set[str] = set()
    while todo:
        op, choice = todo.pop()
        done.add(op.output.name)
        old = site.choices(op)
        new = (*old[:axis], choice, *old[axis + 1 :])
        if new == old:
            continue
        edits = site.edits
        site = site.with_edits(
            replace(
                edits,
                choices=_without_whole({**edits.choices, op.output.name: new}, op, len(new)),
                steps=_without(site, {op.output.name}, axis),
            )
        )
        todo += [
            (other, other_choice) for other, other_choice in _tied(site, op, axis) if other.output.name not in done
        ]
    return site


def _without_whole(choices: dict[str, tuple[Choice, ...]], op: Op, axes: int) -> dict[str, tuple[Choice, ...]]:
    """A kernel that runs whole on all axes has no entry, so that equal states are equal records."""
    if choices[op.output.name] == (whole(op),) * axes:
        del choices[op.output.name]
    return choices


def _without(site: Site, kernels: Collection[str], axis: int) -> dict[Read, tuple[Transfer, ...]]:
    """The merged steps but for those on an axis at the reads of some kernels, and of what they make."""
    edits = site.edits
    operands = {name: site.kernel(name).operands for name, index in edits.steps if index >= 0}
    found = {}
    for (name, index), steps in edits.steps.items():
        read = name if index < 0 else operands[name][index].name
        near = name in kernels or source(edits, read) in kernels
        left = tuple(step for step in steps if not (near and axis in step.axes))
        if left:
            found[name, index] = left
    return found


def _tied(site: Site, op: Op, axis: int) -> list[tuple[Op, Choice]]:
    """Kernels that write or read the same cache as `op`, in the block, and are not cut as it is: with their cut."""
    found = []
    for maker, reader, index in _caches(site):
        if op.output.name not in (maker.output.name, reader.output.name):
            continue
        made, read = _entry(site, maker, axis, None), _entry(site, reader, axis, index)
        if made != read:
            other, at = (reader, index) if op.output.name == maker.output.name else (maker, None)
            found.append((other, _like(other, made if at is not None else read, at)))
    return found


def _caches(site: Site) -> list[tuple[Op, Op, int]]:
    """(maker, reader, operand) of every cache or state that is made in the block."""
    stays = fixed(site.kind)
    kernels = {name: site.kernel(name) for name in site.modes()}
    return [
        (kernels[source(site.edits, tensor.name)], reader, index)
        for reader in kernels.values()
        for index, tensor in enumerate(reader.operands)
        if tensor.name in stays and source(site.edits, tensor.name) in kernels
    ]


def _entry(site: Site, op: Op, axis: int, index: int | None) -> str:
    choice = choices_of(op, site.edits, site.axes)[axis]
    if not isinstance(choice, Cut):
        return choice
    return choice.out if index is None else choice.operands[index]


def _like(op: Op, entry: str, index: int | None) -> Choice:
    """The choice in which a kernel makes (index None) or reads a cache that lies so."""
    if entry == REPLICATED and op_kind(op.kind).pure:
        return REPLICATED
    for row in signature(op):
        if row.kind is not CutKind.ROUTE and (row.out if index is None else row.operands[index]) == entry:
            return row
    raise RefusedError("tied", f"{op.name} shares a cache with it and cannot be cut by {entry!r} with it")


def _parts(site: Site, kernel: Op, dim: str, axis: int) -> int:
    """Into how many parts a dim is cut when it is cut along one more axis."""
    count = 1
    for number, choice in enumerate(site.choices(kernel)):
        if number == axis or (isinstance(choice, Cut) and choice.dim == dim):
            count *= site.state.mesh.axes[number].size
    return count
