"""How a model is stored, by option or in its name; configs that have fields nobody knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from rooflang.models import load

Run = Callable[..., Result]

TASK = ("--hardware", "h200", "--gpus", "4", "--context", "4k")
CONFIGS = Path(__file__).parents[2] / "models" / "configs"


def test_options_are_a_part_of_the_name(run: Run) -> None:
    short, long = (
        json.loads(
            run("optimize", *model, *TASK, "--batch", "8", "--pp", "1", "--search", "grid", "--json", "-").stdout
        )
        for model in (
            ("phi-3-mini:weights=fp8,kv=fp8",),
            ("phi-3-mini", "--weights", "fp8", "--kv", "fp8"),
        )
    )
    assert short["inputs"] == long["inputs"]
    assert short["inputs"]["model"] == "phi-3-mini:weights=fp8,kv=fp8"


def test_the_command_to_repeat_has_the_formats(run: Run) -> None:
    outcome = run("optimize", "phi-3-mini", "--kv", "fp8", *TASK, "--batch", "8", "--pp", "1", "--search", "grid")
    assert "rooflang optimize phi-3-mini:kv=fp8 --hardware h200" in outcome.stdout


def test_a_name_with_formats_can_be_shown(run: Run) -> None:
    text = run("models", "show", "deepseek-v3:weights=nvfp4,kv=fp8").stdout
    assert "35,136 B" in text
    assert "nvfp4" in text


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("phi-3-mini", "--weights", "fp9"), "unknown format of weights 'fp9'"),
        (("phi-3-mini:weights=fp9",), "unknown weight format 'fp9'"),
        (("phi-3-mini", "--kv", "int4"), "unknown format of kv 'int4'"),
        (("deepseek-v4-pro", "--kv", "fp8"), "are those of its config.json"),
        (("model.rl", "--weights", "fp8"), "a graph file says itself how its tensors are stored"),
        (("phi-3-minn:kv=fp8",), "unknown model 'phi-3-minn'"),
    ],
)
def test_formats_that_cannot_be(run: Run, args: tuple[str, ...], says: str) -> None:
    outcome = run("optimize", *args, *TASK)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert says in outcome.stderr


def test_names_tell_how_a_model_is_stored() -> None:
    model = load("llama-3.1-8b").stored(weights="int4")
    assert model.name == "llama-3.1-8b:weights=int4"
    assert load(model.name) == model


def test_a_warning_names_unknown_fields_and_no_line_of_a_program(run: Run, tmp_path: Path) -> None:
    fields = json.loads((CONFIGS / "phi-4.json").read_text(encoding="utf-8"))
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**fields, "attention_magic": 1}), encoding="utf-8")
    outcome = run("models", "show", str(path))
    assert outcome.exit_code == 0
    assert outcome.stderr == f"Warning: {path}: fields that are not known, and may matter: attention_magic\n"
