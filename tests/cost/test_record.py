"""C, N and what they add up to."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rooflang.cost import Cost

seconds = st.floats(0, 1e3, allow_nan=False)


def test_the_slowest_level_counts_and_alpha_comes_on_top() -> None:
    cost = Cost(compute_s=2.0, memory_s=3.0, levels_s={"nvlink": 4.0, "ib": 1.0}, alpha_s=0.5)
    assert (cost.local_s, cost.network_s, cost.exposed_s) == (3.0, 4.0, 1.5)


def test_network_that_fits_under_the_local_time_is_not_exposed() -> None:
    cost = Cost(compute_s=5.0, memory_s=3.0, levels_s={"nvlink": 4.0}, alpha_s=0.5)
    assert (cost.local_s, cost.exposed_s) == (5.0, 0.0)


def test_without_network_nothing_is_exposed() -> None:
    assert (Cost(compute_s=1.0).network_s, Cost(compute_s=1.0).exposed_s) == (0.0, 0.0)
    assert (Cost().local_s, Cost().exposed_s) == (0.0, 0.0)


def test_an_impossible_layout_has_infinite_c_and_no_n() -> None:
    cost = Cost(compute_s=np.array([1.0, np.inf]), memory_s=np.array([0.0, np.inf]), levels_s={"ib": 3.0})
    assert cost.local_s.tolist() == [1.0, np.inf]
    assert cost.exposed_s.tolist() == [2.0, 0.0]


@given(compute=seconds, memory=seconds, first=seconds, second=seconds, alpha=seconds)
def test_c_and_n_add_up_to_the_uncontended_duration(
    compute: float, memory: float, first: float, second: float, alpha: float
) -> None:
    cost = Cost(compute_s=compute, memory_s=memory, levels_s={"a": first, "b": second}, alpha_s=alpha)
    duration = max(compute, memory, max(first, second) + alpha)
    assert abs(cost.local_s + cost.exposed_s - duration) <= 1e-12 * max(1.0, duration)
