"""Options that change what is taken for granted: told in text and JSON, refused by name, spelled again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]

FLASH = (
    *("simulate", "deepseek-v4-flash", "--hardware", "b300", "--gpus", "8"),
    *("--context", "64k", "--batch", "64", "--dp", "8"),
)


def test_extensions_are_told_hashed_and_spelled(run: Run, folder: Path) -> None:
    (folder / "load.txt").write_text(", ".join(["1.5", "0.5"] * 128))
    options = ["--draft-tokens", "1", "--accepted-tokens", "1.8", "--expert-histogram", "load.txt"]
    plain = run(*FLASH, "--json", "plain.json")
    outcome = run(*FLASH, *options, "--assume", "kv_append=off", "--json", "out.json")
    assert outcome.exit_code == 0, outcome.output
    title = " ".join(outcome.output.split("\n\n")[0].split())
    assert title.endswith("kv_append off, draft_tokens 1, accepted_tokens 1.8, expert_histogram of 256")
    assert " ".join(options) in " ".join(outcome.output.split())
    told, before = (json.loads((folder / name).read_text()) for name in ("out.json", "plain.json"))
    assert told["inputs"]["changed_assumptions"]["accepted_tokens"] == 1.8
    assert told["inputs"]["hash"] != before["inputs"]["hash"]
    assert "changed_assumptions" not in before["inputs"]
    point = told["point"]
    assert point["tok_s_user"] == pytest.approx(1.8 / point["step_s"])
    assert point["tok_s_gpu"] == pytest.approx(64 * 1.8 / (point["step_s"] * 8))
    assert plain.exit_code == 0
    assert run("verify", "out.json").exit_code == 0


def test_neutral_values_change_nothing(run: Run, folder: Path) -> None:
    for name, options in {"a.json": (), "b.json": ("--assume", "kv_append=on", "--image-tokens", "1024")}.items():
        assert run(*FLASH, *options, "--json", name).exit_code == 0
    assert (folder / "a.json").read_text() == (folder / "b.json").read_text()


def test_a_histogram_is_refused_where_it_is_none(run: Run, folder: Path) -> None:
    (folder / "few.txt").write_text("1 2 3")
    (folder / "words.txt").write_text("1 two 3")
    (folder / "large.txt").write_text("1 " * 2**20)
    says = {
        "few.txt": "choices of 3 experts, and the model has 256",
        "words.txt": "could not convert",
        "large.txt": "larger than",
        "none.txt": "No such file",
    }
    for name, words in says.items():
        outcome = run(*FLASH, "--expert-histogram", name)
        assert (outcome.exit_code, outcome.stdout) == (2, "")
        assert f"--expert-histogram: {words}" in outcome.stderr or words in outcome.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--draft-tokens", "2"], "--accepted-tokens: how many of the drafted tokens"),
        (["--draft-tokens", "2", "--accepted-tokens", "3.5"], "expected: 1 to 3"),
        (["--accepted-tokens", "1.5"], "--accepted-tokens: 1.5 tokens a step with 0 drafted"),
        (["--draft-tokens", "0"], "--draft-tokens: 0 is not possible"),
        (["--expert-zipf", "much"], "--expert-zipf: 'much' is not possible"),
        (["--images", "2"], "--images: deepseek-v4-flash has no vision encoder"),
        (["--assume", "kv_apend=off"], "did you mean kv_append?"),
        (["--assume", "kv_append"], "unknown value of kv_append ''"),
        (["--assume", "routed_dtype=fp16"], "one of bf16, fp8_block"),
    ],
)
def test_what_cannot_be_assumed(run: Run, options: list[str], says: str) -> None:
    outcome = run(*FLASH, *options)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert says in outcome.stderr


def test_a_graph_says_itself_what_a_step_is(run: Run, graph: str) -> None:
    task = ("simulate", graph, "--hardware", "b300", "--gpus", "1")
    for options in (["--draft-tokens", "1", "--accepted-tokens", "1"], ["--images", "1"]):
        outcome = run(*task, *options)
        assert (outcome.exit_code, outcome.stdout) == (2, "")
        assert f"{options[0]}: 1 in a step of the graph mlp" in outcome.stderr
    assert run(*task, "--expert-zipf", "1").exit_code == 0


def test_help_explains_them(run: Run) -> None:
    for command in ("optimize", "simulate"):
        text = run(command, "--help").output
        for option in ("--draft-tokens", "--accepted-tokens", "--expert-zipf", "--expert-histogram", "--images"):
            assert option in text
