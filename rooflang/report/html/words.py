"""What a page tells about one point, as text for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import prod
from typing import Any

from rooflang.report.explanation import show_explanation
from rooflang.report.html.assumed import assumed
from rooflang.report.html.record import Axis, Block, CloseUp, Held, Lane, Row
from rooflang.report.layout import facts, paragraph, table
from rooflang.report.numbers import show_gap, show_share
from rooflang.search.point import Point
from rooflang.units import show_bytes, show_seconds

#: Tensors that are told one by one.
_TENSORS = 15


def show_close_up(point: Point, close: CloseUp, inputs: Mapping[str, Any]) -> str:
    """Why the step takes as long; every kind of block with its shardings and collectives; the timeline by class of
    ranks; memory by tensor; bound and gap; the assumptions."""
    parts = [show_explanation(close.explanation), _axes(close.axes)]
    parts.extend(_block(block, close.axes) for block in close.blocks)
    parts += [_lanes(close.lanes), _memory(close, point), _bound(point), _assumptions(inputs)]
    return "\n\n".join(parts)


def _axes(axes: Sequence[Axis]) -> str:
    told = "; ".join(f"{axis.name}: {axis.size} on {' and '.join(axis.levels) or 'one GPU'}" for axis in axes)
    return paragraph(f"mesh axes of a stage: {told or 'none, it is one GPU'}", then="  ")


def _block(block: Block, axes: Sequence[Axis]) -> str:
    many = f" × {len(block.labels)}" if len(block.labels) > 1 else ""
    head = f"block {block.name}{many}: {show_seconds(block.seconds)}"
    rows = [_row(row, axes) for row in block.rows]
    return f"{head}\n{table(('<runs', '<kind', '<cut', '<output lies', 'output', 'time', '<waits for'), rows)}"


def _row(row: Row, axes: Sequence[Axis]) -> tuple[str, ...]:
    along = ", ".join(axes[axis].name for axis in row.axes)
    cut = f"along {along}" if along else _cuts(row, axes)
    lies = ", ".join(dict.fromkeys(row.lies))
    return (
        row.name if row.what == "kernel" else f"  {row.name}",
        row.kind.replace("_", "-") + (f" of {', '.join(row.covers)}" if len(row.covers) > 1 else ""),
        cut,
        lies,
        show_bytes(row.bytes),
        show_seconds(row.seconds),
        row.bound,
    )


def _cuts(row: Row, axes: Sequence[Axis]) -> str:
    parts = {word: prod(a.size for a, cut in zip(axes, row.cuts) if cut == word) for word in row.cuts if word}
    return ", ".join(f"{word}→{size}" for word, size in parts.items())


def _lanes(lanes: Sequence[Lane]) -> str:
    rows = []
    for lane in lanes:
        begin_s, end_s = min(span.start_s for span in lane.spans), max(span.end_s for span in lane.spans)
        labels = _ends([span.label for span in lane.spans if not span.wave])
        rows.append((lane.name, str(lane.ranks), show_seconds(begin_s), show_seconds(end_s), labels))
    return table(("<timeline of", "ranks", "from", "to", "<blocks"), rows)


def _ends(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} … {labels[-1]}, {len(labels)}"


def _memory(close: CloseUp, point: Point) -> str:
    peak = point.sim.peak_bytes
    rows = [_tensor(held, peak) for held in close.held[:_TENSORS]]
    rest = sum(held.bytes for held in close.held[_TENSORS:])
    if rest:
        rows.append((f"{len(close.held) - _TENSORS} more", "", show_bytes(rest), show_share(rest / peak)))
    by_role = ", ".join(f"{role} {show_bytes(size)}" for role, size in _by_role(close.held))
    capacity = point.sim.capacity_bytes
    head = f"{close.memory} at its peak: {show_bytes(peak)} of {show_bytes(capacity)}; {by_role}"
    return f"{paragraph(head, then='  ')}\n{table(('<tensors, layers added up', '<what', 'bytes', 'share'), rows)}"


def _tensor(held: Held, peak: int) -> tuple[str, ...]:
    many = f" × {held.count}" if held.count > 1 else ""
    return f"{held.name}{many}", held.role, show_bytes(held.bytes), show_share(held.bytes / peak)


def _by_role(held: Iterable[Held]) -> list[tuple[str, int]]:
    ordered = sorted(held, key=lambda each: each.role)
    sums = [(role, sum(each.bytes for each in group)) for role, group in groupby(ordered, key=lambda each: each.role)]
    return sorted(sums, key=lambda entry: -entry[1])


def _bound(point: Point) -> str:
    if point.bound_s is None:
        return "bound: none was computed"
    return paragraph(
        f"bound: no step is shorter than {show_seconds(point.bound_s)}, {point.bound_scope}; "
        f"this one is {show_gap(point.gap)} above",
        then="  ",
    )


def _assumptions(inputs: Mapping[str, Any]) -> str:
    rows = [(each.name, each.value + (" (changed)" if each.changed else "")) for each in assumed(inputs)]
    return f"assumptions: {inputs['assumptions']}\n{facts(rows)}"
