"""`rooflang import` and `rooflang validate`, on a recorded program and a recorded run of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from rooflang.ir.text import read

Run = Callable[..., Result]

DATA = Path(__file__).parents[1] / "importers" / "data"


@pytest.fixture
def graph_file(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "model.rl"
    assert run("import", str(DATA / "two-layers.json"), "--output", str(path)).exit_code == 0
    return path


def test_a_record_becomes_a_graph(run: Run, graph_file: Path) -> None:
    assert read(graph_file).sizes["head"] == 100
    outcome = run("import", str(DATA / "two-layers.json"))
    assert outcome.exit_code == 0
    assert "5,128,192, the same as PyTorch's counter" in outcome.stdout


def test_facts_as_json_and_the_record_again(run: Run, tmp_path: Path) -> None:
    record = tmp_path / "again.json"
    source = str(DATA / "two-layers.json")
    outcome = run("import", source, "--json", "-", "--record", str(record), "--dims", "ids=batch,seq")
    found = json.loads(outcome.stdout)
    assert found["flops"] == {"product": 5_128_192, "attention": 262_144}
    assert found["torch_flops"] == {"product": 5_128_192, "attention": 262_144, "other": 0}
    assert found["opaque"] == {}
    assert run("import", str(record), "--json", "-").stdout == outcome.stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--dims", "ids"], "cannot read 'ids'"),
        (["--dims", "ids=Batch,Seq"], "in lower case"),
        (["--dims", "other=batch,seq"], "there is no input 'other'"),
        (["--output", "no/such/folder/x.rl"], "cannot write"),
    ],
)
def test_options_that_cannot_be_used(run: Run, args: list[str], says: str) -> None:
    outcome = run("import", str(DATA / "two-layers.json"), *args)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert says in outcome.stderr


def test_sources_that_are_none(run: Run, tmp_path: Path) -> None:
    for source in ("model.onnx", str(tmp_path / "none.json")):
        assert run("import", source).exit_code == 2


@pytest.mark.parametrize("trace", ["profile.json", "execution.json"])
def test_a_graph_and_its_run_agree(run: Run, graph_file: Path, trace: str) -> None:
    outcome = run("validate", str(graph_file), "--trace", str(DATA / trace))
    assert outcome.exit_code == 0
    assert outcome.stdout.rstrip().endswith("FLOPs differ by 0.00% at most")


def test_another_model_is_told_by_its_shapes(run: Run) -> None:
    trace = str(DATA / "profile.json")
    outcome = run("validate", "phi-3-mini", "--context", "64", "--trace", trace)
    assert outcome.exit_code == 2
    assert "products of" in outcome.stdout
    assert "differ by" in outcome.stderr
    found = json.loads(run("validate", "phi-3-mini", "--context", "64", "--trace", trace, "--json", "-").stdout)
    assert found["difference"] > 0.5


def test_a_model_needs_a_context(run: Run) -> None:
    outcome = run("validate", "phi-3-mini", "--trace", str(DATA / "profile.json"))
    assert outcome.exit_code == 2
    assert "--context" in outcome.stderr
