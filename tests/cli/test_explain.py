"""`rooflang explain`: what a model needs per token."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]

ASKED = ("explain", "deepseek-v4-flash", "--context", "64k,4k", "--batch", "256,1")


def test_a_row_for_each_context_and_batch(run: Run) -> None:
    outcome = run(*ASKED)
    assert outcome.exit_code == 0
    assert [line.split()[:2] for line in outcome.stdout.splitlines() if line.startswith((" ", "4", "6"))][:5] != []
    for words in ("weights", "KV cache", "FLOP/byte", "share of bytes", "share of FLOPs", "routing"):
        assert words in outcome.stdout
    assert "tok/s" not in outcome.stdout


def test_a_platform_adds_the_time_of_one_gpu(run: Run) -> None:
    outcome = run(*ASKED, "--hardware", "gb300")
    assert "memory" in outcome.stdout
    assert "NVIDIA GB300" in outcome.stdout


def test_json_has_the_numbers(run: Run) -> None:
    outcome = run(*ASKED, "--assumptions", "paper", "--json", "-")
    told = json.loads(outcome.stdout)
    assert told["schema"] == "rooflang.needs/1"
    assert [(step["context"], step["batch"]) for step in told["steps"]] == [
        (4096, 1),
        (4096, 256),
        (65536, 1),
        (65536, 256),
    ]
    for step in told["steps"]:
        assert sum(part["bytes"] for part in step["parts"].values()) == pytest.approx(step["total"]["bytes"])


def test_a_figure_is_drawn(run: Run, folder: Path) -> None:
    assert run(*ASKED, "--plot", "needs.svg").exit_code == 0
    assert "arithmetic intensity" in (folder / "needs.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("explain", "mlp.rl", "--context", "64k"), "MODEL"),
        (("explain", "deepseek-v4-flash"), "--context"),
        ((*ASKED, "--plot", "needs.txt"), "--plot"),
        ((*ASKED, "--hardware", "b301"), "b300"),
        ((*ASKED, "--batch", "0"), "--batch"),
    ],
)
def test_what_cannot_be_explained_is_refused(run: Run, words: tuple[str, ...], said: str) -> None:
    outcome = run(*words)
    assert outcome.exit_code == 2
    assert said in outcome.stderr
