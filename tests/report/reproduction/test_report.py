"""The report: a small slice of every part, from jobs to Markdown; what was there is taken, what failed is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rooflang.errors import GraphError
from rooflang.report.reproduction import report
from rooflang.report.reproduction.cases import CASES, case_jobs
from rooflang.report.reproduction.part import Done
from rooflang.report.reproduction.report import PARTS, reproduce
from rooflang.report.reproduction.setting import Scope
from rooflang.search.progress import Progress
from tests.report.reproduction.curves import point

#: One model on one platform.
SMALL = Scope(models=("deepseek-v4-flash",), stages=("decode",), contexts=(2**16,), gpus=(8,), hardware=("b300",))

PRO = replace(SMALL, models=("deepseek-v4-pro",))

TABLES = Scope(models=("deepseek-v4-flash",), contexts=(2**16,))


def calm() -> Progress:
    return Progress(sink=lambda message: None)


def done(name: str, folder: Path, scope: Scope, **by_work: Mapping[str, Any]) -> Done:
    """Results for every job of a part, by the name of the function that does the work."""
    results = {job.name: by_work[job.work.__name__] for job in PARTS[name].jobs(scope)}
    return Done(scope=scope, results=results, folder=folder)


def searched(*points: Mapping[str, Any]) -> dict[str, Any]:
    return {"points": list(points), "stopped_by": "complete", "refusal": ""}


def test_tables_are_as_printed_at_the_published_batch(tmp_path: Path) -> None:
    found = done(
        "tables", tmp_path, TABLES, search_setting=searched(point(65536, 88.9, 90991.0), point(64, 683.0, 683.0))
    )
    text = PARTS["tables"].show(found)
    assert "5 of 5 cells are as printed" in text
    assert "| deepseek-v4-flash | 64k | peak batch | 65,536 | 65,536 | 0.00% | 65,536 |" in text
    wrong = done("tables", tmp_path, TABLES, search_setting=searched(point(32768, 168.0, 86261.0)))
    assert "2 of 5 cells" in PARTS["tables"].show(wrong)  # those of the cache do not depend on the batch


def test_ratios_compare_peaks(tmp_path: Path) -> None:
    scope = Scope(models=("deepseek-v4-flash", "glm-5.3"), contexts=(2**16,))
    jobs = list(PARTS["ratios"].jobs(scope))
    peaks = {"deepseek-v4-flash": 97.0, "glm-5.3": 10.0}
    results = {job.name: searched(point(64, 1.0, peaks[job.asked["model"]])) for job in jobs}
    text = PARTS["ratios"].show(Done(scope=scope, results=results, folder=tmp_path))
    assert "| deepseek-v4-flash | glm-5.3 | 64k | 9.7 | 9.6 | +1.04% | 9.7 |" in text


def test_cases_say_what_was_gained(tmp_path: Path) -> None:
    found = {"step_s": 878.73e-6, "gap": 0.0012, "plan": "experts: expert→8", "mesh": [2, 8]}
    text = PARTS["cases"].show(
        done("cases", tmp_path, PRO, paper_plans={"grid_s": 1165.71e-6, "agent_s": 969.39e-6}, searched_plan=found)
    )
    assert "1.165 ms" in text or "1,165" in text
    assert "+20.3% (published: +20.3%)" in text
    assert "+32.6%" in text
    assert "--pp 16 --batch 4096 --assumptions paper" in text
    assert len(list(case_jobs(Scope()))) == 4 * len(CASES)
    assert PARTS["cases"].show(done("cases", tmp_path, SMALL)) == "None of the cases is about these models."


def test_claims_have_verdicts(tmp_path: Path) -> None:
    scope = Scope(models=("deepseek-v4-flash",), gpus=(64,), hardware=("gb300",))
    scoped = {"tok_s_gpu": 5.0, "routing": 0.4, "batch": 64, "pp": 1}
    text = PARTS["claims"].show(
        done("claims", tmp_path, scope, search_setting=searched(point(64, 620.0, 120e3)), scoped_peak=scoped)
    )
    assert text.count("Verdict:") == 3
    assert "64 GPUs, domains of 8" in text


def test_assumptions_are_told_apart(tmp_path: Path) -> None:
    from rooflang.report.reproduction.attribution import differing

    step_s = {"paper": 1.0, "physical": 1.5, **{f"paper {name}": 1.0 for name in differing()}}
    step_s |= {f"physical {name}": 1.5 for name in differing()}
    step_s |= {"paper kv_append": 1.25, "physical kv_append": 1.2}
    peak_bytes = {name: 2e9 if "receive_buffers" in name else 1e9 for name in step_s}
    found = {"step_s": step_s, "peak_bytes": peak_bytes}
    text = PARTS["assumptions"].show(done("assumptions", tmp_path, SMALL, attributed=found))
    assert "| longer by | +50.0% | +50.0% |" in text
    assert "| `kv_append` | +25.0%, +25.0% |" in text
    assert "| `receive_buffers` | +100.0%, -50.0% |" in text
    assert "Without effect in all of these" in text


def test_needs_are_drawn(tmp_path: Path) -> None:
    text, ran = reproduce(("needs",), tmp_path, calm(), scope=SMALL)
    assert not ran.results
    assert "## What explains it" in text
    assert "A part of the evaluation only: deepseek-v4-flash on 8 GPUs" in text
    for suffix in ("svg", "png"):
        assert (tmp_path / "figures" / f"needs-deepseek-v4-flash.{suffix}").is_file()
        assert f"figures/needs-deepseek-v4-flash.{suffix}" in text


def test_figures_say_what_was_gained_and_where(tmp_path: Path) -> None:
    def result(job: Any) -> dict[str, Any]:
        gain = 1.5 if job.asked["search"] == "egraph" else 1.0
        return searched(point(64, 683.7, 683.7 * gain), point(4096, 500.0, 32000.0 * gain))

    results = {job.name: result(job) for job in PARTS["figures"].jobs(SMALL)}
    text = PARTS["figures"].show(Done(scope=SMALL, results=results, folder=tmp_path))
    assert (
        "| paper | decode | 1 | 2 | 2 | +50.0% | +50.0% | +50.0% | deepseek-v4-flash decode 64k, 8 b300, batch 64 |"
        in text
    )
    assert "inside the axes" in text
    assert (tmp_path / "figures.html").is_file()
    assert {path.name for path in (tmp_path / "figures").glob("*.svg")} == {
        f"decode-{what}-{profile}.svg" for what in ("grid", "search") for profile in ("paper", "physical")
    }


def test_what_failed_is_said_and_the_rest_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**asked: Any) -> None:
        raise GraphError("no such graph")

    monkeypatch.setattr("rooflang.report.reproduction.points.simulate", broken)
    text, ran = reproduce(("points",), tmp_path, calm(), scope=Scope(models=("glm-5.3",), gpus=(8,)), workers=1)
    assert ran.errors
    assert f"**{len(ran.errors)} jobs failed" in text
    assert "no such graph" in text


def test_real_points_of_one_setting(tmp_path: Path) -> None:
    scope = Scope(models=("deepseek-v4-flash",), contexts=(2**16,), stages=("decode",), gpus=(8,), hardware=("gh200",))
    text, ran = reproduce(("points",), tmp_path, calm(), scope=scope, workers=1)
    assert "**2 of 2 (100.0%) agree within 1% in throughput and in interactivity; the largest " in text
    assert "- Published points: 2 of 2 (100.0%) agree within 1% in throughput" in text
    assert "- Minutes of one core: 0." in text
    assert "; by the clock, processes 1: " in text
    after, again = reproduce(("points",), tmp_path, calm(), scope=scope, workers=1)
    assert "by the clock" not in after
    assert again.kept == len(ran.results) == 1


@pytest.mark.slow
def test_a_real_slice_of_the_figures(tmp_path: Path) -> None:
    assert report.PARTS["figures"].draws
    text, ran = reproduce(("figures",), tmp_path, calm(), scope=replace(SMALL, batches=(16, 1024)))
    assert len(ran.results) == 4
    assert "| paper | decode | 1 | 2 | 2 |" in text
    assert "| physical | decode | 1 | 2 | 2 |" in text
