"""Saved results are checked from the file alone; whatever is changed in one is found, and named."""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rooflang.errors import PlacementError, RooflangError, UnknownNameError, ValueRangeError
from rooflang.ir.text import dump
from rooflang.place.certificate import replay
from rooflang.search import validate
from rooflang.search.api import optimize, simulate
from rooflang.search.inputs import digest, hashed_inputs
from rooflang.search.point import RESULT_SCHEMA
from rooflang.search.problem import Problem
from rooflang.search.verify import certified, verify_plan

from .toys import perceptron, small_flash

Json = dict[str, Any]


@pytest.fixture(scope="module")
def flash() -> Json:
    """A grid frontier of six layers of DeepSeek V4 Flash on 8 GPUs, through JSON."""
    found = optimize(small_flash(), hardware="b300", gpus=8, context=8192, batch=[8, 64], search="grid")
    data: Json = json.loads(json.dumps(found.to_json()))
    return data


@pytest.fixture(scope="module")
def configuration() -> Json:
    """One configuration of it that cuts requests and context."""
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, context=8192)
    found = simulate(small_flash(), hardware="b300", gpus=8, context=8192, batch=16, dp=2, cp=4)
    data = {"schema": RESULT_SCHEMA, "inputs": hashed_inputs(problem, overlap="perfect"), "point": found.to_json()}
    read: Json = json.loads(json.dumps(data))
    return read


def saved(data: Json, folder: Path) -> Path:
    path = folder / "result.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_saved_frontier_is_accepted(flash: Json, tmp_path: Path) -> None:
    told: list[str] = []
    found = verify_plan(saved(flash, tmp_path), model=small_flash(), say=told.append)
    assert len(found.points) == len(flash["frontier"]) == len(told) > 0
    assert [point.batch for point in found.points] == [point["batch"] for point in flash["frontier"]]
    assert all(point.steps > 50 and point.evaluated["verdict"] == "equal" for point in found.points)


def test_a_graph_file_in_a_fresh_process(tmp_path: Path) -> None:
    graph, path = tmp_path / "perceptron.rl", tmp_path / "out.json"
    graph.write_text(dump(perceptron()), encoding="utf-8")
    found = optimize(graph, hardware="gb300", gpus=4, batch=[64, 128], search="grid")
    path.write_text(json.dumps(found.to_json()), encoding="utf-8")
    with pytest.raises(UnknownNameError, match="A file is named by --model FILE") as caught:
        verify_plan(path)
    assert "deepseek" not in caught.value.expected  # the list of all models tells nothing about a file of one's own
    code = f"print(len(verify_plan({str(path)!r}, model={str(graph)!r}).points))"
    code = f"from rooflang.search.verify import verify_plan; {code}"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(outcome.stdout) == len(found.frontier)


def _kernel(point: Json, kind: str) -> Json:
    """The script of the first kernel of an operator kind."""
    graph = Problem.of(small_flash(), hardware="b300", gpus=8, context=8192).graph
    names = {op.output.name for op in graph.ops if op.kind == kind}
    kernels = [k for each in point["certificate"]["kinds"] for k in each["kernels"] if k["kernel"] in names]
    found: Json = kernels[0]
    return found


def _splits(point: Json) -> list[Json]:
    steps = [s for kind in point["certificate"]["kinds"] for k in kind["kernels"] for s in k["steps"]]
    return [step for step in steps if step["primitive"] == "split_kernel"]


def _drop_path(point: Json) -> None:
    reads = [r for kind in point["certificate"]["kinds"] for k in kind["kernels"] for r in k["reads"] if r["steps"]]
    reads[0]["steps"] = []


def _other_dim(point: Json) -> None:
    _splits(point)[0]["dim"] = "nonsense"


def _other_axis(point: Json) -> None:
    _splits(point)[0]["axis"] = 7


def _undecided(point: Json) -> None:
    _kernel(point, "embed")["steps"] = []


def _dup_of_append(point: Json) -> None:
    kernel = _kernel(point, "kv_append")
    kernel["steps"] = [{**step, "primitive": "dup_kernel", "dim": ""} for step in kernel["steps"]]


#: What is done to a point → what the refusal says.
TAMPERED: dict[str, tuple[Callable[[Json], object], str]] = {
    "a faster step": (lambda p: p.update(step_s=p["step_s"] / 2), "step_s is"),
    "more throughput": (lambda p: p.update(tok_s_gpu=p["tok_s_gpu"] * 1.0001), "tok_s_gpu is"),
    "less memory": (lambda p: p.update(peak_bytes=p["peak_bytes"] - 1), "peak_bytes is"),
    "a smaller batch": (lambda p: p.update(batch=p["batch"] // 2), "tok_s_gpu is|batch|divide"),
    "another bottleneck": (lambda p: p.update(bottleneck="luck"), "bottleneck is 'luck'"),
    "other words": (lambda p: p.update(plan="attention: magic"), "plan is 'attention: magic'"),
    "a number as text": (lambda p: p.update(batch=str(p["batch"])), "batch is '"),
    "one field more": (lambda p: p.update(bonus=1), "'bonus'"),
    "one field less": (lambda p: p.pop("groups_s"), "'groups_s'"),
    "no certificate": (lambda p: p.pop("certificate"), "certificate is None"),
    "a bound above the step": (lambda p: p.update(bound_s=2 * p["step_s"], gap=-0.5), "bound_s"),
    "a collective left out": (_drop_path, "laid"),
    "a cut that no signature has": (_other_dim, "nonsense"),
    "an axis that is not there": (_other_axis, "axis 7"),
    "an axis left undecided": (_undecided, "undecided"),
    "a copy of an append": (_dup_of_append, "side effects"),
    "another graph": (lambda p: p["certificate"].update(graph="0" * 16), "another graph"),
    "a verdict of another sort": (lambda p: p["certificate"].update(evaluated={"verdict": "fine"}), "evaluated"),
    "an unknown field in the script": (lambda p: p["certificate"].update(trust="me"), "trust"),
}


def test_a_configuration_is_accepted(configuration: Json, tmp_path: Path) -> None:
    (found,) = verify_plan(saved(configuration, tmp_path), model=small_flash()).points
    assert "context→4" in found.plan


@pytest.mark.parametrize("name", TAMPERED)
def test_what_is_changed_is_named(name: str, configuration: Json, tmp_path: Path) -> None:
    change, says = TAMPERED[name]
    data = copy.deepcopy(configuration)
    change(data["point"])
    with pytest.raises(RooflangError, match=says) as refused:
        verify_plan(saved(data, tmp_path), model=small_flash())
    assert str(refused.value).startswith("point")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(schema="rooflang.result/2"), "rooflang.result/2"),
        (lambda d: d.update(frontier={}), "frontier is"),
        (lambda d: d["frontier"].insert(0, 7), "point 0 is 7"),
        (lambda d: d.pop("inputs"), "inputs is None"),
        (lambda d: d["inputs"].update(gpus="8"), "gpus is '8'"),
        (lambda d: d["inputs"].update(gpus=True), "gpus is True"),
        (lambda d: d["inputs"].update(hash="0"), "another hash"),
        (lambda d: d["inputs"].update(hardware="gb300"), "another cluster"),
        (lambda d: d["inputs"].update(context=4096), "another graph"),
        (lambda d: d["inputs"].update(assumptions="paper"), "another graph"),
    ],
)
def test_inputs_have_to_be_those_of_the_result(
    change: Callable[[Json], object], says: str, flash: Json, tmp_path: Path
) -> None:
    data = copy.deepcopy(flash)
    change(data)
    with pytest.raises(RooflangError, match=says):
        verify_plan(saved(data, tmp_path), model=small_flash())


def test_inputs_that_agree_with_each_other_do_not_make_a_result_right(flash: Json, tmp_path: Path) -> None:
    """Another overlap, with a fresh hash: the numbers do not come out."""
    data = copy.deepcopy(flash)
    data["inputs"]["overlap"] = "none"
    data["inputs"]["hash"] = digest({k: v for k, v in data["inputs"].items() if k != "hash"})
    with pytest.raises(PlacementError):
        verify_plan(saved(data, tmp_path), model=small_flash())


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"rooflang.result/1"', "\x00"])
def test_a_file_that_is_no_result(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueRangeError):
        verify_plan(path)
    with pytest.raises(ValueRangeError, match="cannot read"):
        verify_plan(tmp_path / "missing.json")


def test_a_frontier_says_on_what_its_plans_were_evaluated(flash: Json) -> None:
    for point in flash["frontier"]:
        said = point["certificate"]["evaluated"]
        assert said["verdict"] == "equal"
        assert set(said) == {"verdict", "arithmetic", "dims", "mesh", "seed"}
        assert math.prod(said["mesh"]) <= 8


def test_certificates_say_on_what_plans_were_evaluated() -> None:
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, context=8192)
    found = optimize(small_flash(), hardware="b300", gpus=8, context=8192, batch=[64], search="grid")
    points = certified(problem, found.frontier, seed=5)
    for before, after in zip(found.frontier, points, strict=True):
        evaluated = after.certificate["evaluated"]
        assert evaluated["verdict"] == "equal"
        assert evaluated["seed"] == 5
        assert evaluated["arithmetic"] == ["exact", "float64"]
        plans = [replay(p.certificate, problem.blocks, problem.cluster) for p in (before, after)]
        assert plans[0] == plans[1]


def test_equal_plans_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, context=8192)
    found = optimize(small_flash(), hardware="b300", gpus=8, context=8192, batch=[64], search="grid")
    calls = []
    true = validate.evaluated
    monkeypatch.setattr(validate, "evaluated", lambda *a, **k: calls.append(a) or true(*a, **k))
    certified(problem, [found.frontier[0]] * 3, seed=77)
    assert len(calls) == 1
