"""What makes `physical` differ from `paper`, one assumption at a time."""

from __future__ import annotations

from collections.abc import Sequence

from rooflang.report.markdown import markdown_table
from rooflang.report.reproduction.attribution import Attributed, attributed_examples, differing
from rooflang.report.reproduction.part import Done
from rooflang.units import show_seconds

#: Less than this is no effect.
_FELT = 5e-4


def show_assumptions(done: Done) -> str:
    """A column for each configuration; a row for each assumption, with its effect alone in either profile."""
    examples = attributed_examples(done.results)
    if not examples:
        return "No configuration of these models is among the examples."
    names = "\n".join(f"{number}. {each.example.title}" for number, each in enumerate(examples, start=1))
    rows = [
        ("step under `paper`", *(_time(each.step_s["paper"]) for each in examples)),
        ("step under `physical`", *(_time(each.step_s["physical"]) for each in examples)),
        ("longer by", *(_effect(each.whole) for each in examples)),
    ]
    rows += [(f"`{field}`", *(_pair(each, field) for each in examples)) for field in _ordered(examples)]
    heads = ("<", *(str(number) for number in range(1, len(examples) + 1)))
    silent = [f"`{field}`" for field in differing() if field not in _ordered(examples)]
    note = f"\n\nWithout effect in all of these: {', '.join(silent)}." if silent else ""
    return (
        "The plan is the grid's in each of these configurations, so that nothing but the assumptions changes:\n\n"
        f"{names}\n\nTwo numbers for each assumption: by how much longer a step takes if `paper` takes this one from "
        "`physical`; and by how much longer it takes under `physical` than if that took this one from `paper`. They "
        "differ where assumptions act on one another: what hides behind something else shows nothing.\n\n"
        f"{markdown_table(heads, rows)}{note}"
    )


def _ordered(examples: Sequence[Attributed]) -> list[str]:
    """The assumptions that matter somewhere, those that matter most first."""
    size = {
        field: max(max(abs(each.added(field) or 0.0), abs(each.removed(field) or 0.0)) for each in examples)
        for field in differing()
    }
    return sorted((field for field in size if size[field] >= _FELT), key=lambda field: -size[field])


def _pair(each: Attributed, field: str) -> str:
    pair = _effect(each.added(field)), _effect(each.removed(field))
    return "" if pair == ("0", "0") else ", ".join(pair)


def _effect(value: float | None) -> str:
    if value is None:
        return "–"
    return "0" if abs(value) < _FELT else f"{value:+.1%}"


def _time(seconds: float | None) -> str:
    return "does not fit" if seconds is None else show_seconds(seconds)
