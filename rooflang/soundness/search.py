"""The search for a counterexample, and the search for a smaller one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.errors import LimitReached
from rooflang.soundness.source import RandomSource, Replay, Source, Unsuitable

#: One example: None if what is claimed holds there, else what went wrong.
Property = Callable[[Source], str | None]

#: Draws per example that may turn out to be none.
_DRAWS = 100

#: How often a counterexample is tried again to make it smaller.
SHRINKS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """`message` says what went wrong in example number `example` (from 1 on); `answers` play it again."""

    example: int
    message: str
    answers: tuple[int, ...]
    wide: bool

    def source(self) -> Replay:
        return Replay(self.answers, wide=self.wide)


def falsify(claim: Property, *, examples: int, seed: int = 0) -> Counterexample | None:
    """The first counterexample among so many random examples, every second of them with all extents at least 2.

    Raises `LimitReached` where examples are so rare that they cannot be found by chance.
    """
    example = 0
    for draw in range(examples * _DRAWS):
        if example == examples:
            return None
        source = RandomSource(seed * 1_000_003 + draw, wide=example % 2 == 1)
        try:
            message = tried(claim, source)
        except Unsuitable:
            continue
        example += 1
        if message is not None:
            return Counterexample(example=example, message=message, answers=tuple(source.answers), wide=source.wide)
    if example < examples:
        raise LimitReached(f"{example} examples among {examples * _DRAWS} draws", where=type(claim).__name__)
    return None


def tried(claim: Property, source: Source) -> str | None:
    """What is wrong with one example. A side that cannot be evaluated is wrong, whatever it raises; but `Unsuitable`
    passes through."""
    try:
        with np.errstate(all="ignore"):
            return claim(source)
    except Unsuitable:
        raise
    except Exception as error:  # it is reported, with its type
        return f"{type(error).__name__}: {error}"


def shrunk(claim: Property, found: Counterexample) -> Counterexample:
    """A counterexample with fewer and smaller answers, as far as `SHRINKS` tries lead."""
    best, tries = found, 0

    def better(answers: Sequence[int]) -> bool:
        nonlocal best, tries
        if tries >= SHRINKS or tuple(answers) == best.answers:
            return False
        tries += 1
        source = Replay(answers, wide=best.wide)
        try:
            message = tried(claim, source)
        except Unsuitable:
            return False
        if message is None:
            return False
        kept = tuple(answers[: source.asked])
        best = Counterexample(example=best.example, message=message, answers=kept, wide=best.wide)
        return True

    improved = True
    while improved and tries < SHRINKS:
        improved = any([_shorten(better, lambda: best.answers), _lower(better, lambda: best.answers)])
    return best


def _shorten(better: Callable[[Sequence[int]], bool], now: Callable[[], tuple[int, ...]]) -> bool:
    """Leave answers out, long runs of them first."""
    improved, size = False, max(1, len(now()) // 2)
    while size:
        at = 0
        while at < len(now()):
            if better((*now()[:at], *now()[at + size :])):
                improved = True
            else:
                at += size
        size //= 2
    return improved


def _lower(better: Callable[[Sequence[int]], bool], now: Callable[[], tuple[int, ...]]) -> bool:
    """Make single answers smaller: 0, or else by halves."""
    improved = False
    for at in range(len(now())):
        for part in (0, 2, 1):
            if at >= len(now()) or not now()[at]:
                break
            value = now()[at]
            lower = 0 if part == 0 else value // 2 if part == 2 else value - 1
            improved |= better((*now()[:at], lower, *now()[at + 1 :]))
    return improved
