"""Closures against shortest paths of networkx."""

from __future__ import annotations

from itertools import pairwise

import networkx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rooflang.extractors.layouts import Closure

STEPS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9), st.integers(0, 9)), max_size=20)


@given(STEPS)
def test_seconds_are_those_of_shortest_paths(steps: list[tuple[int, int, int, int]]) -> None:
    found = Closure.of(6, 2, [(i, j, np.array([float(x), float(y)])) for i, j, x, y in steps if i != j])
    for at in range(2):
        graph = networkx.DiGraph()
        graph.add_nodes_from(range(6))
        for i, j, *costs in steps:
            if i != j:
                weight = min(costs[at], graph.get_edge_data(i, j, {}).get("weight", np.inf))
                graph.add_edge(i, j, weight=weight)
        lengths = dict(networkx.all_pairs_dijkstra_path_length(graph))
        for i in range(6):
            for j in range(6):
                assert found.seconds[i, j, at] == lengths[i].get(j, np.inf)
                if np.isfinite(found.seconds[i, j, at]):
                    stops = found.stops(i, j, at)
                    assert (stops[0], stops[-1]) == (i, j)
                    walked = sum(graph[a][b]["weight"] for a, b in pairwise(stops))
                    assert walked == found.seconds[i, j, at]


def test_a_tie_keeps_the_single_step() -> None:
    found = Closure.of(3, 1, [(0, 2, np.array([2.0])), (0, 1, np.array([1.0])), (1, 2, np.array([1.0]))])
    assert found.stops(0, 2, 0) == [0, 2]


def test_a_slice_takes_no_time_and_so_the_whole_holds_it() -> None:
    found = Closure.of(3, 1, [(0, 1, np.zeros(1)), (1, 0, np.ones(1)), (0, 2, np.ones(1))])
    assert found.holds.tolist() == [[True, True, False], [False, True, False], [False, False, True]]
