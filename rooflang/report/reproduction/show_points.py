"""Published points beside ours, summed up, and the ends of the curves beside points and axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rooflang.report.markdown import markdown_table
from rooflang.report.numbers import show_error
from rooflang.report.reproduction.part import Done
from rooflang.report.reproduction.points import TOLERANCE, ComparedPoint, compared_points
from rooflang.report.reproduction.setting import TITLES


def show_points(done: Done) -> str:
    """Agreement by model and stage and by platform; every point that does not agree."""
    points = compared_points(done.results)
    good = sum(point.agrees for point in points)
    share = good / len(points) if points else 0.0
    worst = max((abs(point.error) for point in points), default=0.0)
    parts = [
        f"The paper and its authors' project page publish points of frontiers; {len(points)} of them, sampled or "
        f"quoted, are simulated here as they are described there. **{good} of {len(points)} ({share:.1%}) agree within "
        f"{TOLERANCE:.0%} in throughput and in interactivity; the largest difference is {worst:.2%}.**",
        _by("<model, stage", points, lambda point: f"{TITLES[point.published.setting.model]}, {_stage(point)}"),
        _by("<platform", points, lambda point: TITLES[point.published.setting.hardware]),
        _gh200(points),
    ]
    others = [(point.published.name, show_error(point.error)) for point in points if not point.agrees]
    if others:
        parts.append("Points that do not agree:\n\n" + markdown_table(("<point", "error"), others))
    return "\n\n".join(parts)


def _stage(point: ComparedPoint) -> str:
    return point.published.setting.stage


def _gh200(points: Sequence[ComparedPoint]) -> str:
    count = sum(point.published.setting.hardware == "gh200" for point in points)
    return (
        f"Of GH200 there {'is' if count == 1 else 'are'} {count} among these: its curves rest on the numbers of Table "
        "5 and on the authors' presets, and are otherwise unverified."
    )


def _by(head: str, points: Sequence[ComparedPoint], name: object) -> str:
    assert callable(name)
    rows = []
    for group, members in groupby(sorted(points, key=name), key=name):
        mine = list(members)
        errors = sorted(abs(point.error) for point in mine)
        agreeing = sum(point.agrees for point in mine)
        rows.append((group, str(len(mine)), str(agreeing), f"{errors[len(errors) // 2]:.3%}", f"{errors[-1]:.2%}"))
    return markdown_table((head, "points", f"within {TOLERANCE:.0%}", "middle error", "largest"), rows)
