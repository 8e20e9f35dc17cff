"""What the repository keeps of the paper's evaluation comes out of a run of it, and not out of one that failed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rooflang.report.reproduction.frontiers import frontier_jobs
from rooflang.report.reproduction.jobs import Ran
from rooflang.report.reproduction.setting import Scope
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

    def reproduce(names: object, folder: Path, progress: object) -> tuple[str, Ran]:
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


def test_the_page_has_a_place_for_the_summary(refresh: ModuleType) -> None:
    page = (ROOT / "docs" / "reproduction" / "README.md").read_text(encoding="utf-8")
    assert len(refresh._SUMMARY.findall(page)) == 1
