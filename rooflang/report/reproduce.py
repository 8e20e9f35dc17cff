"""The RoofLang paper's evaluation, computed beside published, part by part, as Markdown.

A part is kept as JSON under the hash of everything that it depends on, so that a run that was interrupted goes on with
the parts that are missing, and a part is computed anew when a model, the hardware or the version has changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooflang import __version__
from rooflang.models.tables import DECIMALS, published_rows, published_source
from rooflang.report import ratios
from rooflang.report.markdown import markdown_table
from rooflang.report.numbers import show_count, show_error
from rooflang.report.published import ASSUMPTIONS, COLUMNS, GPUS, HARDWARE, compare_tables, tables_json
from rooflang.report.ratios import compare_ratios
from rooflang.search.inputs import digest, hashed_inputs
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress

SCHEMA = "rooflang.reproduced/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the evaluation: `compute` gives JSON-ready data, `show` their Markdown."""

    title: str
    compute: Callable[[Progress], dict[str, Any]]
    show: Callable[[Mapping[str, Any]], str]


def _compute_tables(progress: Progress) -> dict[str, Any]:
    return tables_json(list(compare_tables(progress)))


def _show_tables(data: Mapping[str, Any]) -> str:
    lines = []
    for row in data["rows"]:
        for name, title in COLUMNS.items():
            cell, digits = row["cells"][name], 0 if name == "batch" else DECIMALS
            figures = (f"{cell[key]:,.{digits}f}" for key in ("printed", "published"))
            error = show_error(cell["relative_error"])
            lines.append((row["model"], show_count(row["context"]), title, *figures, error))
    return markdown_table(("<model", "context", "<quantity", "computed", "published", "error"), lines)


def _compute_ratios(progress: Progress) -> dict[str, Any]:
    fields = ("tok_s_gpu", "over_tok_s_gpu", "times", "printed")
    return {
        "rows": [
            {
                "model": found.published.model,
                "over": found.published.over,
                "context": found.published.context,
                "published": found.published.times,
                **{name: getattr(found, name) for name in fields},
            }
            for found in compare_ratios(progress)
        ]
    }


def _show_ratios(data: Mapping[str, Any]) -> str:
    lines = [
        (
            row["model"],
            row["over"],
            show_count(row["context"]),
            f"{row['printed']:.{ratios.DECIMALS}f}",
            f"{row['published']:.{ratios.DECIMALS}f}",
            show_error(row["printed"] / row["published"] - 1.0),
        )
        for row in data["rows"]
    ]
    return markdown_table(("<model", "<over", "context", "computed", "published", "error"), lines)


#: Parts by name, in the order of the report.
PARTS = {
    "tables": Part(title="Tables 7 and 8", compute=_compute_tables, show=_show_tables),
    "ratios": Part(title="Ratios of peak decode throughput", compute=_compute_ratios, show=_show_ratios),
}


def reproduce(names: Sequence[str], folder: Path | None, progress: Progress) -> str:
    """The report on these parts. With a folder, parts are kept there and taken from there."""
    key = _key()
    sections = []
    for name in names:
        data = _kept(folder, name, key)
        if data is None:
            data = PARTS[name].compute(progress)
            _keep(folder, name, key, data)
        sections.append(f"## {PARTS[name].title}\n\n{PARTS[name].show(data)}\n")
    intro = (
        f"# The RoofLang paper, reproduced\n\n{published_source()}. Computed by RoofLang {__version__} under the "
        f"`{ASSUMPTIONS}` assumptions on {GPUS} {HARDWARE}; errors are those of the printed digits.\n"
    )
    return "\n".join([intro, *sections])


def _key() -> str:
    """The hash of what all parts depend on: graphs, hardware, assumptions, version, and what is published."""
    asked = [
        hashed_inputs(
            Problem.of(row.model, hardware=HARDWARE, gpus=GPUS, context=row.context, assumptions=ASSUMPTIONS)
        )["hash"]
        for row in published_rows()
    ]
    return digest({"asked": asked})


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _kept(folder: Path | None, name: str, key: str) -> dict[str, Any] | None:
    """A part that was computed for the same question before; anything else in its file is not it."""
    if folder is None:
        return None
    try:
        found = json.loads(_file(folder, name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or found.get("key") != key:
        return None
    data = found["data"]
    return data if isinstance(data, dict) else None


def _keep(folder: Path | None, name: str, key: str, data: Mapping[str, Any]) -> None:
    if folder is not None:
        text = json.dumps({"schema": SCHEMA, "part": name, "key": key, "data": data}, indent=2) + "\n"
        partial = folder / f".{name}.partial"
        partial.write_text(text, encoding="utf-8")
        partial.replace(_file(folder, name))
