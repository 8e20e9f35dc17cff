"""What makes `physical` differ from `paper`, one assumption at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rooflang.report.markdown import markdown_table
from rooflang.report.reproduction.attribution import Attributed, Effects, attributed_examples, differing
from rooflang.report.reproduction.part import Done
from rooflang.units import show_bytes, show_seconds

#: Less than this is no effect.
_FELT = 5e-4


def brief_assumptions(done: Done) -> str:
    """The table of steps, for the summary; nothing without examples."""
    examples = attributed_examples(done.results)
    if not examples:
        return ""
    return (
        "Two numbers for each assumption: by how much longer a step takes if `paper` takes this one from `physical`; "
        "and by how much longer it takes under `physical` than if that took this one from `paper`. The plans are the "
        f"grid's:\n\n{_names(examples)}\n\n"
        f"{_table('step', 'longer by', [each.step for each in examples], show_seconds)}"
    )


def show_assumptions(done: Done) -> str:
    """A column for each configuration; a row for each assumption, with its effect alone in either profile; first on the
    step, then on memory."""
    examples = attributed_examples(done.results)
    if not examples:
        return "No configuration of these models is among the examples."
    steps, peaks = [each.step for each in examples], [each.peak for each in examples]
    silent = [f"`{field}`" for field in differing() if field not in {*_ordered(steps), *_ordered(peaks)}]
    note = f"\n\nWithout effect in all of these: {', '.join(silent)}." if silent else ""
    longer = [each.whole for each in steps if each.whole is not None]
    said = f"**A step takes {min(longer):+.1%} to {max(longer):+.1%} under `physical`.** " if longer else ""
    return (
        f"{said}The plan is the grid's in each of these configurations, so that nothing but the assumptions "
        "changes:\n\n"
        f"{_names(examples)}\n\nTwo numbers for each assumption: by how much longer a step takes if `paper` takes this "
        "one from `physical`; and by how much longer it takes under `physical` than if that took this one from "
        "`paper`. They differ where assumptions act on one another: what hides behind something else shows nothing."
        f"\n\n{_table('step', 'longer by', steps, show_seconds)}\n\nThe same of the peak of memory on one GPU:\n\n"
        f"{_table('peak', 'more by', peaks, show_bytes)}{note}"
    )


def _names(examples: Sequence[Attributed]) -> str:
    return "\n".join(f"{number}. {each.example.title}" for number, each in enumerate(examples, start=1))


def _table(what: str, more: str, effects: Sequence[Effects], show: Callable[[float], str]) -> str:
    rows = [
        *(
            (f"{what} under `{name}`", *(_amount(each.amount[name], show) for each in effects))
            for name in ("paper", "physical")
        ),
        (more, *(_effect(each.whole) for each in effects)),
        *((f"`{field}`", *(_pair(each, field) for each in effects)) for field in _ordered(effects)),
    ]
    return markdown_table(("<", *(str(number) for number in range(1, len(effects) + 1))), rows)


def _ordered(effects: Sequence[Effects]) -> list[str]:
    """The assumptions that matter somewhere, those that matter most first."""
    size = {field: max(each.most(field) for each in effects) for field in differing()}
    return sorted((field for field in size if size[field] >= _FELT), key=lambda field: -size[field])


def _pair(each: Effects, field: str) -> str:
    pair = _effect(each.added(field)), _effect(each.removed(field))
    return "" if pair == ("0", "0") else ", ".join(pair)


def _effect(value: float | None) -> str:
    if value is None:
        return "–"
    return "0" if abs(value) < _FELT else f"{value:+.1%}"


def _amount(amount: float | None, show: Callable[[float], str]) -> str:
    return "does not fit" if amount is None else show(amount)
