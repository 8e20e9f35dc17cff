"""The three cases of the paper's agent beside what plain `optimize` finds."""

from __future__ import annotations

from rooflang.report.markdown import markdown_table
from rooflang.report.numbers import show_gap
from rooflang.report.plans import show_mesh
from rooflang.report.reproduction.cases import FoundCase, found_cases
from rooflang.report.reproduction.part import Done
from rooflang.units import show_seconds


def show_cases(done: Done) -> str:
    """One row for each case and profile, then the plans in words and the commands that find them again."""
    cases = found_cases(done.results)
    if not cases:
        return "None of the cases is about these models."
    rows = [
        (
            each.case.title,
            each.assumptions,
            _time(each.grid_s) + (f" (published: {show_seconds(each.case.published_s)})" if _paper(each) else ""),
            _gain(each.agent_gain) + (f" (published: +{100 * each.case.published_gain:.3g}%)" if _paper(each) else ""),
            show_seconds(float(each.found["step_s"])),
            _gain(each.gain),
            show_gap(each.found["gap"]),
        )
        for each in cases
    ]
    heads = ("<case", "<profile", "grid", "the paper's agent", "`optimize`", "gain", "gap")
    plans = "\n".join(
        f"- {each.case.title}, `{each.assumptions}`: mesh {show_mesh(each.found['mesh'])}, {each.found['plan']}. "
        f"`{each.command()}`"
        for each in cases
    )
    ours = (
        f"under `{profile}` {', '.join(_gain(each.gain) for each in cases if each.assumptions == profile)}"
        for profile in dict.fromkeys(each.assumptions for each in cases)
    )
    theirs = ", ".join(f"+{100 * each.case.published_gain:.3g}%" for each in cases if _paper(each))
    agents = "; ".join(f"{each.case.title}: {each.case.agent_title}" for each in cases if _paper(each))
    return (
        f"**Over the grid `optimize` gains {'; '.join(ours)}; the paper's agent gained {theirs}.** "
        "Gains are in throughput over the grid's plan, under `paper` over the faster of its simulated and its "
        "published step. `optimize` is given the model, the cluster, the workload and the number of stages, "
        f"nothing else. What the agent did ({agents}) is simulated where it can be said as one configuration.\n\n"
        f"{markdown_table(heads, rows)}\n\nThe plans that `optimize` found:\n\n{plans}"
    )


def _paper(each: FoundCase) -> bool:
    return each.assumptions == "paper"


def _time(seconds: float | None) -> str:
    return "does not fit" if seconds is None else show_seconds(seconds)


def _gain(gain: float | None) -> str:
    return "–" if gain is None else f"{gain:+.1%}"
