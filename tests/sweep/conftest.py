"""A sweep of a graph of two layers that takes a second, and what its store has to hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflang.ir.text import dump
from rooflang.sweep import Store, run_sweep

from ..search.toys import perceptron

GRAPH = dump(perceptron())

#: 15 cases of 5 searches; of some the answer is that there is none.
SPEC = """\
models = ["mlp.rl"]

[[clusters]]
hardware = "b300"
gpus = [1, 2, 4]
gpu_hour_usd = 3

[[clusters]]
hardware = "gb300"
gpus = [4]

[[clusters]]
hardware = "gb300"
max_gpus = 8

[[objectives]]

[[objectives]]
objective = "throughput"
min_user = 9e5

[[objectives]]
objective = "latency"
max_tpot = "500 ns"

[search]
batch = [8, 64]
pp = 1
"""

CASES = 15


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """The file of the sweep, its graph beside it."""
    (tmp_path / "mlp.rl").write_text(GRAPH, encoding="utf-8")
    path = tmp_path / "study.toml"
    path.write_text(SPEC, encoding="utf-8")
    return path


def contents(path: Path) -> list[tuple[str, ...]]:
    """Everything that a store holds but how long it took."""
    with Store(path, make=False) as store:
        return [(row.key, row.asked, row.outcome, row.error, row.result) for row in store.rows()]


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, ...]]:
    """What the store of an uninterrupted sweep holds."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "mlp.rl").write_text(GRAPH, encoding="utf-8")
    (folder / "study.toml").write_text(SPEC, encoding="utf-8")
    summary = run_sweep(folder / "study.toml")
    assert (summary.cases, summary.added, summary.crashes) == (CASES, CASES, {})
    return contents(summary.store)
