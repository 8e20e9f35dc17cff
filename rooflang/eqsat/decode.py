"""From pruned e-nodes in integers to layout records in the names of one block."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rooflang.eqsat.frozen import Arrival, FrozenBlock, Hold, SaturationStats
from rooflang.eqsat.prune import Pruned
from rooflang.ir.cut import OWNER, REPLICATED, Spec
from rooflang.ir.kinds.fused import covered
from rooflang.ir.layout import Choice, Mode, Transfer, change
from rooflang.ir.op import Op, op_kind
from rooflang.rules.theory import TIERS, Theory


def decode(theory: Theory, pruned: Pruned, stats: SaturationStats) -> FrozenBlock:
    """The frozen block of a theory whose program was saturated and pruned."""
    spec_of = cache(theory.decode)
    names = [tensor.name for tensor in theory.tensors]
    exits = {
        tensor.name: tuple(spec_of(code) for n, code in pruned.exits if n == pruned.first[theory.number[tensor.name]])
        for tensor in theory.kind.outputs
    }
    return FrozenBlock(
        kind=theory.kind,
        axes=theory.axes,
        modes=_modes(theory, pruned, spec_of),
        transfers=_transfers(_movers(theory, pruned), pruned, spec_of),
        holds=tuple(Hold(leaf=names[n], spec=spec_of(code), tier=TIERS[tier]) for n, code, tier in pruned.holds),
        arrivals=tuple(Arrival(port=names[port], spec=spec_of(code)) for port, code in pruned.arrivals),
        exits=exits,
        aliases={name: names[pruned.first[number]] for number, name in enumerate(names)},
        stats=stats,
    )


def _movers(theory: Theory, pruned: Pruned) -> list[str]:
    """For each class, by its lowest number, the name under which it moves: of a value that may also lie in a cache the
    one that does not."""
    names = [tensor.name for tensor in theory.tensors]
    movable: dict[int, str] = {}
    for number, first in enumerate(pruned.first):
        if theory.movable(theory.tensors[number]):
            movable.setdefault(first, names[number])
    return [movable.get(number, name) for number, name in enumerate(names)]


def _transfers(names: list[str], pruned: Pruned, spec_of: Callable[[int], Spec]) -> tuple[Transfer, ...]:
    changes: dict[tuple[int, int], tuple[Spec, Spec, str, tuple[int, ...]]] = {}
    out = []
    for number, old, new, _ in pruned.moves:
        if (old, new) not in changes:
            changes[old, new] = (spec_of(old), spec_of(new), *change(spec_of(old), spec_of(new)))
        before, after, name, axes = changes[old, new]
        out.append(Transfer(tensor=names[number], collective=name, before=before, after=after, axes=axes))
    return tuple(out)


def _modes(theory: Theory, pruned: Pruned, spec_of: Callable[[int], Spec]) -> tuple[Mode, ...]:
    choices = [_choices(theory, op) for op in theory.kernels]
    covers = [covered(op) for op in theory.kernels]
    out = []
    for kernel, code, codes in pruned.runs:
        made, read = spec_of(code), tuple(map(spec_of, codes))
        chosen = tuple(choices[kernel][entries] for entries in zip(*read, made, strict=True))
        op = theory.kernels[kernel]
        out.append(Mode(op=op, choices=chosen, operands=read, out=made, covers=covers[kernel]))
    return tuple(out)


def _choices(theory: Theory, op: Op) -> dict[tuple[str, ...], Choice]:
    """What the operator does along an axis, by the spec entries of its operands and its output there."""
    count = len(op.operands) + 1
    table: dict[tuple[str, ...], Choice] = {}
    if op_kind(op.kind).pure:
        table[(REPLICATED,) * count] = REPLICATED
        table[(OWNER,) * count] = OWNER
    for _, cut in theory.rows(op):
        table.setdefault((*cut.operands, cut.out), cut)
    return table
