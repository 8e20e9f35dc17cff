"""Figures 3 and 4, their checks, and what the automatic search gains over the grid."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from rooflang.report.markdown import markdown_table
from rooflang.report.numbers import show_count, show_error, show_rate, show_share
from rooflang.report.reproduction.checks import CurveEnd, Gain, Gains, curve_ends, gains
from rooflang.report.reproduction.figures import NUMBERS, draw_grid, draw_searches
from rooflang.report.reproduction.frontiers import BATCHES, Curve
from rooflang.report.reproduction.interactive import PAGE, write_page
from rooflang.report.reproduction.part import Done
from rooflang.report.reproduction.points import published_points
from rooflang.report.reproduction.setting import GPUS, PROFILES, TITLES

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
    parts.append(_gains(done))
    return "\n\n".join(parts)


def _intro(done: Done) -> str:
    written = write_page(done.curves, done.folder / PAGE) if done.curves else False
    refused = [curve for curve in done.select(search="grid", assumptions="paper") if not curve.points]
    text = (
        "Throughput over interactivity: the grid of the paper (DP, CP, PP, batch sizes 2ⁿ until out of memory), and "
        f"the automatic search at batch sizes 4ⁿ up to {BATCHES[-1]:,} with the effort `{done.scope.effort}`, at most "
        f"{done.scope.limit_s:g} s in each setting. "
    )
    if written:
        text += f"[{PAGE}]({PAGE}) has all curves with plan and bottleneck of each point under the pointer. "
    if refused:
        names = "; ".join(str(curve.setting) for curve in refused[:_LONGEST])
        text += f"Under `paper`, nothing fits in {len(refused)} settings: {names}. "
    return text.strip()


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


def _gains(done: Done) -> str:
    rows, notes, said = [], [], []
    for profile in PROFILES:
        said += _in_short(profile, done)
        for stage in done.scope.stages:
            grid = done.select(stage=stage, assumptions=profile, search="grid")
            egraph = done.select(stage=stage, assumptions=profile, search="egraph")
            found = gains(grid, egraph, BATCHES)
            notes += _missing(profile, egraph, found)
            if found.gains:
                rows.append(_gain_row(profile, stage, found))
    heads = (*_GAIN_HEADS, "right end: mean", "most")
    text = (
        "Throughput of the best plan of the search over that of the grid's, at each batch size of each setting that "
        "both have; and, for each setting, the highest interactivity of the one over that of the other:\n\n"
        + markdown_table(heads, rows)
    )
    text = "\n".join([*said, "", text]) if said else text
    return "\n\n".join([text, *_by_model(done), *notes])


def _in_short(profile: str, done: Done) -> list[str]:
    """The gains of a profile in both stages, as one sentence; none where there is nothing to compare."""
    grid, egraph = (done.select(assumptions=profile, search=search) for search in ("grid", "egraph"))
    found = gains(grid, egraph, BATCHES)
    if not found.gains:
        return []
    mean, most = (show_share_signed(value) for value in (found.mean, found.largest.gain))
    kept = len(found.gains) - len(found.losses)
    return [
        f"**Under `{profile}` the search has the throughput of the grid or more at {kept:,} of {len(found.gains):,} "
        f"batch sizes in {len(found.reach)} settings: {mean} on average, {most} at most ({_where(found.largest)}).**"
    ]


#: What a row says about the gains of a profile in a stage.
_GAIN_HEADS = ("<profile", "<stage", "settings", "compared", "≥ grid", "least", "mean", "most", "<most where")


def _gain_row(profile: str, stage: str, found: Gains) -> tuple[str, ...]:
    kept = len(found.gains) - len(found.losses)
    most = found.largest
    figures = (show_share_signed(value) for value in (found.smallest.gain, found.mean, most.gain))
    ends = (show_share_signed(value) for value in (fmean(found.reach), max(found.reach)))
    counts = (len(found.reach), len(found.gains), kept)
    return (profile, stage, *map(str, counts), *figures, _where(most), *ends)


def _where(gain: Gain) -> str:
    return f"{gain.grid.setting}, batch {show_count(gain.batch)}"


def show_share_signed(value: float) -> str:
    """A gain: `+12.3%`; as a factor from threefold on: `×5.2`."""
    return f"×{value + 1:.1f}" if value >= 2 else f"{value:+.1%}"


def _by_model(done: Done) -> list[str]:
    """Mean gain by model, stage, context and number of GPUs: a column for each profile."""
    rows = []
    for model in done.scope.models:
        for stage in done.scope.stages:
            for context in done.scope.contexts:
                for gpus in done.scope.gpus:
                    cells = []
                    for profile in PROFILES:
                        mine = [
                            curve
                            for curve in done.select(stage=stage, assumptions=profile)
                            if (curve.setting.model, curve.setting.context, curve.setting.gpus)
                            == (model, context, gpus)
                        ]
                        grid = [curve for curve in mine if curve.series.search == "grid"]
                        egraph = [curve for curve in mine if curve.series.search == "egraph"]
                        found = gains(grid, egraph, BATCHES)
                        cells.append(
                            f"{show_share_signed(found.mean)}, to {show_share_signed(found.largest.gain)}"
                            if found.gains
                            else "–"
                        )
                    rows.append((TITLES.get(model, model), stage, show_count(context), str(gpus), *cells))
    heads = ("<model", "<stage", "context", "GPUs", *(f"{profile}: mean, most" for profile in PROFILES))
    return ["Over all platforms and batch sizes:\n\n" + markdown_table(heads, rows)]


def _missing(profile: str, egraph: Sequence[Curve], found: Gains) -> list[str]:
    """What the comparison lacks, and where the search is behind."""
    notes = []
    stopped = [curve for curve in egraph if curve.stopped_by != "complete"]
    if stopped:
        names = "; ".join(str(curve.setting) for curve in stopped[:_LONGEST])
        notes.append(f"Under `{profile}` the time limit ended {len(stopped)} searches ({names}).")
    if found.only_grid:
        where = "; ".join(f"{curve.setting}, batch {show_count(batch)}" for curve, batch in found.only_grid[:_LONGEST])
        notes.append(f"Under `{profile}` the search has no point at {len(found.only_grid)} batch sizes ({where}).")
    if found.losses:
        where = "; ".join(f"{_where(gain)}: {show_share(-gain.gain)}" for gain in found.losses[:_LONGEST])
        notes.append(f"Under `{profile}` the search is behind the grid at {len(found.losses)} batch sizes: {where}.")
    return notes
