"""Cheapest trees against Dijkstra's algorithm over sets of layouts."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rooflang.extractors.hops import useful_hops
from rooflang.extractors.layouts import Closure, FloatArray
from rooflang.extractors.menus import menus
from rooflang.extractors.trees import serve, tree_s

SIZE = 5


def closure(costs: list[int], slices: list[tuple[int, int]]) -> Closure:
    """Layouts of which a lower number may hold a higher one for nothing, and dear steps between all of them."""
    steps = [(i, j, np.array([1.0 + costs[i * SIZE + j]])) for i in range(SIZE) for j in range(SIZE) if i != j]
    steps += [(i, j, np.zeros(1)) for i, j in slices if i < j]
    return Closure.of(SIZE, 1, steps)


CLOSURES = st.builds(
    closure,
    st.lists(st.integers(0, 9), min_size=SIZE**2, max_size=SIZE**2),
    st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=3),
)
TARGETS = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=4)


def cheapest(seconds: FloatArray, root: int, targets: list[int]) -> float:
    heap = [(0.0, frozenset([root]))]
    done = set()
    while heap:
        cost, have = heapq.heappop(heap)
        if have in done:
            continue
        done.add(have)
        if have.issuperset(targets):
            return cost
        for before in have:
            for after in set(range(len(seconds))) - have:
                heapq.heappush(heap, (cost + seconds[before, after], have | {after}))
    raise AssertionError


@given(CLOSURES, st.integers(0, SIZE - 1), TARGETS)
def test_a_tree_is_the_cheapest_and_its_trails_are_one_tree(found: Closure, root: int, targets: list[int]) -> None:
    seconds = found.seconds[:, :, 0]
    cost, trails = serve(seconds, root, targets)
    assert cost == cheapest(seconds, root, targets)
    both = np.concatenate([found.seconds, 3.0 * found.seconds], axis=2)
    assert tree_s(both, root, targets).tolist() == [cost, 3.0 * cost]
    hops = {hop for target in targets for hop in pairwise(trails[target])}
    assert sum(seconds[hop] for hop in hops) <= cost + 1e-9
    assert all((trails[target][0], trails[target][-1]) == (root, target) for target in targets)


def test_what_is_out_of_reach_costs_infinity() -> None:
    seconds = np.array([[0.0, np.inf], [np.inf, 0.0]])
    assert serve(seconds, 0, [1])[0] == np.inf


@given(CLOSURES, st.integers(0, SIZE - 1), TARGETS)
def test_a_cheapest_tree_is_left_among_the_useful_hops(found: Closure, root: int, targets: list[int]) -> None:
    seconds = found.seconds[:, :, 0]
    starts = np.arange(SIZE) == root
    ends = np.asarray(found.holds[:, targets].any(axis=1))
    useful = useful_hops(found.seconds, starts, ends, len(set(targets)))[:, :, 0]
    kept = np.where(useful | found.holds, seconds, np.inf)
    closed = Closure.of(SIZE, 1, [(i, j, kept[i, j, None]) for i in range(SIZE) for j in range(SIZE) if i != j])
    assert cheapest(closed.seconds[:, :, 0], root, targets) == cheapest(seconds, root, targets)


@given(CLOSURES, st.integers(0, SIZE - 1), TARGETS)
def test_menus_cost_what_trees_do_and_serve_what_they_hold(found: Closure, root: int, targets: list[int]) -> None:
    wanted = tuple(range(SIZE))
    offer = menus(found, (wanted,) * 4, 0)
    tree = cheapest(found.seconds[:, :, 0], root, targets)
    serving = offer.seconds[root][offer.serves[:, targets].all(axis=1)]
    exact = len(set(targets)) <= 3
    assert serving.min() <= tree + 1e-9
    if exact:
        assert serving.min() == tree


@given(CLOSURES, st.integers(0, SIZE - 1), st.data())
def test_readers_that_want_different_layouts_are_served_at_the_cost_of_a_tree(
    found: Closure, root: int, data: st.DataObject
) -> None:
    layouts = st.sets(st.integers(0, SIZE - 1), min_size=1).map(lambda each: tuple(sorted(each)))
    wants = tuple(data.draw(st.lists(layouts, min_size=1, max_size=3)))
    targets = [data.draw(st.sampled_from(each)) for each in wants]
    offer = menus(found, wants, 0)
    serving = offer.seconds[root][offer.serves[:, targets].all(axis=1)]
    assert serving.min() == cheapest(found.seconds[:, :, 0], root, targets)
