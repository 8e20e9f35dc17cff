"""The plans of a set of points in words, each one once."""

from __future__ import annotations

from collections.abc import Sequence

from rooflang.report.layout import paragraph
from rooflang.report.numbers import show_count, show_layers
from rooflang.search.point import Point

Key = tuple[str, tuple[int, ...], tuple[int, ...]]


def plan_key(point: Point) -> Key:
    """What makes two points use the same plan: the words, the mesh and the layers of each stage."""
    return point.plan, point.mesh, point.pp_partition


def number_plans(points: Sequence[Point]) -> dict[Key, int]:
    """Each distinct plan with its number, from 1, in the order of the points."""
    return {key: number for number, key in enumerate(dict.fromkeys(map(plan_key, points)), start=1)}


def show_mesh(mesh: Sequence[int]) -> str:
    """Axis sizes, outermost first: `8x4`; one GPU has no axes: `1`."""
    return "x".join(map(str, mesh)) or "1"


def show_plans(points: Sequence[Point]) -> str:
    """A paragraph for each distinct plan: at which batch sizes it is used, and how each group of operators is cut."""
    blocks = []
    for key, number in number_plans(points).items():
        users = [point for point in points if plan_key(point) == key]
        batches = ", ".join(show_count(batch) for batch in sorted({point.batch for point in users}))
        head = f"plan {number}, on a mesh of {show_mesh(users[0].mesh)}, at batch {batches}"
        blocks.append(paragraph(head, then="  ") + "\n" + show_plan(users[0], sorted({user.origin for user in users})))
    return "\n\n".join(blocks)


def show_plan(point: Point, origins: Sequence[str]) -> str:
    """How each group of operators is cut, groups that are cut alike in one line; the pipeline; the plan's origin."""
    *parts, pipeline = point.plan.split("; ")
    alike: dict[str, list[str]] = {}
    for part in parts:
        group, _, cut = part.rpartition(": ")
        alike.setdefault(cut, []).extend([group] if group else [])
    lines = [f"{', '.join(groups)}: {cut}" if groups else cut for cut, groups in alike.items()]
    stages = f" stages of {show_layers(point.pp_partition)} layers" if point.pp > 1 else " stage"
    lines.append(f"pipeline: {pipeline.removeprefix('pipeline ')}{stages}")
    lines.append(f"found by: {'; '.join(origins)}")
    return "\n".join(paragraph(line, first="  ", then="      ") for line in lines)
