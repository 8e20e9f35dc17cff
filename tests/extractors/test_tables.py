"""Elimination against trying every combination of states."""

from __future__ import annotations

from itertools import product

import numpy as np
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


def built(tables: Sum) -> Tables:
    found = Tables()
    for size in SIZES:
        found.variable(size)
    for names, table in tables:
        found.add(names, table)
    return found


def value(tables: Sum, states: tuple[int, ...]) -> float:
    return float(sum(table[tuple(states[name] for name in names)] for names, table in tables))


@given(sums(), st.booleans(), st.sampled_from([(), (2,), (3, 1)]))
def test_the_minimum_is_that_of_all_states(tables: Sum, reduce: bool, keep: tuple[int, ...]) -> None:
    found = built(tables)
    if reduce:
        found.reduce(keep)
    least = found.eliminate(keep, 10_000)
    assert found.exact
    for kept in product(*(range(SIZES[name]) for name in keep)):
        places = dict(zip(keep, kept))
        every = [s for s in product(*map(range, SIZES)) if all(s[name] == state for name, state in places.items())]
        best = min(value(tables, states) for states in every)
        assert least[kept] == best
        if np.isfinite(best):
            states = found.states(places)
            assert value(tables, tuple(states[name] for name in range(len(SIZES)))) == best


@given(sums(), st.integers(1, 30))
def test_small_tables_give_a_lower_bound(tables: Sum, limit: int) -> None:
    found = built(tables)
    least = float(found.eliminate((), limit))
    best = min(value(tables, states) for states in product(*map(range, SIZES)))
    assert least <= best + 1e-9
    if found.exact:
        assert least == best
    states = found.states({})
    if np.isfinite(least):
        assert value(tables, tuple(states[name] for name in range(len(SIZES)))) >= best


def test_a_dead_end_is_dropped_and_named_no_more() -> None:
    tables: Sum = [((0,), np.array([5.0, 0.0, 9.0])), ((0, 1), np.array([[0.0, 1.0], [4.0, 5.0], [0.0, 0.0]]))]
    found = built(tables)
    found.reduce(())
    assert len(found._states[0]) == 1
    assert float(found.eliminate((), 100)) == 4.0
    assert found.states({})[0] == 1


def test_states_are_compared_with_their_rivals_only() -> None:
    rivals = np.array([[-1], [0], [-1], [2]])
    found = Tables()
    found.variable(4, rivals)
    found.add((0,), np.array([1.0, 2.0, 3.0, 3.0]))
    found.reduce(())
    assert found.eliminate((0,), 10).tolist() == [1.0, 3.0]
    assert [found.states({0: state})[0] for state in (0, 1)] == [0, 2]


def test_a_menu_serves_what_it_holds_and_whoever_wants_nothing() -> None:
    table = serving(np.array([[False, False], [True, False]]), [0, 1, -1])
    assert table.tolist() == [[np.inf, np.inf, 0.0], [0.0, np.inf, 0.0]]


def test_axes_follow_the_names_given() -> None:
    found = Tables()
    first, second = found.variable(2), found.variable(3)
    found.add((second, first), np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]))
    assert found.eliminate((second, first), 10).tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
