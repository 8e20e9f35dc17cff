"""Where the leaves of a block may rest: which of them may lie in a memory other than HBM, or cut and be gathered, and
where a kernel may then find those that it touches.

A leaf may leave HBM if one kernel of the block alone reads it, or alternatives of which one runs, and perhaps what was
written into it in place; if it is not tiny there; and if the e-graph holds it elsewhere, which the rule insert_identity
says. A weight of that kind may also rest cut along more axes than its kernel reads it, where the e-graph gathers it, by
the rule merge_gather_broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.eqsat import FrozenBlock
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.names import Names
from rooflang.extractors.needed import needed
from rooflang.ir.blocks import Blocks
from rooflang.ir.cut import REPLICATED, Spec
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.tensor import RESIDENT_ROLES, Tensor

#: What holds less of a rank than this part of the least that a block's leaves can hold there stays in HBM, as it is
#: read: moving it frees nothing.
_TINY = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What one way to make `value` reads: other values, and leaves, by name."""

    value: str
    values: frozenset[str]
    leaves: frozenset[str]


def shared_leaves(kernels: Iterable[Kernel], leaving: Collection[str]) -> frozenset[str]:
    """Leaves that several kernels of one plan may read. `leaving` are the values that have to be made in any case.

    A kernel and the one that has its work fused into it are no two: of two values that read a leaf, one is made only
    for the other, and whoever makes that one either reads it or reads the leaf.
    """
    found = set(kernels)
    makers: dict[str, set[Kernel]] = {}
    readers: dict[str, set[str]] = {}
    by_leaf: dict[str, set[str]] = {}
    for kernel in found:
        makers.setdefault(kernel.value, set()).add(kernel)
        for value in kernel.values:
            readers.setdefault(value, set()).add(kernel.value)
        for leaf in kernel.leaves:
            by_leaf.setdefault(leaf, set()).add(kernel.value)

    def one_for(inner: str, outer: str, leaf: str) -> bool:
        alone = inner not in leaving and readers.get(inner) == {outer}
        return alone and not any(inner in kernel.values and leaf in kernel.leaves for kernel in makers[outer])

    return frozenset(
        leaf
        for leaf, values in by_leaf.items()
        if any(
            one != other and not one_for(one, other, leaf) and not one_for(other, one, leaf)
            for one in values
            for other in values
        )
    )


def once_made(block: FrozenBlock, names: Names) -> FrozenBlock:
    """The block without the kernels that compute again, for themselves, what every plan has to make anyway: with them
    a plan may read one leaf in two kernels."""
    kernels = {(names[mode.op.output.name], _values_of(mode, names)) for mode in block.modes}
    leaving = {names[tensor.name] for tensor in block.kind.outputs}
    given = {names[tensor.name] for tensor in block.kind.inputs}
    always = needed(set(names.number) - given, given, leaving, kernels)
    made_by = {op.name: names[op.output.name] for op in block.kind.ops}
    inner = ((mode, {made_by[name] for name in mode.covers[:-1] if name in made_by}) for mode in block.modes)
    return replace(block, modes=tuple(mode for mode, values in inner if not values & always))


def _values_of(mode: Mode, names: Names) -> frozenset[str]:
    touched = (names[tensor.name] for tensor in mode.op.operands)
    return frozenset(name for name in touched if name in names.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """How a leaf rests: in the memory `tier`, as its kernel reads it, or as `gather` finds it, which makes it so."""

    tier: str = HBM
    gather: Transfer | None = None


#: What a tensor occupies on a rank in a spec, by batch size; infinite where its extents do not divide.
Size = Callable[[Tensor, Spec], FloatArray]

#: In HBM, as it is read.
AS_READ = Rest()


@dataclass(frozen=True, kw_only=True, eq=False)
class Resting:
    """`at_rest` are the (leaf, spec, tier) of the e-graph, `far` the memories beside HBM for each leaf that may be
    there, `gathers` the ways to gather a weight for a kernel that reads it in a spec. `large` says of a leaf in a spec
    whether it is worth a choice."""

    names: Names
    at_rest: frozenset[tuple[str, Spec, str]]
    far: Mapping[str, tuple[str, ...]]
    gathers: Mapping[tuple[str, Spec], tuple[Transfer, ...]]
    large: Callable[[str, Spec], bool]

    @classmethod
    def of(
        cls, blocks: Blocks, block: FrozenBlock, names: Names, tiers: tuple[str, ...], size: Size, ranks: int
    ) -> Resting:
        """Where leaves may rest on a mesh of so many `ranks` if only the memories `tiers` are used."""
        at_rest = frozenset((hold.leaf, hold.spec, hold.tier) for hold in block.holds if hold.tier in tiers)
        beside = tuple(tier for tier in tiers if tier != HBM and any(held[2] == tier for held in at_rest))
        leaves = {leaf.name: leaf for leaf in block.kind.leaves if leaf.role in RESIDENT_ROLES}
        whole = (REPLICATED,) * block.axes
        least = _TINY / ranks * sum(size(leaf, whole) for leaf in leaves.values())

        @cache
        def large(leaf: str, spec: Spec) -> bool:
            return leaf in leaves and bool(np.any(size(leaves[leaf], spec) >= least))

        gathers = [step for step in block.transfers if step.tensor in leaves]
        movable = frozenset(_movable(blocks, block, names)) if beside or gathers else frozenset()
        return cls(
            names=names,
            at_rest=at_rest,
            far=dict.fromkeys(sorted(movable), beside) if beside else {},
            gathers=_leanest((step for step in gathers if step.tensor in movable), leaves, size),
            large=large,
        )

    @classmethod
    def as_read(cls, block: FrozenBlock, names: Names) -> Resting:
        """Where leaves may rest in HBM if no weight is gathered: as they are read."""
        at_rest = frozenset((hold.leaf, hold.spec, HBM) for hold in block.holds if hold.tier == HBM)
        return cls(names=names, at_rest=at_rest, far={}, gathers={}, large=lambda leaf, spec: False)

    def where(self, mode: Mode) -> Iterator[dict[str, Rest]]:
        """How the leaves that a kernel touches may rest, leaf by leaf, in HBM as read if not said otherwise; nothing
        where one is not at rest so."""
        if not self.far and not self.gathers:
            found = (
                (self.names.leaf_of(t.name), spec) for t, spec in zip(mode.op.operands, mode.operands, strict=True)
            )
            if all(not leaf or not direct or (leaf, spec, HBM) in self.at_rest for (leaf, direct), spec in found):
                yield {}
            return
        touched: dict[str, list[Rest]] = {}
        for tensor, spec in zip(mode.op.operands, mode.operands, strict=True):
            leaf, direct = self.names.leaf_of(tensor.name)
            if leaf:
                free = self.large(leaf, spec)
                mine = [AS_READ, *(Rest(tier=tier) for tier in self.far.get(leaf, ()) if free)]
                mine = [rest for rest in mine if not direct or (leaf, spec, rest.tier) in self.at_rest]
                mine += [Rest(gather=step) for step in self.gathers.get((leaf, spec), ()) if free]
                touched[leaf] = [rest for rest in touched.get(leaf, mine) if rest in mine]
        yield from (dict(zip(touched, rests)) for rests in product(*touched.values()))


def _leanest(
    gathers: Iterable[Transfer], leaves: Mapping[str, Tensor], size: Size
) -> dict[tuple[str, Spec], tuple[Transfer, ...]]:
    """By leaf and by the spec that is read, one gather over each set of axes: along the label that leaves least on a
    rank. All of them move as much, so that no plan is lost."""
    best: dict[tuple[str, Spec], dict[tuple[int, ...], tuple[float, Transfer]]] = {}
    for step in gathers:
        rests = float(size(leaves[step.tensor], step.before).min())
        ways = best.setdefault((step.tensor, step.after), {})
        if rests < ways.get(step.axes, (math.inf, step))[0]:
            ways[step.axes] = (rests, step)
    return {key: tuple(step for _, (_, step) in sorted(ways.items())) for key, ways in best.items()}


def _movable(blocks: Blocks, block: FrozenBlock, names: Names) -> Iterator[str]:
    kind = block.kind
    kernels = []
    for mode in block.modes:
        touched = frozenset(names[tensor.name] for tensor in mode.op.operands)
        values = _values_of(mode, names)
        kernels.append(Kernel(value=names[mode.op.output.name], values=values, leaves=touched - values))
    leaving = {names[tensor.name] for tensor in kind.outputs}
    stay = set(shared_leaves(kernels, leaving)) | {names.leaf_of(name)[0] for name in leaving}
    resident = {leaf.name for leaf in kind.leaves if leaf.role in RESIDENT_ROLES}
    yield from sorted(leaf for leaf in resident - stay if (kind.name, leaf) not in blocks.shared_leaves)
