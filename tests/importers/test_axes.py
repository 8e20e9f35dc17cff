"""Classes of axes: merged where they can be, refused where a tensor would have a dim twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rooflang.importers.axes import Axes


def test_axes_of_one_size_become_one_dim_and_others_do_not() -> None:
    axes = Axes()
    a, b, c = axes.new(4, "a"), axes.new(4, "b"), axes.new(5, "c")
    assert axes.same(a, b) and axes.find(a) == axes.find(b)
    assert not axes.same(a, c)


def test_axes_of_one_tensor_stay_apart_through_others() -> None:
    axes = Axes()
    a, b, c, d = (axes.new(4, hint) for hint in "abcd")
    axes.keep_apart([a, b])
    axes.keep_apart([c, d])
    assert axes.same(a, c)
    assert not axes.same(b, c)
    assert axes.same(b, d)
    assert not axes.same(d, a)


def test_names_are_those_of_the_first_axis_and_differ() -> None:
    axes = Axes()
    a, b, c, d = axes.new(4, "Layer.Q"), axes.new(4, "k"), axes.new(3, "layer q"), axes.new(2, "!")
    axes.same(b, a)
    assert axes.names([a, b, c, d]) == {a: "layer_q", axes.find(c): "layer_q_2", axes.find(d): "dim"}


@given(
    groups=st.lists(st.lists(st.integers(0, 7), min_size=2, max_size=4, unique=True), max_size=5),
    merges=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20),
)
def test_no_order_of_merges_puts_a_dim_into_a_tensor_twice(
    groups: list[list[int]], merges: list[tuple[int, int]]
) -> None:
    axes = Axes()
    numbers = [axes.new(4, "x") for _ in range(8)]
    for group in groups:
        axes.keep_apart(numbers[i] for i in group)
    for one, other in merges:
        axes.same(numbers[one], numbers[other])
    for group in groups:
        assert len({axes.find(numbers[i]) for i in group}) == len(group)
