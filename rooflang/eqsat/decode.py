"""From pruned e-nodes in integers to layout records in the names of one block."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rooflang.eqsat.frozen import Arrival, FrozenBlock, Hold, SaturationStats
from rooflang.eqsat.prune import Pruned
from rooflang.ir.cut import OWNER, REPLICATED, Spec, show_spec
from rooflang.ir.layout import Choice, Mode, Transfer, make_mode, make_transfer
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
        holds=tuple(_hold(names[leaf], spec_of(code), TIERS[tier]) for leaf, code, tier in pruned.holds),
        arrivals=tuple(_arrival(names[port], spec_of(code)) for port, code in pruned.arrivals),
        exits=exits,
        aliases={name: names[pruned.first[number]] for number, name in enumerate(names)},
        stats=stats,
    )


def _hold(leaf: str, spec: Spec, tier: str) -> Hold:
    return Hold(leaf=leaf, spec=spec, tier=tier, enode=f"(Hold {leaf} {show_spec(spec)} {tier})")


def _arrival(port: str, spec: Spec) -> Arrival:
    return Arrival(port=port, spec=spec, enode=f"(PortAt {port} {show_spec(spec)})")


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
    out = []
    for number, before_code, after_code, constructor in pruned.moves:
        name, before, after = names[number], spec_of(before_code), spec_of(after_code)
        shown = show_spec(before)
        enode = f"({constructor} {shown} {show_spec(after)} (View {name} {shown}))"
        out.append(make_transfer(name, before, after, enode=enode))
    return tuple(out)


def _modes(theory: Theory, pruned: Pruned, spec_of: Callable[[int], Spec]) -> tuple[Mode, ...]:
    choices = [_choices(theory, op) for op in theory.kernels]
    terms = [f"(Op{len(op.operands)} {' '.join((op.name, *(t.name for t in op.operands)))})" for op in theory.kernels]
    out = []
    for kernel, out_code, operand_codes in pruned.runs:
        op = theory.kernels[kernel]
        made, read = spec_of(out_code), [spec_of(code) for code in operand_codes]
        chosen = [choices[kernel][entries] for entries in zip(*read, made, strict=True)]
        views = " ".join(f"(View {t.name} {show_spec(spec)})" for t, spec in zip(op.operands, read, strict=True))
        run = f"(Run{len(read)} {op.name} {show_spec(made)} {views})"
        out.append(make_mode(op, chosen, enodes=(run, terms[kernel])))
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
