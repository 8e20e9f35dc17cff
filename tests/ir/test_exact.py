"""Exact numbers: arithmetic and order are those of the rationals, exp keeps sums and order, oracles are functions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflang.ir import GraphBuilder, make_mode, signature
from rooflang.ir.digits import Digits
from rooflang.ir.evaluate import evaluate, random_leaves
from rooflang.ir.exact import Exact, alike, einsum, exp, is_exact, logits, shortened, to_exact
from rooflang.ir.lifted import Laid, check_layout, place, run_mode

FRACTIONS = st.fractions(max_denominator=12)


def exact(value: Fraction) -> Exact:
    return Exact(value.numerator, value.denominator)


@settings(max_examples=300)
@given(FRACTIONS, FRACTIONS)
def test_arithmetic_and_order_are_those_of_fractions(a: Fraction, b: Fraction) -> None:
    x, y = exact(a), exact(b)
    assert (x + y, x - y, x * y, -x, abs(x)) == tuple(map(exact, (a + b, a - b, a * b, -a, abs(a))))
    if b:
        assert x / y == exact(a / b)
    assert [x < y, x <= y, x > y, x >= y, x == y] == [a < b, a <= b, a > b, a >= b, a == b]
    assert bool(x) == bool(a)
    assert math.floor(x) == math.floor(a)
    assert x.den > 0
    assert hash(x) == hash(exact(a))


@given(FRACTIONS, st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_floats_are_the_rationals_that_they_are(a: Fraction, b: float) -> None:
    assert exact(a) + b == exact(a + Fraction(b))
    assert b - exact(a) == exact(Fraction(b) - a)
    assert exact(a) * b == b * exact(a) == exact(a * Fraction(b))


@given(FRACTIONS)
def test_infinities_bound_every_number(a: Fraction) -> None:
    x = exact(a)
    assert -math.inf < x < math.inf
    assert x > -math.inf
    assert not x > math.inf
    assert -math.inf - x == -math.inf
    assert x / math.inf == 0


def test_what_is_not_exact_is_refused() -> None:
    with pytest.raises(ArithmeticError):
        Exact(1) + math.nan
    with pytest.raises(ArithmeticError):
        Exact(1) * math.inf
    with pytest.raises(ZeroDivisionError):
        Exact(1) / 0
    with pytest.raises(TypeError):
        np.zeros(1)[0] = Exact(1, 3)  # a float array takes none: it would round
    with pytest.raises(ValueError, match="logits"):
        Exact(1, 2).exp()


@settings(max_examples=300)
@given(st.lists(FRACTIONS, min_size=2, max_size=6))
def test_exp_of_logits_keeps_sums_and_order(values: list[Fraction]) -> None:
    x = logits(np.array([exact(v) for v in values], dtype=object))
    assert all(type(each) is Exact and each.den == 1 for each in x)
    for (a, i), (b, j) in zip(zip(values, x), list(zip(values, x))[1:]):
        assert (i <= j) if a <= b else (i >= j)
        assert (exp(np.array([i + j], object)) == exp(np.array([i], object)) * exp(np.array([j], object))).all()
        assert (i < j) == bool(exp(np.array([i], object))[0] < exp(np.array([j], object))[0])
    assert exp(np.array([-np.inf, Exact(0)], object)).tolist() == [0, 1]


@given(FRACTIONS)
def test_oracles_depend_on_the_number_alone(a: Fraction) -> None:
    x, again = exact(a), exact(a) * 3 / 3
    for name in ("sqrt", "tanh", "rint", "brief"):
        assert getattr(x, name)() == getattr(again, name)()
    assert x.sqrt() > 0
    assert abs(x.tanh()) < 1
    assert (x.brief() == 0) == (x == 0)


def test_oracles_tell_numbers_apart() -> None:
    values = [Exact(n, d) for n in range(-40, 41) for d in (1, 3, 7)]
    assert len({x.sqrt() for x in values}) > 60
    assert len({x.tanh() for x in values}) > 60
    assert {x.brief() for x in values} == set(range(-3, 4))


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 99))
def test_products_are_sums_of_products(m: int, k: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (to_exact(rng.integers(-6, 7, shape) / 4) for shape in ((m, k), (k, n)))
    found = einsum(a, [0, 1], b, [1, 2], [0, 2])
    assert found.shape == (m, n)
    for i, j in np.ndindex(m, n):
        assert found[i, j] == sum((a[i, x] * b[x, j] for x in range(k)), start=Exact(0))


def test_numbers_are_compared_exactly_or_up_to_rounding() -> None:
    third = to_exact(np.array([1.0])) / 3
    assert alike(third, np.array([Exact(1, 3)], object))
    assert not alike(third, np.array([Exact(333333333333, 10**12)], object))
    assert alike(np.array([1.0]), np.array([1.0 + 1e-12]))
    assert not alike(np.array([1.0]), np.array([[1.0]]))


def test_a_layout_is_compared_exactly() -> None:
    """A float would not see 2⁻⁶⁰ beside 1; an exact number does, through matmul, softmax and norm."""
    g = GraphBuilder("attention", batch=4, head=2, dim=4, window=4, hidden=4)
    q = g.op("q", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden head dim")], "batch head dim")
    y = g.op("y", "attention", [q, g.cache("kv", "batch window dim")], "batch head dim", parts=("window",))
    graph = g.build(y)
    leaves = random_leaves(graph, 1, exact=True)
    values = evaluate(graph, leaves)
    assert all(is_exact(array) for array in values.values())
    modes = {op.output.name: make_mode(op, [signature(op)[0]]) for op in graph.ops}
    check_layout(graph, Laid(axis_sizes=(2,), modes=modes), leaves)
    off = {**leaves, "kv": leaves["kv"].copy()}
    off["kv"].flat[0] += Exact(1, 1 << 60)
    assert not alike(evaluate(graph, off)["y"], values["y"])


def test_long_chains_stay_short() -> None:
    """Without it the numbers of a chain of twelve activations have thousands of digits."""
    g = GraphBuilder("chain", batch=2, hidden=4)
    x = g.input("in", "batch hidden")
    for n in range(12):
        x = g.op(f"x{n}", "activation", [x], "batch hidden", function="gelu")
    graph = g.build(x)
    leaves = random_leaves(graph, exact=True)
    made = {op.output.name for op in graph.ops}
    assert max(v.num.bit_length() for v in evaluate(graph, leaves, short=made)["x11"].flat) < 200


def test_shortening_keeps_zeros_and_leaves_ids_alone() -> None:
    ids = np.arange(5)
    assert shortened(ids) is ids
    assert [bool(x) for x in shortened(to_exact(np.array([0.0, 0.5, -7.0])))] == [False, True, True]


def test_constants_among_results_become_exact() -> None:
    """A rank without rows of a table contributes zeros, exact ones."""
    g = GraphBuilder("embed", batch=2, vocab=3, hidden=2)
    graph = g.build(
        g.op("y", "embed", [g.input("ids", "batch", "int32"), g.weight("t", "vocab hidden")], "batch hidden")
    )
    op, leaves = graph.ops[0], random_leaves(graph, exact=True)
    digits = Digits.nested((4,), graph.sizes, {"vocab": [0]})
    mode = make_mode(op, [next(cut for cut in signature(op) if cut.dim == "vocab")])
    operands = [place(t, leaves[t.name], spec, digits) for t, spec in zip(op.operands, mode.operands)]
    value = run_mode(mode, operands, digits)
    assert all(type(x) is Exact for piece in value.pieces.values() for x in piece.arrays[0].flat)
