"""The RoofLang paper's Tables 7 and 8, computed beside published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rooflang.errors import CapacityError, RooflangError
from rooflang.models import load
from rooflang.models.tables import DECIMALS, TableRow, published_rows, published_source, table_row
from rooflang.search.evaluate import evaluate
from rooflang.search.grid import grid_candidates
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.sizes import batch_sizes, pipeline_degrees

TABLES_SCHEMA = "rooflang.tables/1"

#: The setting of both tables.
HARDWARE, GPUS, ASSUMPTIONS = "gb300", 64, "paper"

#: Columns by field of `TableRow`, in the order of the tables, with their titles.
COLUMNS = {
    "batch": "peak batch",
    "weight_mib": "weights read per token, P/B, MiB",
    "kv_footprint_gib": "KV cache of a request, GiB",
    "kv_read_gib": "KV cache read per token, GiB",
    "traffic_gib": "all bytes read per token, GiB",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One number: computed in full, and both as the table prints it."""

    value: float
    printed: float
    published: float

    @property
    def error(self) -> float:
        """Relative error at the printed precision."""
        return self.printed / self.published - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One row of the tables: a cell for each of `COLUMNS`."""

    model: str
    context: int
    cells: dict[str, Cell]


def compare_tables(progress: Progress) -> Iterator[Compared]:
    """The rows of all registered models that the paper prints."""
    for published in published_rows():
        progress.say(f"{published.model}, context {published.context}")
        batch = peak_batch(published.model, published.context, progress)
        computed = table_row(load(published.model), published.context, batch)
        cells = {name: _cell(name, computed, published) for name in COLUMNS}
        yield Compared(model=published.model, context=published.context, cells=cells)


def peak_batch(model: str, context: int, progress: Progress) -> int:
    """The largest power of two that some configuration of the grid can decode, as the simulation says."""
    problem = Problem.of(model, hardware=HARDWARE, gpus=GPUS, context=context, assumptions=ASSUMPTIONS)
    degrees, batches = pipeline_degrees(problem, None), batch_sizes(problem, None)
    candidates = grid_candidates(problem, degrees, batches, "perfect", progress)
    refusal: RooflangError | None = None
    for candidate in sorted(candidates, key=lambda each: -each.batch):
        try:
            evaluate(problem, candidate.plan, candidate.batch, overlap="perfect")
        except CapacityError as error:
            refusal = error
        else:
            return candidate.batch
    raise refusal or CapacityError(f"{model} fits at no batch size", where=f"{GPUS} {HARDWARE}")


def tables_json(rows: list[Compared]) -> dict[str, Any]:
    """The comparison as JSON-ready data, schema `rooflang.tables/1`."""
    return {
        "schema": TABLES_SCHEMA,
        "source": published_source(),
        "inputs": {"hardware": HARDWARE, "gpus": GPUS, "assumptions": ASSUMPTIONS, "stage": "decode"},
        "rows": [
            {
                "model": row.model,
                "context": row.context,
                "cells": {
                    name: {
                        "computed": cell.value,
                        "printed": cell.printed,
                        "published": cell.published,
                        "relative_error": cell.error,
                    }
                    for name, cell in row.cells.items()
                },
            }
            for row in rows
        ],
    }


def _cell(name: str, computed: TableRow, published: TableRow) -> Cell:
    value = float(getattr(computed, name))
    return Cell(value=value, printed=round(value, DECIMALS), published=float(getattr(published, name)))
