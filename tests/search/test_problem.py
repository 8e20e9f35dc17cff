"""Problems: from names, files and records; what a graph says itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.errors import GraphError, HardwareError, UnknownNameError, ValueRangeError
from rooflang.hw import Cluster, Mesh
from rooflang.ir import GraphBuilder
from rooflang.ir.text import dump
from rooflang.models import Workload, load
from rooflang.search.problem import Problem

from .toys import perceptron, stencil

FLASH = "deepseek-v4-flash"


def test_a_model_is_built_for_one_request() -> None:
    problem = Problem.of(FLASH, hardware="b300", gpus=8, stage="decode", context=4096)
    assert (problem.name, problem.stage, problem.context, problem.tokens) == (FLASH, "decode", 4096, 1)
    assert (problem.own_batch, problem.has_batch) == (1, True)
    assert problem.assumptions is PHYSICAL
    assert (problem.cluster.gpus, problem.cluster.platform.name) == (8, "b300")
    assert len(problem.blocks.sequence) == 45


def test_a_prompt_counts_all_its_tokens() -> None:
    assert Problem.of(FLASH, hardware="b300", gpus=8, stage="prefill", context=8192).tokens == 8192


def test_records_are_taken_as_they_are() -> None:
    cluster = Cluster.of("h200", 16)
    taken = replace(PAPER, name="mine")
    problem = Problem.of(load(FLASH), hardware=cluster, context=4096, assumptions=taken)
    assert problem.cluster is cluster and problem.assumptions is taken and problem.name == FLASH
    graph = perceptron()
    assert Problem.of(graph, hardware=cluster).graph == graph
    backwards = replace(graph, ops=graph.ops[::-1])
    assert Problem.of(backwards, hardware=cluster).graph == graph


def test_a_profile_changes_the_graph() -> None:
    paper, physical = (
        Problem.of(FLASH, hardware="b300", gpus=8, context=4096, assumptions=p) for p in ("paper", "physical")
    )
    assert len(paper.graph.ops) < len(physical.graph.ops)


def test_a_graph_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "perceptron.rl"
    path.write_text(dump(perceptron()), encoding="utf-8")
    for name in (path, str(path)):
        problem = Problem.of(name, hardware="b300", gpus=8)
        assert problem.graph == perceptron()
        assert (problem.name, problem.tokens, problem.stage, problem.own_batch) == ("perceptron", 1, "decode", 64)
    with pytest.raises(GraphError, match="cannot be read"):
        Problem.of(tmp_path / "none.rl", hardware="b300", gpus=8)


def test_a_model_written_as_a_graph_is_the_same_problem(tmp_path: Path) -> None:
    """A prefill graph says by its dim `seq` how many tokens of a request it reads."""
    for stage, context in (("prefill", 4096), ("decode", 4096)):
        graph = load(FLASH).build(Workload(stage=stage, context=context, batch=1), PHYSICAL)  # type: ignore[arg-type]
        path = tmp_path / "flash.rl"
        path.write_text(dump(graph), encoding="utf-8")
        model = Problem.of(FLASH, hardware="b300", gpus=8, stage=stage, context=context)
        again = Problem.of(path, hardware="b300", gpus=8)
        assert (again.tokens, again.stage) == (model.tokens, model.stage)
        assert again.graph.fingerprint == model.graph.fingerprint


def test_a_graph_without_a_batch_has_one_size() -> None:
    problem = Problem.of(stencil(), hardware="b300", gpus=1)
    assert (problem.has_batch, problem.own_batch, problem.tokens) == (False, 1, 1)
    assert problem.check_batch(1) == 1
    with pytest.raises(ValueRangeError, match="stencil has no dim 'batch'"):
        problem.check_batch(2)


def test_batches_below_one_are_refused() -> None:
    problem = Problem.of(perceptron(), hardware="b300", gpus=8)
    assert problem.check_batch(64) == 64
    for batch in (0, -4):
        with pytest.raises(ValueRangeError, match=f"batch {batch}"):
            problem.check_batch(batch)


def test_costs_take_any_batch() -> None:
    problem = Problem.of(perceptron(), hardware="b300", gpus=8, assumptions="paper")
    mesh = Mesh.lay(problem.cluster, [8])
    assert problem.cost(mesh, 16).sizes["batch"] == 16
    assert problem.cost(mesh, np.array([8, 16])).sizes["batch"].tolist() == [8, 16]
    assert problem.cost(mesh, 16).assumptions is PAPER
    assert "batch" not in Problem.of(stencil(), hardware="b300", gpus=8).cost(mesh, 16).sizes


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="model"):
        Problem.of("deepseek-v9", hardware="b300", gpus=8, context=4096)
    with pytest.raises(UnknownNameError, match="hardware"):
        Problem.of(FLASH, hardware="b3000", gpus=8, context=4096)
    with pytest.raises(UnknownNameError, match="stage"):
        Problem.of(FLASH, hardware="b300", gpus=8, stage="training", context=4096)
    with pytest.raises(UnknownNameError, match="profile"):
        Problem.of(FLASH, hardware="b300", gpus=8, context=4096, assumptions="optimistic")
    with pytest.raises(ValueRangeError):
        Problem.of(FLASH, hardware="b300", gpus=8)


def test_a_device_has_to_know_every_rate(tmp_path: Path) -> None:
    cluster = Cluster.of("b300", 8)
    slow = replace(cluster, device=replace(cluster.device, peaks={"bf16": 1e12}))
    with pytest.raises(HardwareError, match="no peak rate for fp32, which stencil computes in") as caught:
        Problem.of(stencil(), hardware=slow)
    assert caught.value.expected == "a device with peaks for fp32"
    assert Problem.of(perceptron(), hardware=slow).graph.name == "perceptron"


def test_what_nothing_uses_is_refused() -> None:
    g = GraphBuilder("idle", batch=8, hidden=4)
    x = g.input("x", "batch hidden")
    y = g.op("y", "activation", [x], "batch hidden")
    g.op("z", "activation", [y], "batch hidden")
    with pytest.raises(GraphError, match="z makes 'z', which nothing reads and which is no output") as caught:
        Problem.of(g.build(y), hardware="b300", gpus=8)
    assert caught.value.where == "idle"
    with pytest.raises(GraphError, match="there is no operator"):
        Problem.of(GraphBuilder("empty", batch=8).build(), hardware="b300", gpus=8)
