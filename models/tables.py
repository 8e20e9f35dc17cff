"""The columns of the RoofLang paper's Tables 7 and 8 that need no simulation: computed, and as published.

A decode step reads every weight once for the whole batch and each request's cache once, so the bytes read per token are
P/B + T_KV (the paper's analysis): P the bytes of all weights, B the batch, T_KV the cache read per request.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rooflang.assumptions import PAPER, Assumptions
from rooflang.models.measure import kv_footprint_bytes, kv_read_bytes, weight_bytes
from rooflang.models.registry import Model
from rooflang.models.workload import Workload

_PUBLISHED = Path(__file__).parent / "published_tables.toml"

MIB = 2.0**20
GIB = 2.0**30

#: Digits after the point in the paper's tables.
DECIMALS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row, in the units of the tables. The published `batch` is the largest that fits 64 GB300.

    `weight_mib` is P/B, `kv_footprint_gib` the cache that a request keeps, `kv_read_gib` what it reads of it per token
    (T_KV), `traffic_gib` their sum P/B + T_KV.
    """

    model: str
    context: int
    batch: int
    weight_mib: float
    kv_footprint_gib: float
    kv_read_gib: float
    traffic_gib: float


def table_row(model: Model, context: int, batch: int, assumptions: Assumptions = PAPER) -> TableRow:
    """The row of a model, from its decode graph. Raises `ValueRangeError` for a context or batch out of range."""
    graph = model.build(Workload(stage="decode", context=context, batch=batch), assumptions)
    weight = weight_bytes(graph) / batch
    read = kv_read_bytes(graph, assumptions)
    return TableRow(
        model=model.name,
        context=context,
        batch=batch,
        weight_mib=weight / MIB,
        kv_footprint_gib=kv_footprint_bytes(graph) / GIB,
        kv_read_gib=read / GIB,
        traffic_gib=(weight + read) / GIB,
    )


def published_rows() -> tuple[TableRow, ...]:
    """The rows that the paper prints for the registered models."""
    return tuple(TableRow(**row) for row in _published()["row"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Peak decode throughput of a model, `times` that of another, as the paper's analysis prints it (one digit)."""

    model: str
    over: str
    context: int
    times: float


def published_ratios() -> tuple[Ratio, ...]:
    """The ratios that the paper prints for the setting of the tables."""
    return tuple(Ratio(**ratio) for ratio in _published()["ratio"])


def published_source() -> str:
    """Where the published rows stand."""
    return str(_published()["source"])


@lru_cache(maxsize=1)
def _published() -> dict[str, Any]:
    return tomllib.loads(_PUBLISHED.read_text(encoding="utf-8"))
