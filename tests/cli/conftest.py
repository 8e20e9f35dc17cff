"""Running the command line in this process, in an empty folder, and a graph that is quick to work with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rooflang.cli import program

Run = Callable[..., Result]

GRAPH = """\
graph mlp
dim batch 64
dim hidden 1024
dim ffn 4096
input x [batch hidden] bf16
weight w1 [hidden ffn] bf16
weight w2 [ffn hidden] bf16
block layers.0
op up = matmul(x, w1) [batch ffn] bf16
block layers.1
op down = matmul(up, w2) [batch hidden] bf16
out down
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder that the commands run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """`run("simulate", …)`; an exception that is no exit is raised again, so that a traceback fails the test."""

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(program, list(arguments), prog_name="rooflang", catch_exceptions=False)

    return invoke


@pytest.fixture
def graph(folder: Path) -> str:
    """The name of a file with a graph of two layers that is no transformer, in the folder that the commands run in."""
    (folder / "mlp.rl").write_text(GRAPH, encoding="utf-8")
    return "mlp.rl"
