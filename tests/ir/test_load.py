"""How many tokens experts get: chances that add up, the busiest rank, the experts that a few tokens meet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.errors import ValueRangeError
from rooflang.ir.load import _chances, busiest, read_share


def zipf(exponent: float, base: Assumptions = PHYSICAL) -> Assumptions:
    return replace(base, expert_zipf=exponent)


def counted(*histogram: float, base: Assumptions = PHYSICAL) -> Assumptions:
    return replace(base, expert_histogram=histogram)


@given(st.floats(0.01, 3), st.integers(1, 40), st.data())
def test_a_token_goes_to_k_experts_and_to_none_of_them_twice(
    exponent: float, experts: int, data: st.DataObject
) -> None:
    chosen = data.draw(st.integers(1, experts))
    chances = _chances(exponent, (), experts, float(chosen))
    assert chances.sum() == pytest.approx(chosen)
    assert chances.min() > 0 and chances.max() <= 1


def test_the_popularity_of_experts_is_that_of_zipf() -> None:
    ordered = np.sort(_chances(1.0, (), 384, 6.0))[::-1]
    assert ordered * np.arange(1, 385) == pytest.approx(ordered[0] * np.ones(384))
    # With 16 of 896 the first ones would be chosen more than once by each token; what they cannot take others do.
    capped = np.sort(_chances(1.0, (), 896, 16.0))[::-1]
    assert capped[0] == capped[1] == 1.0 > capped[5]
    assert capped[10:] * np.arange(11, 897) == pytest.approx(capped[10] * 11 * np.ones(886))


@pytest.mark.parametrize("experts", [384, 256, 896])
def test_the_most_popular_experts_lie_on_as_many_ranks(experts: int) -> None:
    numbers = np.argsort(-_chances(0.1, (), experts, 1.0))
    for ranks in (2, 4, 8, 16, 32, 64):
        assert len({int(number) // (experts // ranks) for number in numbers[:ranks]}) == ranks


def test_the_busiest_rank_has_the_sum_of_its_experts() -> None:
    found = counted(6, 2, 1, 1, 1, 1, 2, 2)
    assert busiest(found, 8, 1.0, 1) == pytest.approx(1.0)
    assert busiest(found, 8, 1.0, 2) == pytest.approx(10 / 16 * 2)
    assert busiest(found, 8, 1.0, 4) == pytest.approx(8 / 16 * 4)
    assert busiest(found, 8, 1.0, 8) == pytest.approx(6 / 16 * 8)
    assert busiest(counted(*[3.0] * 8), 8, 2.0, 4) == pytest.approx(1.0)


@given(st.lists(st.floats(0, 100), min_size=12, max_size=12).filter(lambda x: sum(x) > 1e-3), st.integers(1, 12))
def test_fewer_ranks_with_more_experts_each_are_more_even(histogram: list[float], chosen: int) -> None:
    """What replication of experts does: two groups of ranks have all experts each, a rank twice as many."""
    loads = [busiest(counted(*histogram), 12, float(chosen), ranks) for ranks in (1, 2, 4, 12)]
    assert loads == sorted(loads)
    assert loads[0] == pytest.approx(1.0)


def test_what_tokens_meet_is_that_of_balance_where_there_is_balance() -> None:
    tokens = np.array([1.0, 7.0, 300.0])
    even = [1.0] * 12
    assert read_share(counted(*even), 12, 3.0, 4, tokens) == pytest.approx(1 - (1 - 3 / 12) ** tokens)
    assert read_share(counted(*even, base=PAPER), 12, 3.0, 4, tokens) == pytest.approx(np.minimum(1, tokens * 3 / 12))


def test_what_tokens_meet_by_hand() -> None:
    """Chances 0.6, 0.2, 0.1, 0.1: two tokens meet 0.84 and 0.36 of the first rank's, 0.19 of the second one's each."""
    found = counted(6, 2, 1, 1)
    assert read_share(found, 4, 1.0, 2, 2) == pytest.approx((0.84 + 0.36) / 2)
    assert read_share(found, 4, 1.0, 1, 2) == pytest.approx((0.84 + 0.36 + 2 * 0.19) / 4)
    assert read_share(replace(found, expert_coverage="distinct"), 4, 1.0, 2, 2) == pytest.approx((1 + 0.4) / 2)


@given(st.floats(0, 2), st.integers(1, 500))
def test_skew_leaves_fewer_experts_to_read(exponent: float, tokens: int) -> None:
    even = 1 - (1 - 6 / 48) ** tokens
    assert float(read_share(zipf(exponent or 1e-9), 48, 6.0, 1, tokens)) <= even * (1 + 1e-9)


def test_a_histogram_is_of_the_models_experts() -> None:
    with pytest.raises(ValueRangeError, match="choices of 3 experts, and the model has 8"):
        busiest(counted(1, 2, 3), 8, 1.0, 2)


def test_experts_that_were_never_seen_can_be_chosen_where_others_are_too_few() -> None:
    assert busiest(counted(1, 0, 0, 0), 4, 2.0, 4) == pytest.approx(2.0)
