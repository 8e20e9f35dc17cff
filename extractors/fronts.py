"""Plans of the kinds of block that no other one equals or beats in both C and N, and the best combination of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from rooflang.extractors.task import Choice, Load, Objective, Seconds, combined
from rooflang.ir.cut import Spec

#: Combinations of plans that are kept while one kind after the other is added.
_COMBINATIONS = 400

#: Combinations that are found for a stage.
_BEST = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A plan of one kind of block, with the layouts of all of its port groups, and C and N of one block."""

    choice: Choice
    boundary: Mapping[int, Spec]
    seconds: Seconds


@dataclass(kw_only=True, eq=False)
class Fronts:
    """The plans found by kind of block and layouts of the port groups that it shares with others."""

    _known: dict[Hashable, list[Option]] = field(default_factory=dict)

    def add(self, key: Hashable, option: Option) -> None:
        """Take a plan of a kind, unless others are as good."""
        options = [*self._known.get(key, ()), option]
        known = [(each.seconds[0], each.seconds[1], each) for each in options]
        self._known[key] = [each for _, _, each in undominated(known)]

    def best(
        self, objective: Objective, keys: Mapping[str, Hashable], load: Load, sends_s: float
    ) -> list[tuple[float, dict[str, Option]]]:
        """Some combinations of plans of the kinds `keys` with the least objective of a stage that sends for so long,
        and that; none where a kind has no plan."""
        partial: list[tuple[float, float, dict[str, Option]]] = [(0.0, sends_s, {})]
        for name, key in keys.items():
            count = load.counts[name]
            grown = [
                (local + count * mine.seconds[0], exposed + count * mine.seconds[1], {**chosen, name: mine})
                for local, exposed, chosen in partial
                for mine in self._known.get(key, ())
            ]
            partial = undominated(grown)
            partial = partial[:: len(partial) // _COMBINATIONS + 1]
        values = [(combined(objective, local, exposed), chosen) for local, exposed, chosen in partial]
        found = sorted(values, key=lambda each: each[0])
        return found[:_BEST]


def undominated(items: list[tuple[float, float, T]]) -> list[tuple[float, float, T]]:
    """Those that no other one equals or beats in both numbers."""
    out: list[tuple[float, float, T]] = []
    for item in sorted(items, key=lambda each: each[:2]):
        if not out or item[1] < out[-1][1]:
            out.append(item)
    return out
