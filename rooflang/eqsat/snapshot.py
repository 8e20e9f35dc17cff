"""A frozen e-graph in integers: what the engine hands over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Row(NamedTuple):
    """An e-node or fact: its columns and the class that it is in, numbers and classes as integers."""

    inputs: tuple[int, ...]
    output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Rows by constructor or relation. Class numbers are arbitrary: equal ones are one class of one sort."""

    rows: dict[str, tuple[Row, ...]]
