"""Examples are counted, played again, and made smaller."""

from __future__ import annotations

import pytest

from rooflang.errors import LimitReached
from rooflang.soundness.search import falsify, shrunk, tried
from rooflang.soundness.source import RandomSource, Replay, Source, Unsuitable


def below_fifty(source: Source) -> str | None:
    numbers = [source.below(100) for _ in range(1 + source.below(6))]
    return f"{numbers}" if max(numbers) >= 50 else None


def test_a_counterexample_can_be_played_again() -> None:
    found = falsify(below_fifty, examples=100, seed=3)
    assert found is not None
    assert below_fifty(found.source()) == found.message
    again = falsify(below_fifty, examples=100, seed=3)
    assert again == found
    assert falsify(below_fifty, examples=100, seed=4) != found


def test_it_is_made_as_small_as_it_can_be() -> None:
    found = falsify(below_fifty, examples=100)
    assert found is not None
    small = shrunk(below_fifty, found)
    assert small.message == "[50]"
    assert small.answers == (0, 50)


def test_what_holds_is_not_refuted() -> None:
    assert falsify(lambda source: None, examples=50) is None


def test_every_second_example_is_wide() -> None:
    seen = []

    def claim(source: Source) -> str | None:
        seen.append(source.wide)
        if source.wide:
            assert source.extent() >= 2
            assert source.ranks() >= 2
        return None

    assert falsify(claim, examples=40) is None
    assert seen == [False, True] * 20


def test_an_exception_refutes() -> None:
    def claim(source: Source) -> str | None:
        raise ZeroDivisionError("nothing there")

    assert tried(claim, RandomSource(0)) == "ZeroDivisionError: nothing there"


def test_what_is_no_example_does_not_count() -> None:
    counted = []

    def claim(source: Source) -> str | None:
        source.suits(source.below(10) == 0)
        counted.append(source)
        return None

    assert falsify(claim, examples=20) is None
    assert len(counted) == 20

    def never(source: Source) -> str | None:
        raise Unsuitable

    with pytest.raises(LimitReached):
        falsify(never, examples=2)


def test_answers_beyond_those_given_are_zero_and_large_ones_are_cut() -> None:
    source = Replay([7, 3])
    assert [source.below(5), source.below(10), source.below(10)] == [4, 3, 0]
    assert source.integer(2, 9) == 2
    assert source.choice("abc") == "a"
    assert not source.chance(2)
