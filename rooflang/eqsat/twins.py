"""Ports that are twins: a block that reads several values of other blocks in one and the same way saturates as if there
were one of them.

The layers of a model in which each reads what some layers before it left (attention over depth) differ in how many of
those there are, and in nothing else. Twins are input ports of equal dims and dtype that every operator which reads one
of them reads together, in rows that want all of them alike; whatever an e-graph finds for one of them holds for the
others. So a block is saturated with one of each set of twins, and the others are put back into what was found.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rooflang.eqsat.prune import Move, Pruned
from rooflang.errors import GraphError
from rooflang.ir.blocks import BlockKind
from rooflang.ir.cut import CutKind
from rooflang.ir.op import Op, op_kind, signature
from rooflang.ir.tensor import Tensor
from rooflang.rules.theory import Theory


@dataclass(frozen=True, kw_only=True)
class Twins:
    """A block without all but one of each set of twins; `stands[port]` is the one that is left of a port's set, for
    those that are not."""

    kind: BlockKind
    stands: Mapping[str, str]

    @classmethod
    def of(cls, kind: BlockKind) -> Twins:
        """The smallest block that a block is like."""
        stands: dict[str, str] = {}
        small = kind
        for number, port in enumerate(kind.inputs):
            for other in kind.inputs[:number]:
                alike = other.name not in stands and other == replace(port, name=other.name)
                without = _without(small, port, other) if alike else None
                if without is not None:
                    small, stands[port.name] = without, other.name
                    break
        return cls(kind=small, stands=stands)

    def restored(self, pruned: Pruned, small: Theory, full: Theory) -> Pruned:
        """What was found for the smaller block, of the block with all twins."""
        number = {n: full.number[tensor.name] for n, tensor in enumerate(small.tensors)}
        like: dict[int, list[int]] = {n: [m] for n, m in number.items()}
        for port, other in self.stands.items():
            like[small.number[other]].append(full.number[port])
        back = {m: n for n, all_ in like.items() for m in all_}
        first = tuple(number[pruned.first[back[m]]] if m == number[back[m]] else m for m in range(len(full.tensors)))
        places = [self._places(one, other) for one, other in zip(small.kernels, full.kernels, strict=True)]
        return replace(
            pruned,
            first=first,
            runs=tuple((k, out, tuple(read[at] for at in places[k])) for k, out, read in pruned.runs),
            moves=tuple((m, old, new, by) for m, n in sorted(back.items()) for _, old, new, by in _of(n, pruned.moves)),
            holds=tuple(sorted((number[n], spec, tier) for n, spec, tier in pruned.holds)),
            arrivals=tuple(sorted((m, spec) for n, spec in pruned.arrivals for m in like[n])),
            exits=tuple(sorted((number[n], spec) for n, spec in pruned.exits)),
        )

    def _places(self, small: Op, full: Op) -> tuple[int, ...]:
        """For each operand of a kernel the one of the smaller kernel that lies as it does."""
        kept = iter(range(len(small.operands)))
        names = [tensor.name for tensor in small.operands]
        return tuple(names.index(self.stands[t.name]) if t.name in self.stands else next(kept) for t in full.operands)


def _of(number: int, moves: Sequence[Move]) -> Sequence[Move]:
    """Those of sorted moves that are a tensor's."""
    return moves[bisect_left(moves, (number,)) : bisect_left(moves, (number + 1,))]


def _without(kind: BlockKind, port: Tensor, other: Tensor) -> BlockKind | None:
    """The block without a port, if the other one is a twin of it."""
    ops = []
    for op in kind.ops:
        names = [tensor.name for tensor in op.operands]
        if port.name not in names and other.name not in names:
            ops.append(op)
            continue
        if names.count(port.name) != 1 or names.count(other.name) != 1:
            return None
        at = names.index(port.name)
        less = replace(op, operands=(*op.operands[:at], *op.operands[at + 1 :]))
        if not _alike(op, less, at, names.index(other.name)):
            return None
        ops.append(less)
    return replace(kind, ops=tuple(ops), inputs=tuple(t for t in kind.inputs if t.name != port.name))


def _alike(op: Op, less: Op, at: int, other: int) -> bool:
    """Has an operator the rows that it has without operand `at`, which lies in each of them as operand `other` does?"""
    rows = [(row.kind is CutKind.ROUTE, row.operands, row.out) for row in signature(op)]
    wanted = [(routed, (*read[:at], *read[at + 1 :]), out) for routed, read, out in rows]
    fewer = [(row.kind is CutKind.ROUTE, row.operands, row.out) for row in signature(less)] if _takes(less) else []
    return wanted == fewer and all(read[at] == read[other] for _, read, _ in rows)


def _takes(op: Op) -> bool:
    """Does the kind of an operator take so few operands?"""
    try:
        op_kind(op.kind).check(op)
    except GraphError:
        return False
    return True
