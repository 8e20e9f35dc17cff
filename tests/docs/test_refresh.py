"""What the repository keeps of the paper's evaluation comes out of a run of it, and not out of one that failed."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rooflang.report.reproduction import attribution, cases, claims, jobs, show_claims, show_tables
from rooflang.report.reproduction.frontiers import frontier_jobs
from rooflang.report.reproduction.jobs import Ran
from rooflang.report.reproduction.setting import Scope, Setting
from tests.docs.pages import ROOT
from tests.report.reproduction.curves import point

REPORT = "# The paper\n\n## In short\n\n- Points: 174 of 174\n- Minutes: 3\n\n## Tables 7 and 8\n\n**40 of 40**\n"
GRID = "grid dp8 cp1 ep8 pp1"


@pytest.fixture
def refresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("refresh", ROOT / "docs" / "reproduction" / "refresh.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "README.md").write_text("before\n<!-- summary: begin -->\nold\n<!-- summary: end -->\nafter\n")
    monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(module, "ENDS", tmp_path / "curve_ends.csv")
    return module


def run(module: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path, **errors: str) -> int:
    """Refresh from a run in which one curve has points."""
    few = Scope(models=("deepseek-v4-flash",), stages=("decode",), contexts=(2**16,), gpus=(8,), hardware=("b300",))
    (job,) = (job for job in frontier_jobs(few) if job.name.endswith("grid-paper"))
    points = [point(8, 600.0, 600.0, origin=GRID), point(512, 400.0, 9000.123456789123, origin=GRID)]
    results = {job.name: {"points": points, "stopped_by": "complete", "refusal": ""}}

    def reproduce(names: object, folder: Path, progress: object, scope: Scope) -> tuple[str, Ran]:
        (folder / "figures").mkdir()
        for stage in ("prefill", "decode"):
            (folder / "figures" / f"{stage}-grid-paper.png").write_text(stage)
        return REPORT, Ran(results=results, errors=errors)

    monkeypatch.setattr(module, "reproduce", reproduce)
    code: Any = module.main(folder)
    return int(code)


def test_summary_figures_and_ends_are_written(
    refresh: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(refresh, monkeypatch, tmp_path / "run") == 0
    kept = "before\n<!-- summary: begin -->\n- Points: 174 of 174\n- Minutes: 3\n<!-- summary: end -->\nafter\n"
    assert (tmp_path / "README.md").read_text() == kept
    assert (tmp_path / "figure-3.png").read_text() == "prefill"
    assert (tmp_path / "figure-4.png").read_text() == "decode"
    assert (tmp_path / "curve_ends.csv").read_text().splitlines() == [
        ",".join(refresh.COLUMNS),
        "deepseek-v4-flash,decode,65536,b300,8,peak,512,8,1,1,400,9000.12346",
        "deepseek-v4-flash,decode,65536,b300,8,right end,8,8,1,1,600,600",
    ]


def test_nothing_is_kept_of_a_run_that_failed(
    refresh: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(refresh, monkeypatch, tmp_path / "run", **{"points/one": "lost"}) == 2
    assert "old" in (tmp_path / "README.md").read_text()
    assert not (tmp_path / "curve_ends.csv").exists()


def test_all_of_it_on_a_small_scale(refresh: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of job, from the run to what the repository keeps; and again from what is there."""
    asked = {"model": "llama-3.1-8b", "stage": "decode", "context": 2**13, "hardware": "b300", "gpus": 8}
    setting, layout = Setting(**asked), {"batch": 64, "dp": 8}  # type: ignore[arg-type]
    monkeypatch.setattr(attribution, "EXAMPLES", (attribution.Example(setting=setting, layout=layout),))
    case = replace(cases.CASES[2], setting=setting, layout=layout)
    monkeypatch.setattr(cases, "CASES", (case,))
    monkeypatch.setattr(claims, "SCOPES", ((8, 4), (8, 8)))
    monkeypatch.setattr(show_claims, "EXPLAINED", (2**13,))
    monkeypatch.setattr(show_tables, "GPUS", 8)
    small = Scope(models=("llama-3.1-8b",), contexts=(2**13,), gpus=(8,), hardware=("b300",), batches=(64,))
    monkeypatch.setattr(jobs, "_WORTH_A_POOL", 99)  # what was made small here is as large as ever in other processes
    assert refresh.main(tmp_path / "run", small) == 0
    page = (tmp_path / "README.md").read_text()
    for said in (
        "- Figures 3 and 4: Under `physical` the search has the throughput of the grid or more at 2 of 2 batch sizes",
        "- The three cases of the paper's agent: Over the grid `optimize` gains under `paper` +",
        "### Figures 3 and 4",
        "| llama-3.1-8b | prefill | paper | 1 | 1 | +",
        "### From `paper` to `physical`",
        "| `embedding_read` |",
        "; by the clock, processes 1: ",
    ):
        assert said in page
    assert len((tmp_path / "curve_ends.csv").read_text().splitlines()) == 5
    assert refresh.main(tmp_path / "run", small) == 0
    assert "by the clock" not in (tmp_path / "README.md").read_text()


def test_the_page_has_a_place_for_the_summary(refresh: ModuleType) -> None:
    page = (ROOT / "docs" / "reproduction" / "README.md").read_text(encoding="utf-8")
    assert len(refresh._SUMMARY.findall(page)) == 1
