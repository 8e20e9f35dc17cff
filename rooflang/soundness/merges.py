"""The laws of layout on trial: a collective gives every rank what the two primitives give it that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any
from unittest.mock import patch

from rooflang.ir import values
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, STATES, CutKind, Spec, show_spec
from rooflang.ir.digits import Digits
from rooflang.ir.exact import alike
from rooflang.ir.layout import Choice, Transfer, make_mode
from rooflang.ir.lifted import apply_transfer, assemble, run_mode
from rooflang.ir.op import Op, signature
from rooflang.ir.pieces import Piece, broadcast, gather, reduce, scatter
from rooflang.ir.reference.base import Array
from rooflang.ir.tensor import Tensor
from rooflang.ir.values import Value, finished, lines_of
from rooflang.rules import rule
from rooflang.rules.laws import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    KEEP_OWNER,
    LABEL,
    REDUCE_SCATTER,
    SLICE,
    Law,
    check_transfer,
)
from rooflang.rules.record import Ok, Verdict
from rooflang.soundness import draw
from rooflang.soundness.cases import case_names, example, the_op
from rooflang.soundness.source import Source

#: The law of each merge, by the rule's name; those of dedup_kernel and of free slices have no rule of their own.
LAW_OF = {
    "merge_gather_scatter": ALL_TO_ALL,
    "merge_gather_broadcast": ALL_GATHER,
    "merge_reduce_scatter": REDUCE_SCATTER,
    "merge_reduce_broadcast": ALL_REDUCE,
    "dedup_kernel": BROADCAST,
    "slice": SLICE,
    "keep_owner": KEEP_OWNER,
}

Check = Callable[..., Verdict]

_TENSOR = Tensor(name="x", dims=("a", "b", "c"), dtype="fp32")


@dataclass(frozen=True, kw_only=True)
class Merges:
    """A claim: a transfer that the law takes leads every rank to what scatter, gather, broadcast and reduce lead it to,
    and changes no value.

    `check(tensor, before, after, spread=…)` decides. The collectives in `broken` are replaced by other ones.
    """

    law: Law
    check: Check
    broken: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, name: str, *, check: Check | None = None, broken: Mapping[str, Callable[..., Any]] | None = None
    ) -> Merges:
        """The claim of a rule, or of a law that has none."""
        law = LAW_OF[name]
        own: Check = rule(name).check if name.startswith("merge") else partial(check_transfer, law)
        return cls(law=law, check=check or own, broken=broken or {})

    def __call__(self, source: Source) -> str | None:
        value, wanted, on, spread = self._start(source)
        axes = [axis for axis, entry in enumerate(value.spec) if _state(entry) == self.law.before]
        source.suits(bool(axes))
        axis = source.choice(axes)
        moving = axes if len({value.spec[a] for a in axes}) == 1 and source.below(2) else [axis]
        state = source.choice(value.tensor.dims) if self.law.after == LABEL else self.law.after
        after = tuple(state if a in moving else entry for a, entry in enumerate(value.spec))
        verdict = self.check(value.tensor, value.spec, after, spread=spread)
        source.suits(isinstance(verdict, Ok))
        assert isinstance(verdict, Ok)
        with swapped(self.broken):
            moved = apply_transfer(value, verdict.result, on)
            found = assemble(moved, on)
        if not alike(found, wanted):
            return _told(value, verdict.result, on, f"  was {wanted.tolist()}\n  is  {found.tolist()}")
        return None if len(moving) > 1 else self._by_rank(value, verdict.result, on, moved)

    def _start(self, source: Source) -> tuple[Value, Array, Digits, frozenset[str]]:
        """A value laid over the mesh, what it stands for, and labels along which its partial states may be cut."""
        if self.law.before == PARTIAL and source.below(3):
            return _folded(source)
        sizes = {label: source.extent() for label in _TENSOR.dims}
        ranks = (source.ranks(),) if source.below(2) == 0 else (source.ranks(3), source.integer(1, 3))
        on = _any_digits(sizes, ranks, source)
        array = source.numbers([sizes[d] for d in _TENSOR.dims])
        first = source.choice(_TENSOR.dims) if self.law.before == LABEL else self.law.before
        others = (REPLICATED, PARTIAL, *_TENSOR.dims) if self.law.before != OWNER else (REPLICATED, *_TENSOR.dims)
        spec: Spec = (first, *(source.choice(others) for _ in ranks[1:]))
        if len(spec) == 2 and source.below(2):
            spec = spec[::-1]
        return draw.laid(_TENSOR, array, spec, on, source), array, on, frozenset(_TENSOR.dims)

    def _by_rank(self, value: Value, transfer: Transfer, on: Digits, moved: Value) -> str | None:
        """Every rank's pieces, by way of one rank that gets all."""
        (axis,) = transfer.axes
        before, after = transfer.before[axis], transfer.after[axis]
        complete = value.fold if PARTIAL in value.spec and PARTIAL not in moved.spec else None
        for line, held in lines_of(value.pieces, axis, on):
            root = _at_root(held, before, value)
            if complete is not None:
                root = finished(root, complete, on)
            spread = _from_root(root, after, axis, on, len(line))
            for rank, piece in zip(line, spread):
                if not all(map(alike, piece.arrays, moved.pieces[rank].arrays)):
                    return _told(value, transfer, on, f"  rank {rank} has {moved.pieces[rank].arrays}")
        return None


def _state(entry: str) -> str:
    return entry if entry in STATES else LABEL


def _folded(source: Source) -> tuple[Value, Array, Digits, frozenset[str]]:
    """A partial state that some operator makes: log-sum-exp, candidates, the best so far."""
    folding = _folding()
    graph = draw.extents(example(source.choice(folding[source.choice(tuple(folding))])), source, most=4)
    op = the_op(graph)
    folds = [cut for cut in signature(op) if cut.kind is CutKind.FOLD]
    rows = [cut for cut in signature(op) if cut.kind is CutKind.PAR]
    ranks = (source.ranks(3),) if source.below(3) == 0 else (source.ranks(3), source.integer(1, 3))
    others: list[Choice] = [*folds, *rows, REPLICATED] if source.below(2) else [*folds]
    chosen: list[Choice] = [source.choice(folds), *(source.choice(others) for _ in ranks[1:])]
    arrays = draw.leaves(graph, source)
    on = draw.digits(graph, ranks, source)
    mode = make_mode(op, chosen)
    operands = [draw.laid(t, arrays[t.name], s, on, source) for t, s in zip(op.operands, mode.operands, strict=True)]
    return run_mode(mode, operands, on), draw.whole(graph, arrays), on, frozenset(cut.out for cut in rows)


@lru_cache(maxsize=1)
def _folding() -> dict[str, list[str]]:
    """Cases whose partial values are states, by the monoid that combines these."""
    found: dict[str, list[str]] = {}
    for name in case_names():
        for combine in {cut.combine for cut in signature(the_op(example(name))) if cut.kind is CutKind.FOLD}:
            found.setdefault(combine, []).append(name)
    return found


def _any_digits(sizes: Mapping[str, int], ranks: tuple[int, ...], source: Source) -> Digits:
    """Owners of a tensor's indices: even, uneven, empty, scattered."""
    from rooflang.ir.graph import GraphBuilder

    g = GraphBuilder("x", **sizes)
    dims = " ".join(sizes)
    return draw.digits(g.build(g.op("y", "activation", [g.input("x", dims)], dims)), ranks, source)


def _at_root(held: list[Piece], before: str, value: Value) -> Piece:
    """What the first of some ranks has after a gather or a reduce."""
    if before == PARTIAL:
        return reduce(held, values.combine_of(value.fold))
    return held[0] if before in STATES else gather(held, before)


def _from_root(root: Piece, after: str, axis: int, on: Digits, count: int) -> list[Piece]:
    """What some ranks have after a scatter or a broadcast."""
    if after == OWNER:
        return [root]
    if after == REPLICATED:
        return broadcast(root, count)
    return scatter(root, after, on.parts(after, axis, root.ids[after]))


@contextmanager
def swapped(broken: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Collectives replaced by others, by name."""
    if not broken:
        yield
        return
    with ExitStack() as stack:
        for name, other in broken.items():
            stack.enter_context(patch.object(values, name, other))
        yield


def _told(value: Value, transfer: Transfer, on: Digits, what: str) -> str:
    kind = f"states of {value.fold.kind}" if isinstance(value.fold, Op) else "a value"
    return (
        f"{transfer.collective} of {kind} over {' × '.join(map(str, on.axis_sizes))} ranks,"
        f" {show_spec(transfer.before)} → {show_spec(transfer.after)}, extents {dict(on.sizes)}\n{what}"
    )
