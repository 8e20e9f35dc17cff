"""The blocks of a graph before they are priced: what may run on a mesh of so many axes, whatever their sizes.

Operators without their names get numbers, and those that cost the same the same one, so that a mesh prices each once,
for all kinds of block together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from rooflang.cost.alike import Alike
from rooflang.cost.tiers import HBM
from rooflang.eqsat import FrozenBlock
from rooflang.errors import PlacementError
from rooflang.extractors.itself import Itself
from rooflang.extractors.layouts import BoolArray, IntArray, Place, Places
from rooflang.extractors.names import Names
from rooflang.extractors.resting import AS_READ, Rest, Resting, once_made
from rooflang.extractors.shape import CostedMode, Held, LeafRead, Read, Shape, Slot
from rooflang.ir.blocks import Blocks
from rooflang.ir.cut import OWNER, Spec, replicated
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import RESIDENT_ROLES, Tensor


class Numbers:
    """Numbers for things by their value; it is looked at once for each object."""

    def __init__(self) -> None:
        self._of: dict[object, int] = {}
        self._known: dict[int, tuple[object, int]] = {}  # by id, of objects that are kept here

    def of(self, thing: object) -> int:
        """The number of something that will be asked for again."""
        known = self._known.get(id(thing))
        if known is None:
            known = self._known[id(thing)] = (thing, self.once(thing))
        return known[1]

    def once(self, thing: object) -> int:
        """The number of something that was made to ask for it."""
        return self._of.setdefault(thing, len(self._of))


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A value that a kernel reads as operand number `operand`, or makes (-1), where it lies in HBM, and the leaf in
    whose memory it lies (none: "")."""

    operand: int
    value: int
    place: Place
    leaf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A mode that may run, the number of its price, the values that it touches, its output last, and the operands that
    are leaves: their numbers, the leaves, and the specs in which they are read."""

    mode: Mode
    price: int
    touched: tuple[Touch, ...]
    leaves: tuple[tuple[int, Tensor, Spec], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A run whose leaves rest as `where` says."""

    run: Run
    where: Mapping[str, Rest] = field(default_factory=dict)

    def rest(self, leaf: str) -> Rest:
        """How a leaf rests."""
        return self.where.get(leaf, AS_READ)

    def place(self, touch: Touch) -> Place:
        """Where a value that it touches lies."""
        return (touch.place[0], self.rest(touch.leaf).tier) if self.where else touch.place


@dataclass(frozen=True, kw_only=True, eq=False)
class Outline:
    """One kind of block: its `runs`; the single `steps` between layouts of each value, by the places that they lead
    from and to; the `borders` by port. `plain` says that leaves rest in HBM as they are read, on every mesh; then
    `prices` are those of the runs."""

    blocks: Blocks
    block: FrozenBlock
    names: Names
    plain: bool
    runs: tuple[Run, ...]
    steps: tuple[tuple[tuple[Place, Place, Transfer], ...], ...]
    borders: Mapping[int, tuple[Spec, ...]]
    prices: IntArray
    _alike: Alike
    _numbers: Numbers
    _shapes: dict[bytes, Shape] = field(default_factory=dict)

    def that_can_run(self, runs: BoolArray) -> Shape:
        """The shape of the block where only some of its runs can run; it has to be `plain`."""
        key = runs.tobytes()
        if key not in self._shapes:
            self._shapes[key] = self.shape([Draft(run=self.runs[run]) for run in np.flatnonzero(runs)])
        return self._shapes[key]

    def shape(self, drafts: Sequence[Draft]) -> Shape:
        """The shape of the block with these modes."""
        values = self._slots(drafts)
        number = [slot.places.place for slot in values]
        held = {
            (leaf.name, spec): leaf
            for draft in drafts
            for _, leaf, read in draft.run.leaves
            for gather in [draft.rest(leaf.name).gather]
            for spec in ([read] if gather is None else [read, gather.before])
        }
        return Shape(
            kind=self.block.kind,
            values=values,
            modes=tuple(_numbered(draft, number) for draft in drafts),
            held=tuple(
                Held(leaf=leaf, spec=spec, alike=self._numbers.once((self._alike.tensor(leaf), spec)))
                for (_, spec), leaf in held.items()
            ),
            aliases=self.names.removed,
        )

    def _slots(self, drafts: Sequence[Draft]) -> tuple[Slot, ...]:
        kind, names, port_group = self.block.kind, self.names, self.blocks.port_group
        places: list[dict[Place, None]] = [{} for _ in names.tensors]
        for draft in drafts:
            for touch in draft.run.touched:
                places[touch.value][draft.place(touch)] = None
        for mine, steps in zip(places, self.steps):
            for before, after, _ in steps:
                mine[before] = mine[after] = None
        exits: dict[str, list[tuple[str, int]]] = {}
        for port in (*kind.inputs, *kind.outputs):
            group = port_group[(kind.name, port.name)]
            places[names.number[names[port.name]]].update(dict.fromkeys((spec, HBM) for spec in self.borders[group]))
            if port in kind.outputs:
                exits.setdefault(names[port.name], []).append((port.name, group))
        in_place = {names[op.output.name] for op in kind.ops if op_kind(op.kind).in_place is not None}
        arriving = {t.name for t in kind.inputs}
        out = []
        for (name, tensor), mine, steps in zip(names.tensors.items(), places, self.steps):
            found = _places(tuple(mine), steps)
            key = (self._alike.tensor(tensor), found.specs, tuple(found.steps))
            out.append(
                Slot(
                    tensor=tensor,
                    places=found,
                    alike=self._numbers.once(key),
                    in_place=name in in_place,
                    port=port_group[(kind.name, name)] if name in arriving else -1,
                    exits=tuple(exits.get(name, ())),
                )
            )
        return tuple(out)


def _places(places: tuple[Place, ...], steps: Iterable[tuple[Place, Place, Transfer]]) -> Places:
    number = {place: index for index, place in enumerate(places)}
    by_pair = {(number[before], number[after]): step for before, after, step in steps}
    specs, tiers = tuple(spec for spec, _ in places), tuple(tier for _, tier in places)
    return Places(specs=specs, steps=by_pair, tiers=() if set(tiers) <= {HBM} else tiers)


def _numbered(draft: Draft, number: Sequence[Mapping[Place, int]]) -> CostedMode:
    *read, made = draft.run.touched
    leaves = []
    for operand, leaf, spec in draft.run.leaves:
        rest = draft.rest(leaf.name)
        lies = spec if rest.gather is None else rest.gather.before
        leaves.append(LeafRead(operand=operand, leaf=leaf.name, spec=lies, tier=rest.tier, gather=rest.gather))
    return CostedMode(
        mode=draft.run.mode,
        value=made.value,
        out=number[made.value][draft.place(made)],
        reads=tuple(
            Read(operand=each.operand, value=each.value, layout=number[each.value][draft.place(each)]) for each in read
        ),
        leaves=tuple(leaves),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Outlines:
    """All kinds of block of a graph, by name. `modes[price]` is one of the modes that have a price.

    `borders[group]` are the layouts in which every block kind can hand over or take the ports of that group.
    """

    kinds: Mapping[str, Outline]
    modes: tuple[Mode, ...]
    borders: Mapping[int, tuple[Spec, ...]]

    @classmethod
    def of(
        cls, blocks: Blocks, frozen: Mapping[str, FrozenBlock], scale: Mapping[str, float], tiers: tuple[str, ...]
    ) -> Outlines:
        """The outlines of frozen blocks, with leaves in any of the memories `tiers`; `scale` is that of partial values
        in the cost model.

        Raises `PlacementError` when two kinds of block have no layout in common for what passes between them.
        """
        return _outlines(Itself(blocks), tuple(Itself(frozen[kind.name]) for kind in blocks.kinds),
                         tuple(scale.items()), tiers)  # fmt: skip


#: Some are kept: of a model on one and on two axes, with leaves in HBM and elsewhere.
@lru_cache(maxsize=6)
def _outlines(
    blocks: Itself[Blocks],
    frozen: tuple[Itself[FrozenBlock], ...],
    scale: tuple[tuple[str, float], ...],
    tiers: tuple[str, ...],
) -> Outlines:
    of = {block.record.kind.name: block.record for block in frozen}
    borders = _borders(blocks.record, of)
    alike, numbers, prices = Alike(dict(scale)), Numbers(), Numbers()
    modes: dict[int, Mode] = {}
    kinds = {}
    for name, block in of.items():
        names = Names(block)
        plain = tiers == (HBM,) and all(step.tensor in names.number for step in block.transfers)
        whole = block if plain else once_made(block, names)
        owners = _owners_needed(whole.modes)
        candidates = _candidates(whole, names, owners, plain)
        runs = tuple(_run(mode, names, prices.once(_priced(mode, alike, numbers))) for mode in candidates)
        for run in runs:
            modes.setdefault(run.price, run.mode)
        kinds[name] = Outline(
            blocks=blocks.record,
            block=whole,
            names=names,
            plain=plain,
            runs=runs,
            steps=_steps(whole, names, owners),
            borders=borders,
            prices=np.array([run.price for run in runs], np.int64),
            _alike=alike,
            _numbers=numbers,
        )
    return Outlines(kinds=kinds, modes=tuple(modes[price] for price in range(len(modes))), borders=borders)


def _borders(blocks: Blocks, frozen: Mapping[str, FrozenBlock]) -> dict[int, tuple[Spec, ...]]:
    found: dict[int, tuple[Spec, ...]] = {}
    for kind in blocks.kinds:
        block = frozen[kind.name]
        arrivals: dict[str, list[Spec]] = {}
        for arrival in block.arrivals:
            arrivals.setdefault(arrival.port, []).append(arrival.spec)
        for port in (*kind.inputs, *kind.outputs):
            group = blocks.port_group[(kind.name, port.name)]
            for table in (arrivals, block.exits):
                if port.name in table:
                    allowed = set(table[port.name])
                    found[group] = tuple(s for s in found.get(group, table[port.name]) if s in allowed)
            if not found.get(group):
                raise PlacementError(f"no layout of {port.name} suits all blocks that hand it over or take it",
                                     where=kind.name)  # fmt: skip
    return found


def _candidates(block: FrozenBlock, names: Names, owners: bool, plain: bool) -> Iterator[Mode]:
    """The modes that may run on some mesh: those that make something anew, the leaves that they read being at rest."""
    resting = Resting.as_read(block, names)
    for mode in block.modes:
        if OWNER in mode.choices and not owners:
            continue
        if any(names[t.name] == names[mode.op.output.name] for t in mode.op.operands):
            continue
        if not plain or any(True for _ in resting.where(mode)):
            yield mode


def _priced(mode: Mode, alike: Alike, numbers: Numbers) -> object:
    """What operators that cost the same have in common."""
    return (numbers.of(alike.op(mode.op)), *map(numbers.of, mode.choices))


def _run(mode: Mode, names: Names, price: int) -> Run:
    touched, leaves = [], []
    tensors = (*enumerate(mode.op.operands), (-1, mode.op.output))
    for (operand, tensor), spec in zip(tensors, (*mode.operands, mode.out), strict=True):
        value = names.number.get(names[tensor.name])
        if value is not None:
            lies = names.leaf_of(tensor.name)[0]
            touched.append(Touch(operand=operand, value=value, place=(spec, HBM), leaf=lies))
        elif names.leaf(tensor).role in RESIDENT_ROLES:
            leaves.append((operand, names.leaf(tensor), spec))
    return Run(mode=mode, price=price, touched=tuple(touched), leaves=tuple(leaves))


def _steps(block: FrozenBlock, names: Names, owners: bool) -> tuple[tuple[tuple[Place, Place, Transfer], ...], ...]:
    out: list[list[tuple[Place, Place, Transfer]]] = [[] for _ in names.tensors]
    for step in block.transfers:
        value = names.number.get(names[step.tensor])
        if value is not None and (owners or OWNER not in (*step.before, *step.after)):
            out[value].append(((step.before, HBM), (step.after, HBM), step))
    return tuple(map(tuple, out))


def _owners_needed(modes: Iterable[Mode]) -> bool:
    """Are modes worth a column in which only an axis' first coordinate runs?

    The owner works as long as every replica would, and others have to be sent the result: where each such mode has a
    twin that runs replicated, replacing all of them keeps C, drops broadcasts from N, and changes no rank's peak. So
    they are dominated, unless rules were disabled and a twin is missing.
    """
    keys = {_key(mode) for mode in modes}
    return any(_key(mode, replicate=True) not in keys for mode in modes if OWNER in mode.choices)


def _key(mode: Mode, *, replicate: bool = False) -> object:
    specs = (*mode.operands, mode.out)
    if replicate:
        specs = tuple(map(replicated, specs))
    return (mode.op.name, mode.op.kind, specs)
