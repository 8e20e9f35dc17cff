"""Classes of ranks: what they are on clusters that one can work out, and that they give the exact timeline."""

from __future__ import annotations

from random import Random

import pytest

from rooflang.errors import GraphError
from rooflang.sim.engine import run
from rooflang.sim.memory import peak_bytes
from rooflang.sim.symmetry import Partition, rank_classes

from .graphs import class_program, explicit_program, random_cluster, random_steps


def nodes(ranks: int, width: int) -> list[list[int]]:
    return [list(range(first, first + width)) for first in range(0, ranks, width)]


def test_equal_ranks_are_one_class() -> None:
    nic = [rank // 4 for rank in range(128)]
    classes = rank_classes(["b300"] * 128, {"node": nodes(128, 8)}, {"nic": nic})
    assert (len(classes.ranks), len(classes.links), len(classes.kinds["node"])) == (1, 1, 1)
    assert classes.ranks == Partition(class_of=(0,) * 128, representative=(0,), count=(128,))
    assert classes.shares(None, "nic") == (((0, 0, 4),),)
    assert classes.shares("node", "nic") == (((0, 0, 4),),)
    assert classes.members("node") == ((0,),)


def test_one_slow_rank_splits_only_those_that_notice() -> None:
    """Of 128: the slow one, the one that shares its NIC, the other six of its node, and everybody else."""
    colours = [1.0] * 128
    colours[13] = 0.9
    classes = rank_classes(colours, {"node": nodes(128, 8)}, {"nic": [rank // 2 for rank in range(128)]})
    of_slow, of_mate = classes.ranks.class_of[13], classes.ranks.class_of[12]
    assert sorted(classes.ranks.count) == [1, 1, 6, 120]
    assert (classes.ranks.count[of_slow], classes.ranks.count[of_mate]) == (1, 1)
    assert classes.ranks.representative == (0, 8, 12, 13)
    assert sorted(classes.links.count) == [1, 3, 60]
    assert sorted(classes.kinds["node"].count) == [1, 15]


def test_one_slow_link_splits_its_users() -> None:
    classes = rank_classes([0] * 8, {}, {"nic": [rank // 2 for rank in range(8)]}, link_colours=[1, 1, 2, 1])
    assert classes.ranks.class_of == (0, 0, 0, 0, 1, 1, 0, 0)


def test_a_group_of_another_size_splits_its_members() -> None:
    classes = rank_classes([0] * 7, {"team": [[0, 1], [2, 3], [4, 5, 6]]}, {})
    assert classes.ranks.class_of == (0, 0, 0, 0, 1, 1, 1)


def test_position_counts_in_an_ordered_kind_only() -> None:
    pairs = {"hop": [[0, 2], [1, 3]]}
    assert rank_classes([0] * 4, pairs, {}, ordered=["hop"]).ranks.class_of == (0, 0, 1, 1)
    assert rank_classes([0] * 4, pairs, {}).ranks.class_of == (0, 0, 0, 0)
    assert rank_classes([0] * 4, pairs, {}, ordered=["hop"]).members("hop") == ((0, 1),)


def test_the_order_of_listing_does_not_count_otherwise() -> None:
    classes = rank_classes(["a", "b", "a", "b"], {"team": [[0, 1], [3, 2]]}, {})
    assert (classes.ranks.class_of, len(classes.kinds["team"])) == ((0, 1, 0, 1), 1)


def test_a_pipeline_keeps_its_stages_apart() -> None:
    hops = [[rank, rank + 4] for rank in range(8)]
    classes = rank_classes([rank // 4 for rank in range(12)], {"hop": hops}, {}, ordered=["hop"])
    assert classes.ranks.class_of == (0,) * 4 + (1,) * 4 + (2,) * 4
    assert classes.kinds["hop"].class_of == (0,) * 4 + (1,) * 4
    assert classes.members("hop") == ((0, 1), (1, 2))
    assert classes.members(None) == ((0,), (1,), (2,))


def test_a_rank_without_a_link_is_unlike_one_with() -> None:
    assert rank_classes([0] * 3, {}, {"nic": [0, 1, -1]}).ranks.class_of == (0, 0, 1)


@pytest.mark.parametrize(
    ("groups", "links", "link_colours", "message"),
    [
        ({"team": [[0, 4]]}, {}, [], "not a set of ranks"),
        ({"team": [[0, 0]]}, {}, [], "not a set of ranks"),
        ({}, {"nic": [0, 1]}, [], "2 links for 4 ranks"),
        ({}, {"nic": [0, 1, 2, 3]}, [1, 1], "no colour"),
        ({"ring": [[0, 1], [1, 2], [2, 3], [3, 0]]}, {}, [], "two groups that nothing tells apart"),
    ],
)
def test_what_is_refused(
    groups: dict[str, list[list[int]]], links: dict[str, list[int]], link_colours: list[int], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        rank_classes([0] * 4, groups, links, link_colours=link_colours)


def test_one_operator_per_class_gives_the_timeline_and_the_peaks_of_one_per_rank_bit_for_bit() -> None:
    smaller = perturbed = 0
    for seed in range(300):
        rng = Random(seed)
        cluster = random_cluster(rng)
        steps = random_steps(rng, cluster, rng.randint(1, 12))
        classes = cluster.classes()
        whole, op_of = explicit_program(cluster, steps)
        small, class_op_of = class_program(cluster, steps, classes)
        full, merged = run(whole), run(small)
        assert full.rounds == merged.rounds, f"seed {seed}"
        for (step, team), op in op_of.items():
            kind = steps[step].kind
            partition = classes.ranks if kind is None else classes.kinds[kind]
            twin = class_op_of[step, partition.class_of[team]]
            for name in ("start_s", "end_s", "first_round", "last_round"):
                assert getattr(full, name)[op] == getattr(merged, name)[twin], f"seed {seed}, {steps[step].name}"
        expected = peak_bytes(small, merged)[list(classes.ranks.class_of)]
        assert peak_bytes(whole, full).tolist() == expected.tolist(), f"seed {seed}"
        smaller += small.op_count < whole.op_count
        perturbed += 1 < len(classes.ranks) < len(cluster.slowness)
    assert smaller > 200 and perturbed > 60
