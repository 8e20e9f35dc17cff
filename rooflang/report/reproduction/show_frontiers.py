"""Figures 3 and 4, their checks, and what the automatic search gains over the grid."""

from __future__ import annotations

from collections.abc import Sequence

from rooflang.report.markdown import markdown_table
from rooflang.report.numbers import show_count, show_error, show_rate
from rooflang.report.reproduction.checks import CurveEnd, curve_ends
from rooflang.report.reproduction.figures import NUMBERS, draw_grid, draw_searches
from rooflang.report.reproduction.interactive import PAGE, write_page
from rooflang.report.reproduction.part import Done
from rooflang.report.reproduction.points import published_points
from rooflang.report.reproduction.setting import GPUS, PROFILES
from rooflang.report.reproduction.show_gains import show_gains

#: An end of a curve may differ from its published point by this much.
END_TOLERANCE = 0.03

#: Rows of a list that is shown in full only in the JSON.
_LONGEST = 12


def show_frontiers(done: Done) -> str:
    """The figures, drawn below the folder, and the two tables of checks."""
    parts = [_intro(done)]
    for stage in done.scope.stages:
        for profile in PROFILES:
            grid = done.select(stage=stage, assumptions=profile, search="grid")
            if any(curve.points for curve in grid):
                stem = f"{stage}-grid-{profile}"
                draw_grid(grid, stage, _published, done.figure(stem))
                number = NUMBERS[stage]
                parts.append(done.image(stem, f"Figure {number}, {stage}, the grid under {profile} assumptions"))
    parts.append(_ends(curve_ends(done.select(assumptions="paper", search="grid"))))
    parts.append("### The automatic search beside the grid")
    for stage in done.scope.stages:
        for profile in PROFILES:
            both = done.select(stage=stage, assumptions=profile)
            if any(curve.points for curve in both if curve.series.search == "egraph"):
                stem = f"{stage}-search-{profile}"
                draw_searches(both, stage, done.figure(stem))
                parts.append(done.image(stem, f"{stage.capitalize()}, e-graph and grid under {profile} assumptions"))
    parts.append(show_gains(done))
    return "\n\n".join(parts)


def _intro(done: Done) -> str:
    written = write_page(done.curves, done.folder / PAGE) if done.curves else False
    refused = [curve for curve in done.select(search="grid", assumptions="paper") if not curve.points]
    text = (
        "Throughput over interactivity: the grid of the paper (DP, CP, PP, batch sizes 2ⁿ until out of memory), and "
        f"the automatic search at batch sizes {_counts(done.scope.batches)}, with the effort `{done.scope.effort}`, at "
        f"most {done.scope.limit_s:g} s in each setting. "
    )
    if written:
        text += f"[{PAGE}]({PAGE}) has all curves with plan and bottleneck of each point under the pointer. "
    if refused:
        names = "; ".join(str(curve.setting) for curve in refused[:_LONGEST])
        text += f"Under `paper`, nothing fits in {len(refused)} settings: {names}. "
    return text.strip()


def _counts(batches: Sequence[int]) -> str:
    return ", ".join(map(show_count, batches))


def _published(model: str, stage: str, context: int) -> list[tuple[float, float, str]]:
    """Published points of a panel, on as many GPUs as the figures have."""
    return [
        (point.tok_s_user, point.tok_s_gpu, point.setting.hardware)
        for point in published_points()
        if (point.setting.model, point.setting.stage, point.setting.context) == (model, stage, context)
        and point.setting.gpus in GPUS
        and point.tok_s_user is not None
    ]


def _ends(ends: Sequence[CurveEnd]) -> str:
    compared = [end for end in ends if end.error is not None]
    inside = [end for end in ends if end.of_axis is not None and end.of_axis <= 1.0]
    known = [end for end in ends if end.of_axis is not None]
    good = sum(abs(end.error or 0.0) <= END_TOLERANCE for end in compared)
    rows = [
        (
            str(end.curve.setting),
            end.end,
            show_count(int(end.point["batch"])),
            show_rate(float(end.point["tok_s_gpu"])),
            show_rate(float(end.point["tok_s_user"])),
            show_error(end.error or 0.0),
        )
        for end in compared
    ]
    text = (
        f"Of {len(ends)} ends of curves (peak throughput, highest interactivity) {len(compared)} have a published "
        f"point of the same batch and pipeline. **{good} of {len(compared)} ends agree within {END_TOLERANCE:.0%}; "
        f"{len(inside)} of {len(known)} lie inside the axes of the paper's figures**, within their top ticks."
    )
    outside = [end for end in known if end not in inside]
    if outside:
        names = "; ".join(f"{end.curve.setting}, {end.end}: {end.of_axis:.2f} of the axis" for end in outside)
        text += f" Outside: {names}."
    if rows:
        heads = ("<setting", "<end", "batch", "tok/s/GPU", "tok/s/user", "error")
        text += "\n\n" + markdown_table(heads, rows)
    return text
