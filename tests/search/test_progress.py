"""Progress: quiet at first, seldom afterwards; what is left of the time."""

from __future__ import annotations

import sys

import pytest

from rooflang.search import progress as module
from rooflang.search.progress import Progress


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    monkeypatch.setattr(module, "time", stopped)
    return stopped


def test_short_work_says_nothing(clock: Clock) -> None:
    said: list[str] = []
    progress = Progress(sink=said.append)
    for moment in (100.0, 101.0, 102.0):
        clock.now_s = moment
        progress.say("working")
    assert said == []
    clock.now_s = 102.5
    progress.say("working")
    assert said == ["  2.5 s  working"]


def test_messages_are_at_most_ten_a_second(clock: Clock) -> None:
    said: list[str] = []
    progress = Progress(sink=said.append)
    for step in range(100):
        clock.now_s = 110.0 + step / 50
        progress.say(str(step))
    assert 15 <= len(said) <= 20
    assert said[0].endswith(" 0")


def test_the_time_that_is_left(clock: Clock) -> None:
    progress = Progress(limit_s=5.0)
    clock.now_s = 103.0
    assert (progress.elapsed_s, progress.remaining_s, progress.expired) == (3.0, 2.0, False)
    clock.now_s = 105.0
    assert (progress.remaining_s, progress.expired) == (0.0, True)
    clock.now_s = 107.0
    assert (progress.elapsed_s, progress.remaining_s, progress.expired) == (7.0, 0.0, True)


def test_without_a_limit_there_is_no_end(clock: Clock) -> None:
    progress = Progress()
    clock.now_s = 1e9
    assert (progress.remaining_s, progress.expired) == (float("inf"), False)


@pytest.mark.parametrize("terminal", [True, False])
def test_on_a_terminal_the_line_is_replaced_and_cleared(
    clock: Clock, terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("COLUMNS", "40")  # a line that wrapped would stay
    progress = Progress()
    progress.topic = "8 GPUs: "
    clock.now_s = 103.0
    progress.say("x" * 300)
    progress.done()
    shown = capsys.readouterr().err
    if terminal:
        clear = "\r\x1b[2K"
        assert shown == clear + ("  3.0 s  8 GPUs: " + "x" * 300)[:39] + clear
    else:
        assert shown == ""


def test_done_leaves_a_sink_of_ones_own_alone(clock: Clock) -> None:
    said: list[str] = []
    Progress(sink=said.append).done()
    assert said == []


def test_one_within_another_has_the_narrower_limits(clock: Clock) -> None:
    said: list[str] = []
    outer = Progress(sink=said.append, limit_s=10.0, limit_bytes=5e9)
    clock.now_s = 104.0
    inner = outer.within(limit_s=60.0)
    assert (inner.elapsed_s, inner.remaining_s, inner.limit_bytes) == (0.0, 6.0, 5e9)
    assert outer.within(limit_s=1.0, limit_bytes=1e9).limit_bytes == 1e9
    clock.now_s = 110.0
    assert (inner.expired, inner.stopped_by) == (True, "time limit")
    assert said == []
    inner.say("working")
    assert len(said) == 1
    # Speaks nowhere where the outer one does not.
    silent = Progress()
    silent._sink = None
    assert silent.within()._sink is None


def test_what_cut_a_part_short_is_told_unless_all_was_ended(clock: Clock) -> None:
    progress = Progress(limit_s=5.0)
    assert progress.stopped_by == "complete"
    progress.note("node limit")
    assert progress.stopped_by == "node limit"
    clock.now_s = 106.0
    assert progress.stopped_by == "time limit"
    clock.now_s = 100.0
    assert progress.expired  # it stays so
