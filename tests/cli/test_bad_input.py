"""Bad input: what is wrong and where, an exit code, no traceback, no output and no file left behind.

`run` raises what is no exit, so that a traceback fails each of these tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


def options(model: str = "deepseek-v4-pro", **values: str) -> list[str]:
    """A command line that works, except for what `values` change."""
    words = {"hardware": "b300", "gpus": "8", "context": "64k"} | values
    return [model, *(word for name, value in words.items() for word in (f"--{name.replace('_', '-')}", value))]


def refused(run: Run, folder: Path, *arguments: str, code: int = 2) -> str:
    """The error text of a command that fails, writes nothing to standard output and leaves no file."""
    before = {path.name for path in folder.iterdir()}
    outcome = run(*arguments, "--json", "out.json")
    assert outcome.exit_code == code, outcome.output
    assert outcome.stdout == ""
    assert outcome.stderr.startswith(("Error: ", "Usage: "))
    assert {path.name for path in folder.iterdir()} == before
    return outcome.stderr


UNKNOWN = [
    (options("deepseek-v4-por"), "unknown model 'deepseek-v4-por'", "deepseek-v4-pro"),
    (options(hardware="b301"), "--hardware: unknown hardware 'b301'", "b300"),
    (options(stage="decoding"), "--stage: unknown stage 'decoding'", "decode"),
    (options(overlap="perfekt"), "--overlap: unknown overlap 'perfekt'", "perfect"),
    (options(assumptions="papers"), "--assumptions: unknown assumption profile 'papers'", "paper"),
]


@pytest.mark.parametrize("command", ["optimize", "simulate"])
@pytest.mark.parametrize(("arguments", "what", "near"), UNKNOWN, ids=[near for _, _, near in UNKNOWN])
def test_unknown_names_with_the_nearest(
    run: Run, folder: Path, command: str, arguments: Sequence[str], what: str, near: str
) -> None:
    text = refused(run, folder, command, *arguments)
    assert what in text
    assert f"hint: did you mean {near}" in text


def test_unknown_rule_and_search(run: Run, folder: Path) -> None:
    assert "did you mean split_kernel" in refused(run, folder, "optimize", *options(disable_rule="split-kernel"))
    assert "did you mean egraph" in refused(run, folder, "optimize", *options(search="graph"))


SIMULATE = {
    "GPUs that do not factor": (options(gpus="12", dp="12", batch="12"), "do not factor: 12 into nvlink domains"),
    "not the product": (options(dp="4", batch="8"), "DP 4 × CP 1 × PP 1 = 4 GPUs\n  expected: a product of 8"),
    "partition": (options(dp="4", pp="2", batch="8", partition="30,30"), "has 60 layers\n  expected: positive"),
    "unreadable partition": (options(dp="4", pp="2", partition="30;31"), "cannot read the partition '30;31'"),
    "more stages than layers": (options(gpus="64", pp="64"), "64 pipeline stages for 61 layers"),
    "context 0": (options(context="0", dp="8", batch="8"), "--context: 0 is not possible"),
    "context too long": (options(context="1025k", dp="8", batch="8"), "expected: at most 1,048,576"),
    "batch below DP": (options(dp="8", batch="4"), "--batch: 4 requests do not divide over 8 ranks"),
    "batch 0": (options(dp="8", batch="0"), "--batch: 0 is not possible"),
    "batch of no number": (options(dp="8", batch="many"), "--batch: cannot read the count 'many'"),
    "GPUs 0": (options(gpus="0"), "--gpus: 0 is not possible"),
}


@pytest.mark.parametrize(("arguments", "what"), SIMULATE.values(), ids=SIMULATE)
def test_simulate_refuses(run: Run, folder: Path, arguments: Sequence[str], what: str) -> None:
    assert what in refused(run, folder, "simulate", *arguments)


def test_a_model_needs_a_context(run: Run, folder: Path) -> None:
    text = refused(run, folder, "simulate", "deepseek-v4-pro", "--hardware", "b300", "--gpus", "8")
    assert "Missing option '--context'" in text


def test_optimize_refuses_a_pipeline_that_does_not_divide(run: Run, folder: Path) -> None:
    text = refused(run, folder, "optimize", *options(pp="3"))
    assert "--pp: 3 pipeline stages on 8 GPUs for 61 layers" in text


def test_a_dtype_without_a_peak(run: Run, folder: Path) -> None:
    from rooflang.hw import schema

    preset = (Path(schema.__file__).parent / "presets" / "b300.toml").read_text(encoding="utf-8")
    (folder / "old.toml").write_text(preset.replace('fp4 = "13500 TFLOP/s", ', ""), encoding="utf-8")
    for command in ("optimize", "simulate"):
        text = refused(run, folder, command, *options(hardware="old.toml"))
        assert "has no peak rate for fp4" in text


@pytest.mark.parametrize("command", ["optimize", "simulate"])
@pytest.mark.parametrize(
    ("line", "instead", "what"),
    [
        ("matmul(x, w1)", "matmul(down, w1)", "cycle"),
        ("matmul(x, w1)", "matmul(y, w1)", "'y'"),
        ("[batch ffn] bf16\nblock", "[batch fnn] bf16\nblock", "'fnn'"),
        ("bf16", "bf17", "bf17"),
        ("graph mlp", "grph mlp", "mlp.rl:1"),
    ],
    ids=["cycle", "dangling tensor", "unknown dim", "unknown dtype", "no graph"],
)
def test_a_graph_file_that_is_not_well_formed(
    run: Run, folder: Path, graph: str, command: str, line: str, instead: str, what: str
) -> None:
    text = (folder / graph).read_text(encoding="utf-8")
    assert line in text
    (folder / graph).write_text(text.replace(line, instead), encoding="utf-8")
    error = refused(run, folder, command, graph, "--hardware", "b300", "--gpus", "1")
    assert what in error
    assert "mlp" in error


@pytest.mark.parametrize("name", ["none.rl", "none.json", "."])
def test_a_model_that_is_not_there(run: Run, folder: Path, name: str) -> None:
    assert refused(run, folder, "simulate", *options(name))


@pytest.mark.parametrize("text", ["{", "[]", '{"model_type": "gpt5"}', "{}"])
def test_a_config_that_is_none(run: Run, folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    assert "config.json" in refused(run, folder, "simulate", *options("config.json"))


def test_a_point_that_does_not_fit_says_by_how_much_and_why(run: Run, folder: Path) -> None:
    text = refused(run, folder, "simulate", *options(dp="8", batch="64k"), code=3)
    assert "of 288 GB" in text
    assert "context_cache (" in text


def test_a_model_that_fits_at_no_batch_says_by_how_much_and_why(run: Run, folder: Path) -> None:
    arguments = options(hardware="h200", gpus="2")
    text = refused(run, folder, "optimize", *arguments, "--search", "grid", code=3)
    assert "no plan found for deepseek-v4-pro fits at a batch size tried" in text
    assert "of 144 GB" in text
    assert "experts_w13 (" in text
    assert "hint: use more GPUs" in text


def test_a_path_that_cannot_be_written_is_refused_before_any_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*arguments: object, **options: object) -> None:
        raise AssertionError("work was begun")

    monkeypatch.setattr("rooflang.search.api.simulate", work)
    outcome = run("simulate", *options(), "--json", "no/out.json")
    assert outcome.exit_code == 2
    assert "--json: cannot write 'no/out.json'" in outcome.stderr


def test_a_result_does_not_take_the_place_of_what_it_is_made_of(run: Run, graph: str, folder: Path) -> None:
    text = (folder / graph).read_text(encoding="utf-8")
    asked = [graph, "--hardware", "b300", "--gpus", "2"]
    outcome = run("optimize", *asked, "--json", f"./{graph}")
    assert outcome.exit_code == 2
    assert f"--json: '{graph}' is taken by model" in outcome.stderr
    outcome = run("simulate", *asked, "--dp", "2", "--batch", "64", "--json", "out.json", "--trace", "out.json")
    assert outcome.exit_code == 2
    assert "'out.json' is taken by" in outcome.stderr
    assert (folder / graph).read_text(encoding="utf-8") == text
    assert [path.name for path in folder.iterdir()] == [graph]


def test_a_hardware_file_that_is_not_well_formed(run: Run, folder: Path) -> None:
    (folder / "new.toml").write_text("name = 3\n", encoding="utf-8")
    assert "new.toml" in refused(run, folder, "simulate", *options(hardware="new.toml"))
    outcome = run("hardware", "check", "new.toml")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
