"""Every row of every signature, and every pair of rows over two axes, as an equation of the literal term algebra.

A mode says: on operands that lie so, the kernel makes a value that lies so. With x in spec s written as scatters and
broadcasts of x, and a partial value as any term that reduces to x, this is an equation between terms, and `derived`
says whether it follows from split_kernel along single labels, dup, dedup, the merges and the laws of the algebra.

What an operator is made of is declared here: a STAT or SCAN is an application of a summary that is a reduction, a FOLD
is a last step after a reduction of states, a fused operator is the composition of its two. Everything else follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, STATES, Cut, CutKind, Spec
from rooflang.ir.kinds.fused import FUSIONS, parts, wiring
from rooflang.ir.layout import Choice
from rooflang.ir.op import Op, op_kind, signature
from rooflang.ir.tensor import Tensor
from rooflang.soundness.algebra import Term, bits, defined, derived, laws, operator, schema, split

#: Monoids by number: sums, summaries that ranks exchange inside an operator, states that a FOLD combines.
SUM, SUMMARY, STATE = 0, 1, 2

#: Kernels by number: the operator, the application of a summary, the summary, the state, the last step; the inner
#: operator of a fused one.
_OP, _APPLY, _SUMMARY, _STATE, _LAST, _INNER = range(6)

_EXCHANGING = (CutKind.STAT, CutKind.SCAN)

#: Labels that a summary has beside the rows that are charged for it, the last ones of these operands: maps of the delta
#: rule are made value by value, states of linear attention key by key too.
_SUMMARY_HAS = {"delta_scan": (2,), "delta_final": (1,), "linear_scan": (2,), "linear_final": (0, 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One mode: what each axis does, and the equation that says it is right."""

    choices: tuple[Choice, ...]
    left: Term
    right: Term

    def __str__(self) -> str:
        return " × ".join(c if isinstance(c, str) else f"{c.kind} {c.dim}" for c in self.choices)


def cut_labels(cut: Cut) -> frozenset[str]:
    """Labels that a cut shrinks."""
    return frozenset((*cut.operands, cut.out)) - STATES


@dataclass(frozen=True, kw_only=True)
class Algebra:
    """The equations of one operator over some axes: a mode for every choice of the rows that are claimed.

    split_kernel goes by labels: for each set of labels that a row of the true signature cuts, what has one of them is
    scattered, what has none is broadcast, and the output is gathered along the one that it has, or reduced if it has
    none. What a row says beyond that (which operands are whole, how the output lies) has to follow.
    """

    op: Op
    axes: int
    rows: tuple[Cut, ...]
    facts: list[tuple[Term, Term]] = field(default_factory=list)

    @classmethod
    def of(cls, op: Op, axes: int, rows: Sequence[Cut] | None = None) -> Algebra:
        return cls(op=op, axes=axes, rows=tuple(signature(op) if rows is None else rows))

    # -- what the operator is made of ----------------------------------------------------------------------------------

    @cached_property
    def pure(self) -> bool:
        """May it be copied? Replicas that own a memory each are a row of the signature, which says just that."""
        return op_kind(self.op.kind).pure or any(cut.dim == "replica" for cut in self.true)

    @cached_property
    def true(self) -> tuple[Cut, ...]:
        """The rows of the signature, by whose labels the operator splits."""
        return signature(self.op)

    @cached_property
    def exchanges(self) -> bool:
        """Do its ranks exchange a summary before they go on?"""
        return any(cut.kind in _EXCHANGING or (cut.kind is CutKind.FOLD and cut.stat_bytes) for cut in self.true)

    @cached_property
    def folds(self) -> bool:
        return any(cut.kind is CutKind.FOLD for cut in self.true)

    @cached_property
    def summarised(self) -> bool:
        """Is the output made of the summary alone, as the last state of a sequence is?"""
        return any(cut.kind is CutKind.SCAN and cut.out == REPLICATED for cut in self.true)

    @cached_property
    def summary_labels(self) -> frozenset[str]:
        rows = {label for cut in self.true for label in cut.stat_rows}
        more = {self.op.operands[i].dims[-1] for i in _SUMMARY_HAS.get(self.op.kind, ())}
        return frozenset(rows | more)

    @cached_property
    def fused(self) -> tuple[Op, Op, int] | None:
        return parts(self.op) if self.op.kind in {fusion.name for fusion in FUSIONS} else None

    @cached_property
    def number(self) -> dict[str, int]:
        labels = {d for t in (*self.op.operands, self.op.output) for d in t.dims}
        if self.fused is not None:
            labels |= set(self.fused[1].output.dims)
        return {label: n for n, label in enumerate(sorted(labels))}

    # -- the program ---------------------------------------------------------------------------------------------------

    def commands(self) -> Iterator[str]:
        """Schema, laws, what the operator is made of, and how its kernels split along single labels."""
        count = len(self.op.operands)
        yield from schema(range(1, count + 3))
        yield from laws()
        for label in self.number.values():
            yield f"(Along {SUM} {label})"
            yield f"(Along {SUMMARY} {label})"
        for cut in self.true:
            if cut.out in self.number and cut.kind is CutKind.PAR:
                yield f"(Along {STATE} {self.number[cut.out]})"
        if self.fused is not None:
            outer, inner, _ = self.fused
            yield from self._kernel(_OP, outer.operands, outer.output, signature(outer))
            yield from self._kernel(_INNER, inner.operands, inner.output, signature(inner))
            return
        yield from operator(_OP, count, self.axes, pure=self.pure)
        if not self.exchanges and not self.folds:
            yield from self._kernel(_OP, self.op.operands, self.op.output, self.true)
            return
        yield from self._made_of(count)

    def _made_of(self, count: int) -> Iterator[str]:
        """The operator by its parts, and how each part splits."""
        parts_ = f"(Op{count + 1} {_APPLY} {{s}} {{xs}} (Op{count} {_SUMMARY} {{s}} {{xs}}))"
        if self.summarised:
            yield from defined(_OP, count, self.axes, f"(Op1 {_LAST} {{s}} (Op{count} {_SUMMARY} {{s}} {{xs}}))")
        elif self.folds:
            yield from defined(_OP, count, self.axes, f"(Op1 {_LAST} {{s}} (Op{count} {_STATE} {{s}} {{xs}}))")
            if self.exchanges:
                yield from defined(_STATE, count, self.axes, parts_)
        else:
            yield from defined(_OP, count, self.axes, parts_)
        for kernel, arity in ((_APPLY, count + 1), (_SUMMARY, count), (_STATE, count), (_LAST, 1)):
            yield from operator(kernel, arity, self.axes, pure=True)
        for cut, axis in product(self.true, range(self.axes)):
            if cut.kind in (CutKind.PAR, *_EXCHANGING, CutKind.FOLD):
                yield from self._parts_split(cut, axis)

    def _parts_split(self, cut: Cut, axis: int) -> Iterator[str]:
        lifts = self._lifts(self.op.operands, cut, axis)
        whole: tuple[object, ...] = ("Broadcast", axis)
        if cut.kind is CutKind.PAR:
            gather = self._join(self.op.output, cut, axis)
            shard = ("Scatter", gather[1], axis)
            kept = cut.out in self.summary_labels
            if self.exchanges and kept:
                yield from split(_SUMMARY, axis, self.axes, lifts, gather)
            elif self.exchanges:
                yield from self._whole_summary(lifts, axis)
            if self.folds or self.summarised:
                yield from split(_LAST, axis, self.axes, [shard], gather)
                yield from split(_STATE, axis, self.axes, lifts, gather)
            yield from split(_APPLY, axis, self.axes, [*lifts, shard if kept else whole], gather)
        elif cut.kind is CutKind.FOLD:
            yield from split(_STATE, axis, self.axes, lifts, ("Reduce", STATE, axis))
            yield from split(_APPLY, axis, self.axes, [*lifts, whole], ("Reduce", STATE, axis))
            yield from split(_SUMMARY, axis, self.axes, lifts, ("Reduce", SUMMARY, axis))
        else:
            yield from split(_SUMMARY, axis, self.axes, lifts, ("Reduce", SUMMARY, axis))
            if cut.out != REPLICATED:
                yield from split(_APPLY, axis, self.axes, [*lifts, whole], self._join(self.op.output, cut, axis))

    def _whole_summary(self, lifts: Sequence[tuple[object, ...]], axis: int) -> Iterator[str]:
        """A summary that does not have the label that is cut: every rank computes all of it."""
        count = len(lifts)
        xs = [f"x{n}" for n in range(count)]
        each = " ".join(f"({' '.join(map(str, how))} {x})" for how, x in zip(lifts, xs, strict=True))
        for done in range(1 << self.axes):
            if not done >> axis & 1:
                left = f"(Broadcast {axis} (Op{count} {_SUMMARY} {done} {' '.join(xs)}))"
                yield f"(rewrite {left} (Op{count} {_SUMMARY} {done | 1 << axis} {each}) :ruleset laws)"

    def _kernel(self, kernel: int, operands: Sequence[Tensor], output: Tensor, rows: Sequence[Cut]) -> Iterator[str]:
        """dup, dedup, and the splits of a kernel that needs no summary and makes no state."""
        if self.fused is not None:
            yield from operator(kernel, len(operands), self.axes, pure=True)
        for cut, axis in product(rows, range(self.axes)):
            if cut.kind in (CutKind.PAR, CutKind.SUM, CutKind.LINEAR) and cut.dim != "replica":
                lifts = self._lifts(operands, cut, axis)
                yield from split(kernel, axis, self.axes, lifts, self._join(output, cut, axis))

    def _lifts(self, operands: Sequence[Tensor], cut: Cut, axis: int) -> list[tuple[object, ...]]:
        """split_kernel by labels: what has a label that is cut is scattered, what has none is broadcast."""
        return [self._lift(tensor, entry, cut, axis) for tensor, entry in zip(operands, cut.operands, strict=True)]

    def _join(self, output: Tensor, cut: Cut, axis: int) -> tuple[object, ...]:
        labels = [d for d in output.dims if d in cut_labels(cut)]
        return ("Gather", self.number[labels[0]], axis) if labels else ("Reduce", SUM, axis)

    def _lift(self, tensor: Tensor, entry: str, cut: Cut, axis: int) -> tuple[object, ...]:
        if entry == PARTIAL:
            return ("Reduce", SUM, axis)
        labels = [d for d in tensor.dims if d in cut_labels(cut)]
        return ("Scatter", self.number[labels[0]], axis) if labels else ("Broadcast", axis)

    # -- the equations -------------------------------------------------------------------------------------------------

    def ways(self) -> list[Choice]:
        """What the fast encoding lets the operator do along one axis."""
        whole: list[Choice] = [REPLICATED, OWNER] if op_kind(self.op.kind).pure else []
        return [*whole, *self.rows]

    def goals(self) -> list[Goal]:
        """One for every mode."""
        return [self.goal(choices) for choices in product(self.ways(), repeat=self.axes)]

    def goal(self, choices: tuple[Choice, ...]) -> Goal:
        out = tuple(c.out if isinstance(c, Cut) else c for c in choices)
        run = self._run(choices)
        partial = [axis for axis, entry in enumerate(out) if entry == PARTIAL]
        folding = self.folds and bool(partial)
        for axis in reversed(partial):
            run = ("Reduce", STATE if folding else SUM, axis, run)
        if folding:
            run = ("Op1", _LAST, bits(set(range(self.axes)) - set(partial)), run)
        leaves: list[Term] = [("Leaf", n) for n in range(len(self.op.operands))]
        return Goal(choices=choices, left=self._view(self._whole(leaves), out), right=run)

    def _whole(self, xs: Sequence[Term]) -> Term:
        if self.fused is None:
            return (f"Op{len(xs)}", _OP, 0, *xs)
        return self._composed(xs, 0)

    def _composed(self, xs: Sequence[Term], over: int) -> Term:
        """The outer operator of a fused one on what the inner one makes, over a set of axes."""
        outside, inside = wiring(self.op)
        middle: Term = (f"Op{len(inside)}", _INNER, over, *(xs[place] for place in inside))
        return (f"Op{len(outside)}", _OP, over, *(middle if place < 0 else xs[place] for place in outside))

    def _view(self, x: Term, spec: Spec) -> Term:
        """x as the spec says, but for axes on which it is partial."""
        for axis, entry in enumerate(spec):
            if entry == OWNER:
                x = ("Own", axis, x)
            elif entry == REPLICATED:
                x = ("Broadcast", axis, x)
            elif entry != PARTIAL:
                x = ("Scatter", self.number[entry], axis, x)
        return x

    def _run(self, choices: tuple[Choice, ...]) -> Term:
        """What the ranks compute."""
        every = bits(range(self.axes))
        operands = [self._operand(i, tensor, choices) for i, tensor in enumerate(self.op.operands)]
        count = len(operands)
        if self.fused is not None:
            return self._composed(operands, every)
        exchanged: Term = (f"Op{count}", _SUMMARY, every, *operands)
        for axis, choice in enumerate(choices):
            if isinstance(choice, Cut) and choice.kind in (*_EXCHANGING, CutKind.FOLD):
                exchanged = ("AllReduce", SUMMARY, axis, exchanged)
        if self.summarised:
            return ("Op1", _LAST, every, exchanged)
        applied: Term = (f"Op{count + 1}", _APPLY, every, *operands, exchanged)
        if self.folds:
            state: Term = applied if self.exchanges else (f"Op{count}", _STATE, every, *operands)
            cut = any(isinstance(c, Cut) and c.kind is CutKind.FOLD for c in choices)
            return state if cut else ("Op1", _LAST, every, state)
        run: Term = applied if self.exchanges else (f"Op{count}", _OP, every, *operands)
        for axis, choice in enumerate(choices):
            if isinstance(choice, Cut) and choice.kind is CutKind.ROUTE and choice.out != choice.dim:
                run = ("AllToAll", self.number[choice.dim], self.number[choice.out], axis, run)
        return run

    def _operand(self, index: int, tensor: Tensor, choices: tuple[Choice, ...]) -> Term:
        """Operand `index` as the mode finds it, and what is done to it where it is read: a shard is taken of what is
        whole though it has the label that is cut; routed rows are sent to their tokens."""
        spec = tuple(c.operands[index] if isinstance(c, Cut) else c for c in choices)
        term: Term = self._view(("Leaf", index), spec)
        if PARTIAL in spec:
            summands: Term = ("Leaf", 1000 + 100 * index + len(self.facts))
            summed: Term = summands
            for axis, entry in enumerate(spec):
                summed = ("Reduce", SUM, axis, summed) if entry == PARTIAL else summed
            self.facts.append((term, summed))
            term = summands
        for axis, choice in enumerate(choices):
            if isinstance(choice, Cut) and spec[axis] != PARTIAL:
                term = self._taken(term, tensor, choice, axis, spec[axis])
        return term

    def _taken(self, term: Term, tensor: Tensor, cut: Cut, axis: int, entry: str) -> Term:
        if cut.kind is CutKind.ROUTE:
            routed = entry not in (cut.dim, REPLICATED)
            return ("AllToAll", self.number[entry], self.number[cut.dim], axis, term) if routed else term
        lift = self._lift(tensor, entry, cut, axis)
        sliced = entry == REPLICATED and lift[0] == "Scatter"
        return ("Slice", lift[1], axis, term) if sliced else term


def underived(op: Op, axes: int, rows: Sequence[Cut] | None = None) -> list[Goal]:
    """Modes of an operator over so many axes that do not follow from the primitives."""
    algebra = Algebra.of(op, axes, rows)
    goals = algebra.goals()
    found = derived(algebra.commands(), [(goal.left, goal.right) for goal in goals], algebra.facts)
    return [goal for goal, true in zip(goals, found, strict=True) if not true]


def declared(op: Op) -> list[Cut]:
    """Rows that split_kernel by one label does not give: more labels are cut at once, or another one comes out. They
    are part of what the kind says about itself, and rest on its reference alone."""
    rows = [cut for cut in signature(op) if cut.kind is not CutKind.ROUTE]
    return [cut for cut in rows if cut.dim == "replica" or len(cut_labels(cut)) > 1]
