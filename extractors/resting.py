"""Where the leaves of a block may rest: which of them may lie in a memory other than HBM, and where a kernel may then
find those that it touches.

A leaf may leave HBM if one kernel of the block alone reads it, or alternatives of which one runs, and perhaps what was
written into it in place; if it is not tiny; and if the e-graph holds it there, which the rule insert_identity says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from rooflang.cost.tiers import HBM
from rooflang.eqsat import FrozenBlock
from rooflang.extractors.names import Names
from rooflang.ir.blocks import Blocks
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Mode
from rooflang.ir.tensor import RESIDENT_ROLES

#: Leaves that hold less than this part of what a block's leaves hold stay in HBM: moving them frees nothing.
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Resting:
    """`at_rest` are the (leaf, spec, tier) of the e-graph, `far` the memories beside HBM for each leaf that may be
    there."""

    names: Names
    at_rest: frozenset[tuple[str, Spec, str]]
    far: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, blocks: Blocks, block: FrozenBlock, names: Names, tiers: tuple[str, ...]) -> Resting:
        """Where leaves may rest if only the memories `tiers` are used."""
        at_rest = frozenset((hold.leaf, hold.spec, hold.tier) for hold in block.holds if hold.tier in tiers)
        beside = tuple(tier for tier in tiers if tier != HBM and any(held[2] == tier for held in at_rest))
        far = dict.fromkeys(_movable(blocks, block, names), beside) if beside else {}
        return cls(names=names, at_rest=at_rest, far=far)

    def where(self, mode: Mode) -> Iterator[dict[str, str]]:
        """The memories in which the leaves that a kernel touches may lie, leaf by leaf, HBM if not said otherwise;
        nothing where one is not at rest as the kernel reads it."""
        if not self.far:
            found = (
                (self.names.leaf_of(t.name), spec) for t, spec in zip(mode.op.operands, mode.operands, strict=True)
            )
            if all(not leaf or not direct or (leaf, spec, HBM) in self.at_rest for (leaf, direct), spec in found):
                yield {}
            return
        touched: dict[str, list[str]] = {}
        for tensor, spec in zip(mode.op.operands, mode.operands, strict=True):
            leaf, direct = self.names.leaf_of(tensor.name)
            if leaf:
                mine = [HBM, *self.far.get(leaf, ())]
                mine = [tier for tier in mine if not direct or (leaf, spec, tier) in self.at_rest]
                touched[leaf] = [tier for tier in touched.get(leaf, mine) if tier in mine]
        yield from (dict(zip(touched, tiers)) for tiers in product(*touched.values()))


def _movable(blocks: Blocks, block: FrozenBlock, names: Names) -> Iterator[str]:
    kind = block.kind
    kernels = []
    for mode in block.modes:
        touched = [names[tensor.name] for tensor in mode.op.operands]
        kernels.append(
            Kernel(
                value=names[mode.op.output.name],
                values=frozenset(name for name in touched if name in names.number),
                leaves=frozenset(name for name in touched if name not in names.number),
            )
        )
    leaving = {names[tensor.name] for tensor in kind.outputs}
    stay = set(shared_leaves(kernels, leaving)) | {names.leaf_of(name)[0] for name in leaving}
    sizes = {leaf.name: leaf.bytes(blocks.graph.sizes) for leaf in kind.leaves if leaf.role in RESIDENT_ROLES}
    readers: dict[str, set[str]] = {}
    for label, own in blocks.rename.items():
        for name in blocks.by_name[blocks.kind_of[label]].leaves:
            readers.setdefault(own[name.name], set()).add(label)
    alone = {leaf for leaf in sizes if all(
        len(readers[blocks.rename[label][leaf]]) == 1 for label in kind.blocks)}  # fmt: skip
    least = _TINY * sum(sizes.values())
    yield from (leaf for leaf, size in sizes.items() if size >= least and leaf in alone and leaf not in stay)
