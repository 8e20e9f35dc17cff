"""Collectives against numbers worked out by hand, and against a count over all pairs of ranks."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.cost.network import all_to_all, collective, latency_s

from .toy import IB, IB_S, NVLINK, NVLINK_S, toy

CLUSTER = toy(8)
INSIDE, ACROSS, BOTH = {"nvlink": 4}, {"ib": 2}, {"nvlink": 4, "ib": 2}
T = 8e9


def near(expected: dict[str, float]) -> Any:
    return pytest.approx(expected, rel=1e-12)


def test_the_toy_cluster_is_as_the_numbers_below_assume() -> None:
    inner, outer = CLUSTER.levels
    assert (inner.name, inner.bytes_per_s, inner.latency_s) == ("nvlink", NVLINK, pytest.approx(NVLINK_S))
    assert (outer.name, outer.bytes_per_s, outer.latency_s) == ("ib", IB, pytest.approx(IB_S))


def test_latency_is_that_of_the_outermost_level_spanned() -> None:
    assert latency_s(CLUSTER, INSIDE) == pytest.approx(1e-6)
    assert latency_s(CLUSTER, ACROSS) == pytest.approx(3e-6)
    assert latency_s(CLUSTER, BOTH) == pytest.approx(3e-6)
    assert latency_s(CLUSTER, {}) == 0.0
    assert latency_s(CLUSTER, {"nvlink": 1}) == 0.0


def test_hierarchical_collectives() -> None:
    # Inside a domain of 4: three quarters of 8 GB at 100 GB/s. Across 2 domains: half of it at 10 GB/s; after the inner
    # level each rank brings a quarter only.
    assert collective(CLUSTER, INSIDE, "all_gather", T, PHYSICAL) == near({"nvlink": 0.06})
    assert collective(CLUSTER, ACROSS, "reduce_scatter", T, PHYSICAL) == near({"ib": 0.4})
    assert collective(CLUSTER, BOTH, "all_gather", T, PHYSICAL) == near({"nvlink": 0.06, "ib": 0.1})
    assert collective(CLUSTER, BOTH, "reduce_scatter", T, PHYSICAL) == near({"nvlink": 0.06, "ib": 0.1})
    assert collective(CLUSTER, BOTH, "all_reduce", T, PHYSICAL) == near({"nvlink": 0.12, "ib": 0.2})
    for whole in ("broadcast", "reduce"):
        assert collective(CLUSTER, BOTH, whole, T, PHYSICAL) == near({"nvlink": 0.08, "ib": 0.2})
    for one_port in ("gather", "scatter"):
        assert collective(CLUSTER, BOTH, one_port, T, PHYSICAL) == near({"nvlink": 0.06, "ib": 0.1})


def test_a_switch_that_adds() -> None:
    # Each port carries 5/4 of 8 GB instead of twice three quarters; the level outside is as before.
    adds = replace(PHYSICAL, switch_reduction=True)
    assert collective(CLUSTER, INSIDE, "all_reduce", T, adds) == near({"nvlink": 0.1})
    assert collective(CLUSTER, BOTH, "all_reduce", T, adds) == near({"nvlink": 0.1, "ib": 0.2})
    assert collective(CLUSTER, ACROSS, "all_reduce", T, adds) == near({"ib": 0.8})
    # Four domains: a ring carries twice three quarters, five quarters would be less.
    assert collective(toy(16), {"ib": 4}, "all_reduce", T, adds) == near({"ib": 1.2})
    assert collective(CLUSTER, INSIDE, "all_gather", T, adds) == near({"nvlink": 0.06})
    two = {"nvlink": 2}  # two ranks: a ring is as good
    assert collective(CLUSTER, two, "all_reduce", T, adds) == collective(CLUSTER, two, "all_reduce", T, PHYSICAL)


def test_bottleneck_collectives_see_one_bandwidth() -> None:
    # V = (W − 1)/W · T, doubled for an all-reduce, T for a broadcast. One domain: 100 GB/s. Two domains of four:
    # 4 × 10 GB/s. One rank a domain: 10 GB/s.
    assert collective(CLUSTER, INSIDE, "all_gather", T, PAPER) == near({"nvlink": 0.06})
    assert collective(CLUSTER, BOTH, "all_gather", T, PAPER) == near({"ib": 7e9 / 40e9})
    assert collective(CLUSTER, BOTH, "reduce_scatter", T, PAPER) == near({"ib": 7e9 / 40e9})
    assert collective(CLUSTER, BOTH, "all_reduce", T, PAPER) == near({"ib": 14e9 / 40e9})
    for whole in ("broadcast", "reduce"):
        assert collective(CLUSTER, BOTH, whole, T, PAPER) == near({"ib": 8e9 / 40e9})
    assert collective(CLUSTER, ACROSS, "all_gather", T, PAPER) == near({"ib": 0.4})


def test_the_bottleneck_is_capped_by_the_domain_and_by_the_inner_level() -> None:
    capped = toy(8, cap="25 GB/s")
    assert collective(capped, BOTH, "all_gather", T, PAPER) == near({"ib": 7e9 / 25e9})
    assert collective(capped, BOTH, "all_gather", T, PHYSICAL) == near({"nvlink": 0.06, "ib": 0.1})
    # Twelve ranks a domain would bring 120 GB/s out, but a rank takes in no more than 100 GB/s.
    assert collective(CLUSTER, {"nvlink": 12, "ib": 2}, "all_gather", T, PAPER) == near({"ib": T * 23 / 24 / 100e9})


@pytest.mark.parametrize("assumptions", [PHYSICAL, PAPER], ids=lambda a: a.name)
def test_a_rank_alone_sends_nothing(assumptions: Assumptions) -> None:
    for group in ({}, {"nvlink": 1}):
        assert collective(CLUSTER, group, "all_reduce", T, assumptions) == {}
        assert all_to_all(CLUSTER, group, T) == {}


def test_all_to_all() -> None:
    # Of 8 GB to eight ranks, itself included, three parts go to the others of the domain and four to the other domain.
    assert all_to_all(CLUSTER, BOTH, T) == near({"nvlink": 3e9 / 100e9, "ib": 4e9 / 10e9})
    assert all_to_all(CLUSTER, INSIDE, T) == near({"nvlink": 6e9 / 100e9})
    assert all_to_all(CLUSTER, ACROSS, T) == near({"ib": 4e9 / 10e9})


@given(inner=st.integers(1, 6), outer=st.integers(1, 6))
def test_all_to_all_counts_every_pair(inner: int, outer: int) -> None:
    ranks = list(product(range(outer), range(inner)))
    sent: Counter[str] = Counter()
    for domain, place in ranks:
        if (domain, place) != (0, 0):
            sent["nvlink" if domain == 0 else "ib"] += T / len(ranks)
    expected = {name: sent[name] / rate for name, rate in (("nvlink", NVLINK), ("ib", IB)) if sent[name]}
    assert all_to_all(CLUSTER, {"nvlink": inner, "ib": outer}, T) == near(expected)


@given(inner=st.integers(1, 6), outer=st.integers(1, 6))
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(inner: int, outer: int) -> None:
    group = {"nvlink": inner, "ib": outer}
    for assumptions in (PHYSICAL, PAPER):
        whole, scatter, gather = (
            collective(CLUSTER, group, name, T, assumptions) for name in ("all_reduce", "reduce_scatter", "all_gather")
        )
        assert whole == near({level: scatter[level] + gather[level] for level in scatter})


def test_bytes_may_be_an_array_over_batch_sizes() -> None:
    sizes = np.array([1e9, 2e9, 8e9])
    for assumptions in (PHYSICAL, PAPER):
        many = collective(CLUSTER, BOTH, "all_gather", sizes, assumptions)
        for index, size in enumerate(sizes):
            one = collective(CLUSTER, BOTH, "all_gather", float(size), assumptions)
            assert {level: seconds[index] for level, seconds in many.items()} == one
    exchanged = all_to_all(CLUSTER, BOTH, sizes)
    assert math.isclose(exchanged["ib"][2], 0.4)
