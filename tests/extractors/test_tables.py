"""Elimination against trying every combination of states."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.tables import Tables, serving

SIZES = (3, 2, 4, 3, 2)
Sum = list[tuple[tuple[int, ...], FloatArray]]


@st.composite
def sums(draw: st.DrawFn) -> Sum:
    """Tables over pairs of variables; some of their entries are impossible."""
    out: Sum = []
    for pair in draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=7)):
        names = tuple(dict.fromkeys(pair))
        shape = tuple(SIZES[name] for name in names)
        entries = draw(st.lists(st.sampled_from([0, 1, 2, 5, 9, np.inf]), min_size=16, max_size=16))
        out.append((names, np.resize(np.array(entries, np.float64), shape)))
    return out


def built(cases: list[Sum]) -> Tables:
    """The tables of all cases, which have the same names, each case a point."""
    found = Tables(len(cases))
    for size in SIZES:
        found.variable(size)
    for entries in zip(*cases):
        tables = [table for _, table in entries]
        same = all(np.array_equal(table, tables[0]) for table in tables)
        found.add(entries[0][0], np.stack(tables[:1] if same else tables))
    return found


def value(tables: Sum, states: tuple[int, ...]) -> float:
    return float(sum(table[tuple(states[name] for name in names)] for names, table in tables))


@st.composite
def cases(draw: st.DrawFn) -> list[Sum]:
    """The same tables with other entries: some of them equal, some scaled, some turned around."""
    base = draw(sums())
    turned = draw(st.lists(st.booleans(), min_size=len(base), max_size=len(base)))
    other = [(names, table[::-1] * 3 if turn else table) for turn, (names, table) in zip(turned, base)]
    return [base, other, base] if draw(st.booleans()) else [base]


@given(cases(), st.sampled_from([(), (2,), (3, 1)]))
def test_the_minimum_is_that_of_all_states_at_every_point(cases: list[Sum], keep: tuple[int, ...]) -> None:
    found = built(cases)
    least = found.eliminate(keep, 10_000)
    assert found.exact
    for kept in product(*(range(SIZES[name]) for name in keep)):
        places = dict(zip(keep, kept))
        every = [s for s in product(*map(range, SIZES)) if all(s[name] == state for name, state in places.items())]
        states = found.states({name: np.full(len(cases), state) for name, state in places.items()})
        for point, tables in enumerate(cases):
            best = min(value(tables, states) for states in every)
            assert least[(min(point, len(least) - 1), *kept)] == best
            if np.isfinite(best):
                assert value(tables, tuple(int(states[name][point]) for name in range(len(SIZES)))) == best


@given(cases(), st.integers(1, 30))
def test_small_tables_give_a_lower_bound(cases: list[Sum], limit: int) -> None:
    found = built(cases)
    least = np.broadcast_to(found.eliminate((), limit), len(cases))
    states = found.states({})
    for point, tables in enumerate(cases):
        best = min(value(tables, states) for states in product(*map(range, SIZES)))
        assert least[point] <= best + 1e-9
        if found.exact:
            assert least[point] == best
        if np.isfinite(least[point]):
            assert value(tables, tuple(int(states[name][point]) for name in range(len(SIZES)))) >= best


def test_a_menu_serves_what_it_holds_and_whoever_wants_nothing() -> None:
    table = serving(np.array([[False, False], [True, False]]), [0, 1, -1])
    assert table.tolist() == [[np.inf, np.inf, 0.0], [0.0, np.inf, 0.0]]


def test_axes_follow_the_names_given() -> None:
    found = Tables()
    first, second = found.variable(2), found.variable(3)
    found.add((second, first), np.array([[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]]))
    assert found.eliminate((second, first), 10).tolist() == [[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]]


def test_large_tables_are_folded_in_pieces() -> None:
    rng = np.random.default_rng(0)
    found, sizes = Tables(3), (5, 40, 41, 42)
    for size in sizes:
        found.variable(size)
    tables = [((0, 1), (3, 5, 40)), ((0, 2), (1, 5, 41)), ((0, 3), (3, 5, 42)), ((0,), (3, 5))]
    entries = [(names, rng.random(shape)) for names, shape in tables]
    for names, table in entries:
        found.add(names, table)
    a, b, c, d = (table for _, table in entries)
    whole = a[:, :, :, None, None] + b[:, :, None, :, None] + c[:, :, None, None, :] + d[:, :, None, None, None]
    assert np.allclose(found.eliminate((1, 2, 3), 10**7), whole.min(axis=1))


@pytest.mark.parametrize(
    "scopes", [((0, 1, 2), (0, 3, 4)), ((0, 1, 3), (0, 2, 3), (0, 3, 4)), ((0, 1, 2, 3, 4), (0, 2))]
)
@pytest.mark.parametrize("points", [1, 3])
def test_sums_that_are_minimised_in_pieces_are_those_written_out(scopes: list[tuple[int, ...]], points: int) -> None:
    random = np.random.default_rng(7)
    counts = (9, 14, 15, 16, 17)
    found = Tables(points)
    for count in counts:
        found.variable(count)
    whole: FloatArray = np.zeros([1] * 6)
    for names in scopes:
        shape = [points, *(count if name in names else 1 for name, count in enumerate(counts))]
        entries = random.integers(0, 1000, shape).astype(np.float64)
        whole = whole + entries
        found.add(names, entries.reshape([size for axis, size in enumerate(shape) if axis == 0 or axis - 1 in names]))
    assert np.array_equal(found.eliminate((1, 2, 3, 4), 10**9), whole.min(axis=1))
