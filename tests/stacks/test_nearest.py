"""Nearest plans keep to what a stack can run, and are no better than the optimum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner

import rooflang
from rooflang.cli import program
from rooflang.errors import PlacementError, RooflangError
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.stacks import STACKS, Nearest, Shape, nearest_plans
from rooflang.stacks.shape import shapes
from tests.service.conftest import CONFIG

MIXTRAL = {
    **CONFIG,
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}


@pytest.fixture(scope="module")
def mixtral(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mixtral") / "config.json"
    path.write_text(json.dumps(MIXTRAL), encoding="utf-8")
    return path


ASKED: dict[str, Any] = {"hardware": "h100", "gpus": 4, "context": 4096}


@pytest.fixture(scope="module")
def found(mixtral: Path) -> dict[str, list[Nearest]]:
    result = rooflang.optimize(mixtral, **ASKED, batch=[8, 64])
    problem = Problem.of(mixtral, **ASKED)
    return {
        name: list(nearest_plans(problem, result.frontier, stack, overlap="perfect", watch=Progress()))
        for name, stack in STACKS.items()
    }


@pytest.mark.parametrize("name", STACKS)
def test_no_stack_beats_the_optimum(found: dict[str, list[Nearest]], name: str) -> None:
    assert [one.point.batch for one in found[name]] == [one.optimal.batch for one in found[name]]
    for one in found[name]:
        assert one.loss >= -1e-9
        assert one.shape.gpus == 4
        assert STACKS[name].runs(one.shape)
        assert one.point.mesh == one.shape.mesh


def test_fewer_shapes_are_no_better(found: dict[str, list[Nearest]]) -> None:
    for wide, narrow in (("vllm", "sglang"), ("sglang", "trtllm")):
        for one, other in zip(found[wide], found[narrow]):
            assert one.loss <= other.loss + 1e-9


def test_groups_work_on_requests_of_their_own(mixtral: Path) -> None:
    problem = Problem.of(mixtral, **ASKED)
    shape = Shape(dp=4, tp=1, pp=1, ep=True)
    from rooflang.search.egraph import search_egraph

    (point,) = search_egraph(problem, [1], [64], "perfect", frozenset(), Progress(), fixed=shape.fixed(problem)).points
    assert "attention: batch→4" in point.plan
    assert "experts: expert→4" in point.plan
    assert "ffn→" not in point.plan and "head→" not in point.plan


def test_shapes_fill_the_gpus(mixtral: Path) -> None:
    problem = Problem.of(mixtral, **ASKED)
    found = list(shapes(problem, 2))
    assert {(shape.dp, shape.tp) for shape in found} == {(2, 1), (1, 2)}
    assert {shape.ep for shape in found} == {False, True}


def test_only_caches_that_are_repeated_can_be_shared(mixtral: Path) -> None:
    """vLLM refuses decode context parallelism where tensor parallelism shares out the heads of the cache."""
    assert not any(shape.dcp for shape in shapes(Problem.of(mixtral, **ASKED), 1))
    latent = Problem.of("deepseek-v2-lite", **ASKED)
    assert {(shape.dp, shape.tp) for shape in shapes(latent, 1) if shape.dcp} == {(2, 2), (1, 4)}


@pytest.mark.parametrize(
    ("error", "said"), [(KeyboardInterrupt(), "not complete"), (RooflangError("too large"), "has no flags for a plan")]
)
def test_what_was_found_is_told_if_there_is_no_nearest_plan(
    mixtral: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, said: str
) -> None:
    def failing(*given: object, **more: object) -> NoReturn:
        raise error

    monkeypatch.setattr("rooflang.stacks.nearest.search_egraph", failing)
    arguments = ["optimize", str(mixtral), "--hardware", "h100", "--gpus", "1", "--context", "4k", "--batch", "8"]
    outcome = CliRunner().invoke(program, [*arguments, "--emit", "vllm"], catch_exceptions=False)
    assert outcome.exit_code == 0
    assert "tok/s/GPU" in outcome.stdout and "vllm serve" not in outcome.stdout
    assert said in outcome.stderr


def test_a_graph_is_refused_before_it_is_searched() -> None:
    outcome = CliRunner().invoke(program, ["optimize", "no.rl", "--hardware", "h100", "--gpus", "2", "--emit", "vllm"])
    assert outcome.exit_code == 2
    assert "a stack runs models" in outcome.stderr


def test_a_stack_without_a_plan_says_so(mixtral: Path) -> None:
    problem = Problem.of("llama-3.1-405b", **{**ASKED, "gpus": 1})
    result = rooflang.optimize(mixtral, **{**ASKED, "gpus": 1}, batch=[1])
    with pytest.raises(PlacementError, match="no flags for a plan"):
        list(nearest_plans(problem, result.frontier[:0], STACKS["vllm"], overlap="perfect", watch=Progress()))


def test_emit(mixtral: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    arguments = ["optimize", str(mixtral), "--hardware", "h100", "--gpus", "2", "--context", "4k", "--batch", "8"]
    outcome = CliRunner().invoke(program, [*arguments, "--emit", "vllm", "--json", str(target)], catch_exceptions=False)
    assert outcome.exit_code == 0
    assert 'vllm serve "$MODEL" --tensor-parallel-size' in outcome.stdout
    (near,) = json.loads(target.read_text(encoding="utf-8"))["nearest"]
    assert near["version"] == "vLLM 0.11"
    assert near["loss"] >= -1e-9


def test_emit_knows_its_stacks(mixtral: Path) -> None:
    arguments = ["optimize", str(mixtral), "--hardware", "h100", "--gpus", "2", "--context", "4k", "--emit", "vlm"]
    outcome = CliRunner().invoke(program, arguments)
    assert outcome.exit_code == 2
    assert "did you mean vllm" in outcome.stderr


def test_a_plan_that_waits_for_more_stages_is_not_nearest_to_one_that_does_not(tmp_path: Path) -> None:
    """Of one batch size a frontier has the plan that is fastest for a user and that of most throughput, in stages."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, "num_hidden_layers": 6}), encoding="utf-8")
    asked: dict[str, Any] = {"hardware": "h100", "gpus": 6, "context": 4096}
    points = rooflang.optimize(path, **asked, batch=[6]).frontier
    assert len({point.pp for point in points}) == 2
    problem = Problem.of(path, **asked)
    for one in nearest_plans(problem, points, STACKS["vllm"], overlap="perfect", watch=Progress()):
        assert one.point.pp == one.optimal.pp
        assert one.loss >= -1e-9
