"""Points out of a file that `--json` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rooflang.errors import RooflangError, ValueRangeError
from rooflang.search.point import RESULT_SCHEMA

_EXPECTED = f"a file that --json wrote, schema {RESULT_SCHEMA}"


def saved_point(path: Path, number: int, *, where: str) -> dict[str, Any]:
    """The point of that number, from 1: on a frontier in its order, in a simulation the only one.

    Raises a `RooflangError` that names `where` for a file that cannot be read or is no result, `ValueRangeError` for a
    number that it does not have.
    """
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
    if number > len(points):
        raise ValueRangeError(f"point {number} of {len(points)}", where="--point", expected=f"1 to {len(points)}")
    found: dict[str, Any] = points[number - 1]
    return found


def _is_point(data: object) -> bool:
    return isinstance(data, dict) and isinstance(data.get("batch"), int) and isinstance(data.get("certificate"), dict)
