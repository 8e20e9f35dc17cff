"""The report: parts in their order, the jobs that they need run together, and what came out as Markdown."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

from rooflang import __version__
from rooflang.models.tables import published_source
from rooflang.report.reproduction.attribution import attribution_jobs
from rooflang.report.reproduction.cases import case_jobs
from rooflang.report.reproduction.frontiers import frontier_jobs
from rooflang.report.reproduction.jobs import Ran, run_jobs
from rooflang.report.reproduction.part import Done, Part
from rooflang.report.reproduction.points import point_jobs
from rooflang.report.reproduction.setting import Scope
from rooflang.report.reproduction.show_assumptions import brief_assumptions, show_assumptions
from rooflang.report.reproduction.show_cases import show_cases
from rooflang.report.reproduction.show_claims import claim_jobs, no_jobs, show_claims, show_needs_of_models
from rooflang.report.reproduction.show_frontiers import show_frontiers
from rooflang.report.reproduction.show_gains import brief_gains
from rooflang.report.reproduction.show_points import show_points
from rooflang.report.reproduction.show_tables import show_ratios, show_tables, table_jobs
from rooflang.report.reproduction.store import Store
from rooflang.report.reproduction.style import check_libraries
from rooflang.search.progress import Progress

#: Name of the report in its folder.
REPORT = "report.md"

#: Title of the summary.
IN_SHORT = "## In short"

_BOLD = re.compile(r"\*\*(.+?)\*\*", re.S)

#: Parts by name, in the order of the report.
PARTS = {
    "tables": Part(title="Tables 7 and 8", jobs=table_jobs, show=show_tables),
    "ratios": Part(title="Ratios of peak decode throughput", jobs=table_jobs, show=show_ratios),
    "points": Part(title="Published points", jobs=point_jobs, show=show_points),
    "figures": Part(title="Figures 3 and 4", jobs=frontier_jobs, show=show_frontiers, brief=brief_gains, draws=True),
    "cases": Part(title="The three cases of the paper's agent", jobs=case_jobs, show=show_cases),
    "claims": Part(title="The paper's analysis, checked", jobs=claim_jobs, show=show_claims),
    "needs": Part(title="What explains it", jobs=no_jobs, show=show_needs_of_models, draws=True),
    "assumptions": Part(
        title="From `paper` to `physical`", jobs=attribution_jobs, show=show_assumptions, brief=brief_assumptions
    ),
}


def reproduce(
    names: Sequence[str], folder: Path, progress: Progress, *, scope: Scope | None = None, workers: int | None = None
) -> tuple[str, Ran]:
    """Compute these parts, keep what each job gives below `folder`, write figures there, and return the report with
    what the jobs did. What is kept from before is not computed again. Raises `RooflangError`, before any work, where a
    library that draws is missing, and `KeyboardInterrupt` after Ctrl-C, all that was finished kept."""
    asked, started_s = scope or Scope(), time.monotonic()
    parts = {name: PARTS[name] for name in names}
    if any(part.draws for part in parts.values()):
        check_libraries()
    jobs = {job.name: job for part in parts.values() for job in part.jobs(asked)}
    ran = run_jobs(list(jobs.values()), Store(folder), progress, workers=workers)
    done = Done(scope=asked, results=ran.results, folder=folder)
    sections = []
    for part in parts.values():
        progress.say(f"writing: {part.title}")
        sections.append(f"## {part.title}\n\n{part.show(done)}\n")
    tables = [f"### {part.title}\n\n{text}\n" for part in parts.values() if part.brief and (text := part.brief(done))]
    return "\n".join(
        [_intro(asked, ran), _in_short(sections, ran, time.monotonic() - started_s), *tables, *sections]
    ), ran


def _in_short(sections: Sequence[str], ran: Ran, elapsed_s: float) -> str:
    """What is printed bold in each part, and the time by folder of results; by the clock, too, where none was there."""
    lines = []
    for section in sections:
        title = section.splitlines()[0].removeprefix("## ")
        lines += [f"- {title}: {said}" for said in _BOLD.findall(section)]
    took_s: dict[str, float] = {}
    for name, seconds in ran.took_s.items():
        folder = name.split("/")[0]
        took_s[folder] = took_s.get(folder, 0.0) + seconds
    parts = ", ".join(f"{folder} {seconds / 60:.1f}" for folder, seconds in took_s.items())
    if took_s:
        clock = f"; by the clock, processes {ran.workers}: {elapsed_s / 60:.1f}" if not ran.kept else ""
        lines.append(f"- Minutes of one core: {ran.cpu_s / 60:.1f} ({parts}){clock}")
    return f"{IN_SHORT}\n\n" + "\n".join(lines) + "\n"


def _intro(scope: Scope, ran: Ran) -> str:
    text = (
        f"# The RoofLang paper, reproduced\n\n{published_source()}. Computed by RoofLang {__version__}: under `paper`, "
        "what the published numbers take for granted, and under `physical`, what hardware does. Errors of printed "
        "numbers are those of the printed digits. Perfect overlap of computation and communication, as in the paper: "
        "ceilings, not forecasts.\n"
    )
    if not scope.whole:
        text += f"\nA part of the evaluation only: {', '.join(scope.models)} on {_counts(scope)} GPUs.\n"
    if ran.errors:
        lost = "\n".join(f"- {name}: {error.splitlines()[0]}" for name, error in sorted(ran.errors.items()))
        text += f"\n**{len(ran.errors)} jobs failed, and what they should have given is missing below:**\n\n{lost}\n"
    return text


def _counts(scope: Scope) -> str:
    return " and ".join(map(str, scope.gpus))
