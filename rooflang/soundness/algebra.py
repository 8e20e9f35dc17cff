"""The literal term algebra: scatter, gather, broadcast, reduce, and operators, as an e-graph of its own.

A term is a value, whole or lifted over some axes. `(Scatter d a x)` gives every coordinate of axis a a shard of d,
`(Broadcast a x)` all of x; `(Gather d a y)` and `(Reduce m a y)` make one value of what the coordinates have, side by
side or by the monoid m. `(Own a x)` is x with the first coordinate alone. `(Op2 k s x y)` is kernel k on each
coordinate of the axes in the set s (a bit an axis): an operator that has been split over an axis is not split over it
again. `Slice` takes a shard of what a coordinate has whole.

The laws are the primitives of the RoofLang paper (arXiv 2609.12551, Table 2) as equations: the merges, dup and dedup,
and that primitives along different axes commute, which nested cuts (`rooflang.ir.digits`) make true. A reduction
commutes with a cut along a label only where the monoid works shard by shard along it: `(Along m d)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rooflang.eqsat.engine import Engine
from rooflang.errors import LimitReached

#: A term as nested tuples: a constructor and its arguments, integers or terms.
Term = tuple[object, ...] | str

RULESET = "laws"

#: Iterations and rows after which a derivation is given up.
_ITERATIONS, _ROWS = 40, 400_000

#: Constructors over an axis: name → how many integers come before the axis.
_OVER = {
    "Scatter": 1,
    "Gather": 1,
    "Slice": 1,
    "Reduce": 1,
    "Broadcast": 0,
    "Own": 0,
    "BroadcastFrom": 0,
    "KeepOwner": 0,
}

#: Of these, those that take shards along a label: a reduction has to work shard by shard to come before or after them.
_BY_LABEL = ("Scatter", "Gather", "Slice")


def show(term: Term | int) -> str:
    """A term as egglog text."""
    return f"({' '.join(map(show, term))})" if isinstance(term, tuple) else str(term)  # type: ignore[arg-type]


def bits(axes: Iterable[int]) -> int:
    """A set of axes as a number."""
    return sum(1 << axis for axis in axes)


def schema(arities: Iterable[int]) -> Iterator[str]:
    """Sort, constructors, and the relation that says along which labels a monoid works shard by shard."""
    ops = " ".join(f"(Op{n} i64 i64 {'E ' * n})" for n in sorted(set(arities)))
    yield (
        "(datatype E (Leaf i64) (Scatter i64 i64 E) (Gather i64 i64 E) (Broadcast i64 E) (Reduce i64 i64 E)"
        " (Own i64 E) (Slice i64 i64 E) (AllGather i64 i64 E) (AllReduce i64 i64 E) (ReduceScatter i64 i64 i64 E)"
        f" (AllToAll i64 i64 i64 E) (BroadcastFrom i64 E) (KeepOwner i64 E) {ops})"
    )
    yield "(relation Along (i64 i64))"
    yield f"(ruleset {RULESET})"


def laws() -> Iterator[str]:
    """The equations that hold for all values."""
    yield _law("(Scatter d a (Gather d a x))", "x")
    yield _law("(Gather d a (Scatter d a x))", "x")
    yield _law("(AllGather d a x)", "(Broadcast a (Gather d a x))")
    yield _law("(AllReduce m a x)", "(Broadcast a (Reduce m a x))")
    yield _law("(ReduceScatter d m a x)", "(Scatter d a (Reduce m a x))")
    yield _law("(AllToAll d e a x)", "(Scatter e a (Gather d a x))")
    yield _law("(BroadcastFrom a (Own a x))", "(Broadcast a x)")
    yield _law("(KeepOwner a (Broadcast a x))", "(Own a x)")
    yield _law("(Slice d a (Broadcast a x))", "(Scatter d a x)")
    for outer in _OVER:
        for inner in _OVER:
            yield from _commuting(outer, inner)


def _law(left: str, right: str, *when: str) -> str:
    guard = f" :when ({' '.join(when)})" if when else ""
    return f"(rewrite {left} {right}{guard} :ruleset {RULESET})"


def _commuting(outer: str, inner: str) -> Iterator[str]:
    """Primitives along two axes in the other order."""
    first = f"{outer} {'p ' * _OVER[outer]}a"
    second = f"{inner} {'q ' * _OVER[inner]}b"
    guards = ["(!= a b)"]
    if outer == "Reduce" and inner in _BY_LABEL:
        guards.append("(Along p q)")
    if inner == "Reduce" and outer in _BY_LABEL:
        guards.append("(Along q p)")
    if outer == inner == "Reduce":
        guards.append("(= p q)")
    yield _law(f"({first} ({second} x))", f"({second} ({first} x))", *guards)


def operator(kernel: int, arity: int, axes: int, *, pure: bool) -> Iterator[str]:
    """What holds for an operator whatever its signature: dup and dedup over each axis that it does not run on yet."""
    xs = [f"x{n}" for n in range(arity)]
    for done in range(1 << axes):
        for axis in range(axes):
            if pure and not done >> axis & 1:
                op, lifted = f"Op{arity} {kernel} {done}", f"Op{arity} {kernel} {done | 1 << axis}"
                for name in ("Broadcast", "Own"):
                    each = " ".join(f"({name} {axis} {x})" for x in xs)
                    yield _law(f"({name} {axis} ({op} {' '.join(xs)}))", f"({lifted} {each})")


def inside_out(kernel: int, axis: int, axes: int, lift: tuple[object, ...]) -> Iterator[str]:
    """An operator of one operand that works shard by shard, on a lifted value: the lift may come after it. This follows
    from `operator` and `split`, once the term on the right is there."""
    how = " ".join(map(str, lift))
    for done in range(1 << axes):
        if not done >> axis & 1:
            yield _law(f"(Op1 {kernel} {done | 1 << axis} ({how} x))", f"({how} (Op1 {kernel} {done} x))")


def pointwise(kernel: int, axes: int, step: tuple[object, ...]) -> Iterator[str]:
    """An operator of one operand that works shard by shard, before or after a step of what it runs on already."""
    how = " ".join(map(str, step))
    for done in range(1 << axes):
        yield _law(f"(Op1 {kernel} {done} ({how} x))", f"({how} (Op1 {kernel} {done} x))")


def split(
    kernel: int, axis: int, axes: int, operands: Sequence[tuple[object, ...]], join: tuple[object, ...]
) -> Iterator[str]:
    """split_kernel along one axis: the operator is the `join` of itself on the lifted operands.

    `operands[i]` is the constructor that lifts operand i, `("Scatter", d, a)` or `("Broadcast", a)`; `join` likewise,
    `("Gather", d, a)` or `("Reduce", m, a)`. An operand `("Reduce", m, a)` is a sum already: its summands are taken.
    """
    patterns, lifted = [], []
    for number, how in enumerate(operands):
        x = f"x{number}"
        summed = how[0] == "Reduce"
        patterns.append(f"({' '.join(map(str, how))} {x})" if summed else x)
        lifted.append(x if summed else f"({' '.join(map(str, how))} {x})")
    for done in range(1 << axes):
        if not done >> axis & 1:
            after = done | 1 << axis
            left = f"(Op{len(operands)} {kernel} {done} {' '.join(patterns)})"
            right = f"(Op{len(operands)} {kernel} {after} {' '.join(lifted)})"
            yield _law(left, f"({' '.join(map(str, join))} {right})")


def defined(kernel: int, arity: int, axes: int, right: str) -> Iterator[str]:
    """The operator is this term, on any set of axes; `right` may mention `{s}`, the set, and `{xs}`, the operands."""
    xs = " ".join(f"x{n}" for n in range(arity))
    for done in range(1 << axes):
        yield _law(f"(Op{arity} {kernel} {done} {xs})", right.format(s=done, xs=xs))


def derived(
    commands: Iterable[str], goals: Sequence[tuple[Term, Term]], facts: Iterable[tuple[Term, Term]] = ()
) -> list[bool]:
    """Which of some equations follow from the commands (schema, laws, rules), facts being equal from the start.

    Raises `LimitReached` where saturation does not end.
    """
    engine = Engine()
    engine.load(dict.fromkeys(commands))  # two rows may ask for one rule, which egglog takes once
    engine.load(f"(union {show(left)} {show(right)})" for left, right in facts)
    for number, (left, right) in enumerate(goals):
        engine.load((f"(let $l{number} {show(left)})", f"(let $r{number} {show(right)})"))
    for _ in range(_ITERATIONS):
        if not engine.step(RULESET):
            break
        if sum(engine.sizes().values()) > _ROWS:
            raise LimitReached("the term algebra grows without end", where=f"more than {_ROWS} rows")
    rows = engine.freeze().rows
    return [rows[f"$l{n}"][0].output == rows[f"$r{n}"][0].output for n in range(len(goals))]
