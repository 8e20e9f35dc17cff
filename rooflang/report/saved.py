"""Points out of a file that `--json` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rooflang.errors import RooflangError, ValueRangeError
from rooflang.search.point import RESULT_SCHEMA

_EXPECTED = f"a file that --json wrote, schema {RESULT_SCHEMA}"


def is_result(path: Path) -> bool:
    """Whether a file is a result that `--json` wrote, and not, say, a config."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and data.get("schema") == RESULT_SCHEMA


def saved_points(path: Path, *, where: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The inputs and the points of a result: on a frontier in its order, in a simulation the only one. Raises a
    `RooflangError` that names `where` for a file that cannot be read or is no result."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RooflangError(f"cannot read {str(path)!r}: {error.strerror}", where=where, expected=_EXPECTED) from error
    except ValueError as error:
        raise RooflangError(f"{str(path)!r} is no JSON", where=where, expected=_EXPECTED) from error
    schema = data.get("schema") if isinstance(data, dict) else None
    points = (data.get("frontier") or [data.get("point")]) if schema == RESULT_SCHEMA else None
    if not isinstance(points, list) or not all(map(_is_point, points)):
        raise RooflangError(f"{str(path)!r} holds no points", where=where, expected=_EXPECTED)
    return data.get("inputs", {}), points


def saved_point(path: Path, number: int, *, where: str) -> dict[str, Any]:
    """The point of that number, from 1: on a frontier in its order, in a simulation the only one.

    Raises a `RooflangError` that names `where` for a file that cannot be read or is no result, `ValueRangeError` for a
    number that it does not have.
    """
    _, points = saved_points(path, where=where)
    if number > len(points):
        raise ValueRangeError(f"point {number} of {len(points)}", where="--point", expected=f"1 to {len(points)}")
    return points[number - 1]


def _is_point(data: object) -> bool:
    return isinstance(data, dict) and isinstance(data.get("batch"), int) and isinstance(data.get("certificate"), dict)
