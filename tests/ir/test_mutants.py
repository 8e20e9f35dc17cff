"""Broken rules are found out: every mutant of a cut, a reference or a collective disagrees with the whole somewhere.

A mutant is killed when some random layout gives other numbers, other shapes, or shares that do not fit together. The
same layouts leave every unbroken rule alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from rooflang.errors import PlacementError
from rooflang.ir import values as collectives
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.digits import Digits
from rooflang.ir.layout import make_mode, make_transfer
from rooflang.ir.lifted import apply_transfer, assemble, run_mode
from rooflang.ir.op import Op, signature
from rooflang.ir.pieces import Piece, all_gather, gather, merge, reduce, scatter
from rooflang.ir.reference import Fold, Reference, Summary, Where, base, reference, topk
from rooflang.ir.reference.base import Array, Arrays, State
from rooflang.ir.tensor import Tensor

from .cases import CASES, arrays, expected, extents, laid, random_digits, same, the_op

TRIALS = 120
BROKEN = (PlacementError, ValueError, IndexError, KeyError)


@contextmanager
def defined(kind: str, changed: Reference) -> Iterator[None]:
    """The reference of a kind replaced while ranks run it."""
    with patch.dict(base._REFERENCES, {kind: changed}):
        yield


@dataclass(frozen=True, kw_only=True)
class Split:
    """One operator of `case` cut by the row that `pick` makes, its reference replaced on ranks by `broken`."""

    case: str
    pick: Callable[[Op], Cut]
    broken: Callable[[Reference], Reference] = lambda known: known
    loose: bool = False

    def holds(self, rng: np.random.Generator) -> bool:
        graph = extents(CASES[self.case](), rng, least=2)
        op, leaves = the_op(graph), arrays(graph, rng, ties=bool(rng.integers(2)))
        ranks = (int(rng.integers(2, 5)),)
        digits = random_digits(graph, ranks, rng)
        if self.loose:
            owner = {key: np.sort(rng.integers(0, ranks[0], len(digits))) for key, digits in digits.owner.items()}
            digits = Digits(axis_sizes=ranks, sizes=graph.sizes, owner=owner)
        mode = make_mode(op, [self.pick(op)])
        operands = [laid(t, leaves[t.name], s, digits, rng) for t, s in zip(op.operands, mode.operands)]
        wanted = expected(graph, leaves)
        with defined(op.kind, self.broken(reference(op.kind))):
            return same(assemble(run_mode(mode, operands, digits), digits), wanted)


@dataclass(frozen=True, kw_only=True)
class Move:
    """A value of dims a, b taken from `before` to `after` while collective `name` is replaced by `broken`."""

    before: str
    after: str
    name: str = ""
    broken: Callable[..., Any] | None = None

    def holds(self, rng: np.random.Generator) -> bool:
        sizes = {"a": int(rng.integers(2, 7)), "b": int(rng.integers(2, 7))}
        ranks = int(rng.integers(2, 5))
        owner = {(label, 0): np.sort(rng.integers(0, ranks, size)) for label, size in sizes.items()}
        digits = Digits(axis_sizes=(ranks,), sizes=sizes, owner=owner)
        tensor = Tensor(name="x", dims=("a", "b"), dtype="fp32")
        array = rng.integers(-9, 10, (sizes["a"], sizes["b"])) / 4
        value = laid(tensor, array, (self.before,), digits, rng)
        with patch.object(collectives, self.name, self.broken) if self.broken else _nothing():
            value = apply_transfer(value, make_transfer("x", (self.before,), (self.after,)), digits)
        return same(assemble(value, digits), array)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def killed(mutant: Split | Move) -> bool:
    for trial in range(TRIALS):
        try:
            if not mutant.holds(np.random.default_rng(trial)):
                return True
        except BROKEN:
            return True
    return False


# -- ways to pick and to break ----------------------------------------------------------------------------------------


def row(dim: str, *kinds: CutKind, **changes: Any) -> Callable[[Op], Cut]:
    """The row of that dim (and kind) with some fields changed."""

    def pick(op: Op) -> Cut:
        found = next(c for c in signature(op) if c.dim == dim and (not kinds or c.kind in kinds))
        return replace(found, **changes)

    return pick


def new(kind: CutKind, operands: str, out: str) -> Callable[[Op], Cut]:
    """A row that no signature has."""
    return lambda op: Cut(kind=kind, dim=out, operands=tuple(operands.split()), out=out)


def fold(**changes: Any) -> Callable[[Reference], Reference]:
    def change(known: Reference) -> Reference:
        assert known.fold is not None
        return replace(known, fold=replace(known.fold, **changes))

    return change


def summary(**changes: Any) -> Callable[[Reference], Reference]:
    def change(known: Reference) -> Reference:
        assert known.summary is not None
        return replace(known, summary=replace(known.summary, **changes))

    return change


def renumbered(*labels: str) -> Callable[[Reference], Reference]:
    """Every rank counts these labels from 0, as if its share were the whole."""

    def local(where: Where) -> Where:
        ids = {k: np.arange(len(v)) if k in labels else v for k, v in where.ids.items()}
        return Where(ids=ids, sizes={k: len(ids[k]) if k in labels else v for k, v in where.sizes.items()})

    def change(known: Reference) -> Reference:
        of = known.summary
        return replace(
            known,
            run=lambda op, where, s, operands: known.run(op, local(where), s, operands),
            summary=of and replace(of, of=lambda op, where, operands: of.of(op, local(where), operands)),
        )

    return change


def own_only(known: Reference) -> Reference:
    """A rank takes its own summary for that of all."""
    of = known.summary
    assert of is not None
    return replace(known, run=lambda op, where, s, operands: known.run(op, where, of.of(op, where, operands), operands))


def _means(op: Op, where: Where, operands: Arrays) -> State:
    axis = op.operands[0].dims.index(op.attr("over"))
    count = max(1, operands[0].shape[axis])
    return np.square(operands[0]).sum(axis, keepdims=True) / count, np.ones(1)


def mean_of_means(known: Reference) -> Reference:
    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        return known.run(op, where, (s[0] / s[1] * where.sizes[op.attr("over")],), operands)

    return Reference(run=run, summary=Summary(of=_means, merge=lambda op, a, b: (a[0] + b[0], a[1] + b[1])))


def _by_arrival(op: Op, a: State, b: State) -> State:
    """Of equal values the one that arrived last is the best."""
    values, ids = (np.concatenate([y, x], -1) for x, y in zip(a, b))
    order = np.argsort(-values, -1, kind="stable")[..., : a[0].shape[-1]]
    return np.take_along_axis(values, order, -1), np.take_along_axis(ids, order, -1)


def _last_best(op: Op, a: State, b: State) -> State:
    later = b[0] >= a[0]
    return np.where(later, b[0], a[0]), np.where(later, b[1], a[1])


def _fewer(known: Reference) -> Reference:
    """Each rank offers half as many candidates as are chosen."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        values, ids = known.run(op, where, s, operands)
        half = -(-values.shape[-1] // 2)
        return topk.best(values[..., :half], ids[..., :half], values.shape[-1])

    return replace(known, run=run)


def _clamped(known: Reference) -> Reference:
    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        held = where.ids[op.operands[1].dims[0]]
        ids = np.clip(operands[0], held[0], held[-1]) if len(held) else operands[0]
        return known.run(op, where, s, [ids, operands[1]])

    return replace(known, run=run)


def _renormalised(known: Reference) -> Reference:
    """Gates that sum to 1 on every rank."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        (gates,) = known.run(op, where, s, operands)
        total = gates.sum(op.output.dims.index("expert"), keepdims=True)
        return (gates / np.where(total > 0, total, 1.0),)

    return replace(known, run=run)


def _no_rescale(op: Op, a: State, b: State) -> State:
    return np.maximum(a[0], b[0]), a[1] + b[1], a[2] + b[2]


def _averaged(known: Reference) -> Reference:
    inner = known.fold
    assert inner is not None

    def combine(op: Op, a: State, b: State) -> State:
        top, total, mixed = inner.combine(op, a, b)
        return top, total / 2, mixed

    return replace(known, fold=Fold(combine=combine, finish=inner.finish, dims=inner.dims))


def _transposed(pieces: list[Piece], concat: str, split: str, parts: list[Array]) -> list[Piece]:
    sent = [scatter(piece, split, parts) for piece in pieces]
    return [gather([sent[rank][source] for source in range(len(pieces))], concat) for rank in range(len(pieces))]


def _swapped(pieces: list[Piece], concat: str, split: str, parts: list[Array]) -> list[Piece]:
    return [gather(pieces, split)] * len(pieces)


def _reversed(pieces: list[Piece], combine: Any, label: str, parts: list[Array]) -> list[Piece]:
    sent = [scatter(piece, label, parts[::-1]) for piece in pieces]
    return [reduce([chunks[rank] for chunks in sent], combine) for rank in range(len(pieces))]


def _not_reduced(pieces: list[Piece], combine: Any, label: str, parts: list[Array]) -> list[Piece]:
    return [piece.take(label, ids) for piece, ids in zip(pieces, parts)]


def _other_label(pieces: list[Piece], combine: Any, label: str, parts: list[Array]) -> list[Piece]:
    other = "b" if label == "a" else "a"
    whole = reduce(pieces, combine)
    return [whole.take(other, ids[ids < len(whole.ids[other])]) for ids in parts]


def _largest(pieces: list[Piece], combine: Any) -> list[Piece]:
    largest = pieces[0]
    for piece in pieces[1:]:
        largest = merge(largest, piece, lambda a, b: (np.maximum(a[0], b[0]),))
    return [largest] * len(pieces)


def _on_root(pieces: list[Piece], combine: Any) -> list[Piece]:
    return [reduce(pieces, combine), *pieces[1:]]


def _neighbours(pieces: list[Piece], combine: Any) -> list[Piece]:
    return [merge(piece, pieces[(i + 1) % len(pieces)], combine) for i, piece in enumerate(pieces)]


def _as_it_came(pieces: list[Piece], label: str) -> list[Piece]:
    """Shards in the order of their arrival, each under the indices that belong there."""
    joined = gather(pieces, label)
    out = []
    for rank in range(len(pieces)):
        arrived = [pieces[(rank - step) % len(pieces)].arrays[0] for step in range(len(pieces))]
        axis = joined.dims[0].index(label)
        out.append(Piece(arrays=(np.concatenate(arrived, axis),), dims=joined.dims, ids=joined.ids))
    return out


S, F, P, L = CutKind.SUM, CutKind.FOLD, CutKind.PAR, CutKind.LINEAR

CUTS = {
    "matmul: sum over k left out": Split(case="matmul", pick=row("k", out=REPLICATED)),
    "matmul: a reduce where n is cut": Split(case="matmul", pick=row("n", kind=S, out=PARTIAL)),
    "matmul: n cut, called m": Split(case="matmul", pick=row("n", out="m")),
    "matmul: both operands partial": Split(case="matmul", pick=new(L, "P P", PARTIAL)),
    "experts: expert rows summed": Split(case="matmul_per_expert", pick=row("e", kind=S, out=PARTIAL)),
    "gated: hidden cut, activation before the reduce": Split(case="gated_matmul", pick=new(S, "k k", PARTIAL)),
    "gated: partial input": Split(case="gated_matmul", pick=new(L, "P R", PARTIAL)),
    "add: residual added on every rank": Split(case="add", pick=new(L, "P R", PARTIAL)),
    "activation: of summands": Split(case="activation", pick=new(L, "P", PARTIAL)),
    "norm: of summands": Split(case="rms_norm", pick=new(L, "P", PARTIAL)),
    "norm: statistics of the own shard": Split(case="rms_norm", pick=row("h", kind=P)),
    "norm: mean of means": Split(case="rms_norm", pick=row("h"), broken=mean_of_means),
    "attention: sum of softmaxes": Split(case="attention_window", pick=row("window", kind=S)),
    "attention: window whole on every rank": Split(case="attention_dense", pick=new(F, "R ctx R", PARTIAL)),
    "attention: context softmax not merged": Split(case="attention_window", pick=row("window", out=REPLICATED)),
    "attention: states not rescaled": Split(
        case="attention_dense", pick=row("window"), broken=fold(combine=_no_rescale)
    ),
    "attention: denominators averaged": Split(case="attention_dense", pick=row("window"), broken=_averaged),
    "attention: local ids of entries": Split(case="attention_chosen", pick=row("ctx"), broken=renumbered("ctx")),
    "attention: entries chosen by each rank": Split(case="attention_indexed", pick=row("ctx"), broken=own_only),
    "attention: local ids of index keys": Split(case="attention_indexed", pick=row("ctx"), broken=renumbered("ctx")),
    "selection: local ids": Split(case="index_select", pick=row("ctx"), broken=renumbered("ctx")),
    "selection: not merged": Split(case="index_select", pick=row("ctx", kind=P, out=REPLICATED)),
    "selection: ties by arrival": Split(case="index_select", pick=row("ctx"), broken=fold(combine=_by_arrival)),
    "selection: k/n candidates": Split(case="index_select", pick=row("ctx"), broken=_fewer),
    "selection: index heads cut and not summed": Split(case="index_select", pick=new(F, "head head R", PARTIAL)),
    "route: top-k of the own experts": Split(case="route", pick=row("expert", kind=P)),
    "route: local expert ids": Split(case="route", pick=row("expert"), broken=renumbered("expert")),
    "route: gates renormalised by each rank": Split(case="route", pick=row("expert"), broken=_renormalised),
    "route: ties by arrival": Split(case="route", pick=row("expert"), broken=summary(merge=_by_arrival)),
    "hash route: logits partial": Split(case="hash_route", pick=new(L, "P R R", PARTIAL)),
    "dispatch: gates partial": Split(case="dispatch", pick=new(L, "R P", PARTIAL)),
    "combine: experts not summed": Split(case="combine", pick=row("expert", out=REPLICATED)),
    "combine: rows and gates partial": Split(case="combine", pick=new(L, "P P", PARTIAL)),
    "combine: rows never sent back": Split(case="combine", pick=row("b", CutKind.ROUTE, kind=P)),
    "dispatch: rows never sent": Split(case="dispatch", pick=row("b", CutKind.ROUTE, kind=P)),
    "embed: vocabulary not summed": Split(case="embed", pick=row("vocab", out=REPLICATED)),
    "embed: ids clamped": Split(case="embed", pick=row("vocab"), broken=_clamped),
    "embed: local ids": Split(case="embed", pick=row("vocab"), broken=renumbered("vocab")),
    "last token: of every rank": Split(case="last_token", pick=row("seq"), broken=renumbered("seq")),
    "last token: not summed": Split(case="last_token", pick=row("seq", out=REPLICATED)),
    "argmax: local ids": Split(case="argmax", pick=row("vocab"), broken=renumbered("vocab")),
    "argmax: no order of ids": Split(case="argmax", pick=row("vocab"), broken=fold(combine=_last_best)),
    "argmax: of the own shard": Split(case="argmax", pick=row("vocab", kind=P, out=REPLICATED)),
    "pool: positions cut inside an entry": Split(case="pool", pick=row("seq"), loose=True),
    "pool: of summands": Split(case="pool", pick=new(L, "P", PARTIAL)),
    "pool: a consumed label cut": Split(case="pool", pick=new(S, "part", PARTIAL)),
    "window: last of every rank": Split(case="last_window", pick=row("seq"), broken=renumbered("seq")),
    "append: every rank writes": Split(case="kv_append", pick=row("window"), broken=renumbered("window")),
    "append: entry partial": Split(case="kv_append", pick=new(L, "P R", PARTIAL)),
    "hyper: copies cut and not summed": Split(case="hyper_read", pick=new(P, "copy R", REPLICATED)),
    "hyper: output added on every rank": Split(case="hyper_write", pick=new(L, "P R R", PARTIAL)),
    "norm·matmul: statistics of the own shard": Split(case="norm_matmul", pick=new(S, "h h h", PARTIAL)),
    "norm·gated: hidden cut": Split(case="norm_gated", pick=new(S, "h h", PARTIAL)),
    "matmul·add: residual in every summand": Split(case="matmul_add", pick=new(S, "R k k", PARTIAL)),
    "combine·add: shared expert in every summand": Split(case="combine_add", pick=new(S, "expert R R", PARTIAL)),
}

MOVES = {
    "all_reduce: left out": Move(before="P", after="R", name="all_reduce", broken=lambda pieces, combine: pieces),
    "all_reduce: an all-gather": Move(
        before="P", after="R", name="all_reduce", broken=lambda pieces, combine: all_gather(pieces, "a")
    ),
    "all_reduce: by max": Move(before="P", after="R", name="all_reduce", broken=_largest),
    "all_reduce: on the root only": Move(before="P", after="R", name="all_reduce", broken=_on_root),
    "all_reduce: neighbours only": Move(before="P", after="R", name="all_reduce", broken=_neighbours),
    "reduce_scatter: slices in reverse": Move(before="P", after="b", name="reduce_scatter", broken=_reversed),
    "reduce_scatter: a slice": Move(before="P", after="b", name="reduce_scatter", broken=_not_reduced),
    "reduce_scatter: along the other dim": Move(before="P", after="b", name="reduce_scatter", broken=_other_label),
    "all_gather: left out": Move(before="a", after="R", name="all_gather", broken=lambda pieces, label: pieces),
    "all_gather: along the other dim": Move(
        before="a", after="R", name="all_gather", broken=lambda pieces, label: [gather(pieces, "b")] * 9
    ),
    "all_gather: in the order of arrival": Move(before="a", after="R", name="all_gather", broken=_as_it_came),
    "all_gather: an all-reduce": Move(
        before="a", after="R", name="all_gather", broken=lambda pieces, label: _largest(pieces, None)
    ),
    "all_to_all: dims swapped": Move(before="a", after="b", name="all_to_all", broken=_swapped),
    "all_to_all: sender and receiver swapped": Move(before="a", after="b", name="all_to_all", broken=_transposed),
    "all_to_all: left out": Move(before="a", after="b", name="all_to_all", broken=lambda pieces, *_: pieces),
    "broadcast: the owner keeps it": Move(
        before="O",
        after="R",
        name="broadcast",
        broken=lambda piece, count: [piece] + [replace(piece, arrays=(piece.arrays[0] * 0,))] * 3,
    ),
}


@pytest.mark.parametrize("mutant", [*CUTS.values(), *MOVES.values()], ids=[*CUTS, *MOVES])
def test_mutant_is_killed(mutant: Split | Move) -> None:
    assert killed(mutant)


@pytest.mark.parametrize(("before", "after"), [("P", "R"), ("P", "b"), ("a", "R"), ("a", "b"), ("O", "R"), ("R", "a")])
def test_collective_is_not_killed(before: str, after: str) -> None:
    assert not killed(Move(before=before, after=after))


@pytest.mark.parametrize("name", sorted({split.case for split in CUTS.values()}))
def test_rule_is_not_killed(name: str) -> None:
    for index in range(len(signature(the_op(CASES[name]())))):
        assert not killed(Split(case=name, pick=lambda op, index=index: signature(op)[index]))  # type: ignore[misc]


def test_there_are_enough_mutants() -> None:
    assert len(CUTS) + len(MOVES) >= 60
