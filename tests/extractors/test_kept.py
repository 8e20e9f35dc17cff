"""What is kept has an upper limit on its entries, and goes in the order in which it was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from rooflang.extractors.kept import Kept


@dataclass
class Sized:
    entries: int


def test_what_was_not_asked_for_lately_makes_room() -> None:
    kept: Kept[str, Sized] = Kept(10)
    computed: list[str] = []

    def get(name: str, entries: int = 4) -> Sized:
        return kept.get(name, lambda: computed.append(name) or Sized(entries))  # type: ignore[func-returns-value]

    first = get("a")
    get("b")
    assert get("a") is first and computed == ["a", "b"]
    get("c")  # b goes: a was asked for after it
    assert get("a") is first
    get("b")
    assert computed == ["a", "b", "c", "b"]
    get("large", 100)  # larger than all of it, and kept alone
    get("large")
    get("a")
    assert computed == ["a", "b", "c", "b", "large", "a"]
