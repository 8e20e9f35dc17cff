"""`rooflang plan`: the whole text, the table alone, JSON, and a notebook's table of the same plan."""

from __future__ import annotations

import json
from pathlib import Path

from rooflang.service import plan_service
from tests.cli.conftest import Run
from tests.service.conftest import CONFIG

ASKED = ("--hardware", "h100", "--gpus", "1", "--isl", "1k", "--osl", "128", "--mode", "aggregated")


def test_text_table_json_and_notebook(run: Run, folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    whole = run("plan", "config.json", *ASKED)
    assert whole.exit_code == 0, whole.stderr
    short = run("plan", "config.json", *ASKED, "--quiet").stdout
    assert short in whole.stdout and short.startswith("service")
    assert len(short.splitlines()) == 2
    told = json.loads(run("plan", "config.json", *ASKED, "--json", "-").stdout)
    assert told["schema"] == "rooflang.service/1"
    plan = plan_service("config.json", hardware="h100", gpus=1, isl=1024, osl=128, mode="aggregated")
    assert plan.best.rate_per_s == told["best"]["rate_per_s"]
    assert repr(plan).splitlines()[2].split()[0] == "aggregated"
    html = plan._repr_html_()
    assert html.startswith("<table>") and f"{plan.best.rate_per_s:,.2f}" in html


def test_what_cannot_be_met_is_code_5(run: Run, folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    outcome = run("plan", "config.json", *ASKED, "--tpot", "1us")
    assert (outcome.exit_code, outcome.stdout) == (5, "")
    assert "the nearest" in outcome.stderr
