"""A part of the report: which jobs it needs, and what it writes once they are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rooflang.report.reproduction.frontiers import Curve, curves
from rooflang.report.reproduction.jobs import Job
from rooflang.report.reproduction.setting import Scope


@dataclass(frozen=True, kw_only=True)
class Done:
    """What there is to show: results by the name of their job, and the folder that figures go to."""

    scope: Scope
    results: Mapping[str, Mapping[str, Any]]
    folder: Path

    @cached_property
    def curves(self) -> list[Curve]:
        return curves(self.scope, self.results)

    def select(self, **wanted: str) -> list[Curve]:
        """Curves by `stage`, `search` and `assumptions`, those that are named."""
        return [
            curve
            for curve in self.curves
            if all(getattr(curve.setting if name == "stage" else curve.series, name) == wanted[name] for name in wanted)
        ]

    def image(self, stem: str, words: str) -> str:
        """The Markdown of a figure below the folder, which has an SVG beside the PNG."""
        return f"![{words}](figures/{stem}.png)\n\n[{words}, as SVG](figures/{stem}.svg)"

    def figure(self, stem: str) -> Path:
        """Where a figure goes, without its suffix; the folder is made."""
        folder = self.folder / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / stem


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`jobs` and `show` of a part; `brief`: what the summary has of it beside the sentences that are printed bold, if
    there is anything; `draws` says whether it needs the libraries that draw."""

    title: str
    jobs: Callable[[Scope], Iterable[Job]]
    show: Callable[[Done], str]
    brief: Callable[[Done], str] | None = None
    draws: bool = False
