"""Meshes: axes factor over fabric levels as the ranks really lie, groups partition the ranks."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations, permutations, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import PlacementError, UnknownNameError, ValueRangeError
from rooflang.hw import Axis, Cluster, Factor, Mesh, mesh_factorisations

CLUSTERS = {
    key: Cluster.of(*key)
    for key in [("b300", 8), ("b300", 6), ("b300", 32), ("gb300", 64), ("gb300", 144), ("gb300", 128), ("gh200", 12)]
}


def factors(mesh: Mesh) -> dict[str, list[tuple[str, int]]]:
    return {axis.name: [(factor.level, factor.size) for factor in axis.factors] for axis in mesh.axes}


@st.composite
def meshes(draw: st.DrawFn) -> tuple[Cluster, Mesh]:
    cluster = CLUSTERS[draw(st.sampled_from(sorted(CLUSTERS)))]
    stages = draw(st.sampled_from([1, 2, 4]))
    try:
        choices = mesh_factorisations(cluster, stages, 3)
    except PlacementError:
        stages, choices = 1, mesh_factorisations(cluster, 1, 3)
    mesh = Mesh.lay(cluster, draw(st.sampled_from(choices)), stages=stages)
    return cluster, mesh.stage(draw(st.integers(0, stages - 1)))


@pytest.mark.parametrize(
    ("key", "sizes", "stages", "expected"),
    [
        (("b300", 8), (8,), 1, {"x": [("nvlink", 8)]}),
        (("b300", 8), (2, 4), 1, {"x": [("nvlink", 2)], "y": [("nvlink", 4)]}),
        (("b300", 32), (32,), 1, {"x": [("ib", 4), ("nvlink", 8)]}),
        (("b300", 32), (4, 8), 1, {"x": [("ib", 4)], "y": [("nvlink", 8)]}),
        (("b300", 32), (8, 4), 1, {"x": [("ib", 4), ("nvlink", 2)], "y": [("nvlink", 4)]}),
        (("b300", 32), (2, 16), 1, {"x": [("ib", 2)], "y": [("ib", 2), ("nvlink", 8)]}),
        (("b300", 32), (2, 2, 8), 1, {"x": [("ib", 2)], "y": [("ib", 2)], "z": [("nvlink", 8)]}),
        (("b300", 32), (4,), 8, {"x": [("nvlink", 4)]}),
        (("b300", 32), (2, 8), 2, {"x": [("ib", 2)], "y": [("nvlink", 8)]}),
        (("b300", 8), (1, 8, 1), 1, {"x": [], "y": [("nvlink", 8)], "z": []}),
        (("gb300", 64), (8, 8), 1, {"x": [("nvlink", 8)], "y": [("nvlink", 8)]}),
        (("gb300", 128), (128,), 1, {"x": [("ib", 2), ("nvlink", 64)]}),
    ],
)
def test_factors(
    key: tuple[str, int], sizes: tuple[int, ...], stages: int, expected: dict[str, list[tuple[str, int]]]
) -> None:
    assert factors(Mesh.lay(CLUSTERS[key], sizes, stages=stages)) == expected


def test_one_gpu_per_stage_has_no_axes() -> None:
    mesh = Mesh.lay(CLUSTERS["b300", 8], (), stages=8)
    assert (mesh.axes, mesh.gpus) == ((), 1)
    assert mesh.stage(3).groups(()) == [(3,)]
    assert mesh.stage(3).coordinates(3) == {}
    assert mesh.level_sizes(()) == {}


@pytest.mark.parametrize(
    ("key", "sizes", "stages", "what"),
    [
        (("b300", 8), (3, 3), 1, "do not fill 8 GPUs"),
        (("b300", 8), (16,), 1, "do not fill 8 GPUs"),
        (("b300", 8), (-2, -4), 1, "do not fill"),
        (("b300", 8), (), 1, "do not fill"),
        (("b300", 8), (2,), 3, "3 pipeline stages do not divide 8 GPUs"),
        (("b300", 8), (2,), 0, "0 pipeline stages"),
        (("gb300", 144), (48,), 3, "a stage of 48 GPUs does not lie evenly on domains of 72"),
        (("gb300", 144), (9, 16), 1, "does not factor over the 72 that are left on nvlink"),
        (("b300", 8), (1, 1, 1, 1, 1, 1, 8), 1, "7 axes"),
    ],
)
def test_refused(key: tuple[str, int], sizes: tuple[int, ...], stages: int, what: str) -> None:
    with pytest.raises(PlacementError, match=what) as caught:
        Mesh.lay(CLUSTERS[key], sizes, stages=stages)
    assert caught.value.expected
    assert caught.value.where.startswith("mesh")


def test_hand_made_meshes_are_checked() -> None:
    with pytest.raises(PlacementError, match="do not multiply to 8"):
        Axis(name="x", size=8, factors=(Factor(level="nvlink", size=4),))
    axis = Axis(name="x", size=2, factors=(Factor(level="nvlink", size=2),))
    with pytest.raises(PlacementError, match="2 is not 4 GPUs"):
        Mesh(axes=(axis,), gpus=4)
    with pytest.raises(PlacementError, match="two axes of one name"):
        Mesh(axes=(axis, axis), gpus=4)


@given(meshes())
def test_ranks_are_row_major(drawn: tuple[Cluster, Mesh]) -> None:
    _, mesh = drawn
    grid = product(*(range(axis.size) for axis in mesh.axes))
    for rank, digits in enumerate(grid, start=mesh.first):
        assert list(mesh.coordinates(rank).items()) == [(axis.name, digit) for axis, digit in zip(mesh.axes, digits)]


@given(meshes())
def test_groups_partition_the_ranks(drawn: tuple[Cluster, Mesh]) -> None:
    _, mesh = drawn
    names = [axis.name for axis in mesh.axes]
    for axes in chain.from_iterable(permutations(names, count) for count in range(len(names) + 1)):
        groups = mesh.groups(axes)
        assert sorted(chain.from_iterable(groups)) == list(range(mesh.first, mesh.first + mesh.gpus))
        assert {len(group) for group in groups} == {prod(mesh.size(axis) for axis in axes)}
        assert groups == sorted(groups)
        others = [name for name in names if name not in axes]
        for group in groups:
            seen = [mesh.coordinates(rank) for rank in group]
            assert all(len({coordinates[name] for coordinates in seen}) == 1 for name in others)
            digits = [tuple(coordinates[name] for name in axes) for coordinates in seen]
            assert digits == list(product(*(range(mesh.size(axis)) for axis in axes)))


@given(meshes())
def test_level_sizes_are_how_the_ranks_lie(drawn: tuple[Cluster, Mesh]) -> None:
    """A group has as many domains as its outer factor, and in each as many members as its inner factor."""
    cluster, mesh = drawn
    names = [axis.name for axis in mesh.axes]
    for axes in chain.from_iterable(combinations(names, count) for count in range(len(names) + 1)):
        sizes = mesh.level_sizes(axes)
        assert prod(sizes.values()) == prod(mesh.size(axis) for axis in axes)
        assert all(size > 1 for size in sizes.values())
        assert list(sizes) == [level.name for level in cluster.levels if level.name in sizes]
        for group in mesh.groups(axes):
            domains = Counter(rank // cluster.domain for rank in group)
            assert len(domains) == sizes.get("ib", 1)
            assert set(domains.values()) == {sizes.get("nvlink", 1)}


@given(meshes())
def test_factors_multiply_to_the_axis(drawn: tuple[Cluster, Mesh]) -> None:
    _, mesh = drawn
    assert prod(axis.size for axis in mesh.axes) == mesh.gpus
    assert [axis.name for axis in mesh.axes] == list("xyz")[: len(mesh.axes)]
    for axis in mesh.axes:
        assert prod(factor.size for factor in axis.factors) == axis.size
        assert mesh.axis(axis.name) is axis


def test_bad_names_and_ranks() -> None:
    mesh = Mesh.lay(CLUSTERS["b300", 32], (2, 8), stages=2).stage(1)
    with pytest.raises(UnknownNameError, match="mesh axis 'q'"):
        mesh.axis("q")
    with pytest.raises(UnknownNameError):
        mesh.groups(("q",))
    with pytest.raises(PlacementError, match="named twice"):
        mesh.groups(("x", "x"))
    for rank in (15, 32):
        with pytest.raises(ValueRangeError, match=f"rank {rank}") as caught:
            mesh.coordinates(rank)
        assert caught.value.expected == "16 to 31"


@pytest.mark.parametrize(
    ("key", "stages", "max_axes", "expected"),
    [
        (("b300", 8), 1, 1, [(8,)]),
        (("b300", 8), 1, 2, [(8,), (2, 4)]),
        (("b300", 8), 1, 3, [(8,), (2, 4), (2, 2, 2)]),
        (("b300", 8), 8, 2, [()]),
        (("b300", 32), 2, 2, [(16,), (2, 8), (4, 4), (8, 2)]),
        (("b300", 32), 1, 2, [(32,), (2, 16), (4, 8), (8, 4), (16, 2)]),
        (("gb300", 64), 1, 2, [(64,), (2, 32), (4, 16), (8, 8)]),
        (("gh200", 12), 1, 2, [(12,), (2, 6), (3, 4)]),
        (("gb300", 144), 1, 2, [(144,), (2, 72), (4, 36), (6, 24), (8, 18), (12, 12), (16, 9), (18, 8), (24, 6),
                                (36, 4), (48, 3), (72, 2)]),
    ],
)  # fmt: skip
def test_factorisations(key: tuple[str, int], stages: int, max_axes: int, expected: list[tuple[int, ...]]) -> None:
    assert mesh_factorisations(CLUSTERS[key], stages, max_axes) == expected


@given(st.sampled_from(sorted(CLUSTERS)), st.sampled_from([1, 2]), st.integers(1, 3))
def test_factorisations_are_complete_up_to_symmetry(key: tuple[str, int], stages: int, max_axes: int) -> None:
    cluster = CLUSTERS[key]
    gpus = cluster.gpus // stages

    def signature(sizes: tuple[int, ...]) -> tuple[object, ...]:
        return tuple(sorted(map(tuple, factors(Mesh.lay(cluster, sizes, stages=stages)).values())))

    kept = [signature(sizes) for sizes in mesh_factorisations(cluster, stages, max_axes)]
    assert len(kept) == len(set(kept))
    divisors = [size for size in range(2, gpus + 1) if gpus % size == 0]
    laid = set()
    for count in range(1, max_axes + 1):
        for sizes in product(divisors, repeat=count):
            try:
                laid.add(signature(sizes))
            except PlacementError:
                continue
    assert set(kept) == laid


def test_factorisations_refused() -> None:
    with pytest.raises(PlacementError, match="do not divide"):
        mesh_factorisations(CLUSTERS["b300", 8], 3, 2)
    with pytest.raises(PlacementError, match="does not lie evenly"):
        mesh_factorisations(CLUSTERS["gb300", 144], 3, 2)
    for count in (0, 7):
        with pytest.raises(ValueRangeError):
            mesh_factorisations(CLUSTERS["b300", 8], 1, count)
