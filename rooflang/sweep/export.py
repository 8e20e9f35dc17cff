"""A store as a flat table: a line for each point of each result, and one for each case that has none."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from rooflang.sweep.job import DONE, Row

#: What was asked, in the order of the columns.
_ASKED = (
    *("model", "hardware", "gpus", "max_gpus", "stage", "context", "assumptions", "search", "overlap"),
    *("objective", "min_user", "max_ttft_s", "max_tpot_s", "gpu_hour_usd", "version"),
)

#: What is told of each point.
_POINT = (
    *("batch", "pp", "tok_s_gpu", "tok_s_user", "usd_per_million_tokens", "step_s", "bound_s", "gap"),
    *("peak_bytes", "capacity_bytes", "bottleneck", "origin", "plan"),
)

#: The rest of what was asked, as JSON: how it was searched.
_OPTIONS = "options"

#: Every column. All lines have all of them; what does not apply is null, empty in CSV. Lists are text, such as `2x8`.
COLUMNS = (
    *("key", *_ASKED, "outcome", "stopped_by", "inputs_hash", "seconds"),
    *("point", "point_gpus", "mesh", "partition", *_POINT, "error", _OPTIONS),
)


def flat(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """The lines of a store, sorted by what was asked, points in the order of their frontier."""
    told = [(json.loads(row.asked), row) for row in rows]
    for asked, row in sorted(told, key=lambda pair: ([_sortable(pair[0].get(name)) for name in _ASKED], pair[1].key)):
        common = dict.fromkeys(COLUMNS) | {name: asked.get(name) for name in _ASKED}
        rest = {name: value for name, value in sorted(asked.items()) if name not in _ASKED}
        common |= {
            "key": row.key,
            _OPTIONS: json.dumps(rest),
            "outcome": row.outcome,
            "error": row.error or None,
            "seconds": row.seconds,
        }
        if row.outcome != DONE:
            yield common
            continue
        result = json.loads(row.result)
        common |= {"stopped_by": result["stopped_by"], "inputs_hash": result["inputs"]["hash"]}
        for number, point in enumerate(result["frontier"], start=1):
            yield common | _flat_point(point) | {"point": number}


def _flat_point(point: dict[str, Any]) -> dict[str, Any]:
    gpus = point["pp"]
    for size in point["mesh"]:
        gpus *= size
    return {name: point.get(name) for name in _POINT} | {
        "point_gpus": gpus,
        "mesh": "x".join(map(str, point["mesh"])) or "1",
        "partition": ",".join(map(str, point["pp_partition"])),
    }


def _sortable(value: Any) -> tuple[bool, bool, float, str]:
    """Nothing first, then numbers by size, then words."""
    if isinstance(value, (int, float)):
        return (True, False, float(value), "")
    return (value is not None, value is not None, 0.0, str(value))


def as_csv(rows: Iterable[Row]) -> str:
    """Comma-separated values with a line of heads."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat(rows))
    return out.getvalue()


def as_json_lines(rows: Iterable[Row]) -> str:
    """A JSON object a line, all with the same keys and one type a key, as readers of Parquet expect."""
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in flat(rows))
