"""Prefill and decode on GPUs of their own, by placement alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rooflang.errors import ValueRangeError
from rooflang.search.disaggregated import Disaggregated, disaggregate

from .toys import small_flash


@pytest.fixture(scope="module")
def found() -> Disaggregated:
    return disaggregate(small_flash(), hardware="b300", gpus=2, context=8192, batch=4)


def test_halves_lie_on_disjoint_gpus(found: Disaggregated) -> None:
    plan = found.prepared.plan
    assert len(plan.stages) == 2
    assert {label.split(".")[0] for label in plan.stages[0]} == {"prefill"}
    assert {label.split(".")[0] for label in plan.stages[1]} == {"decode"}
    assert plan.mesh.gpus == 1
    assert found.point.gap is not None and found.point.gap < 0.01
    for stage, half in ((0, "prefill."), (1, "decode.")):
        names = {leaf.name for leaf in found.prepared.placed.residents if leaf.stage == stage}
        assert names and all(name.startswith(half) for name in names)


def test_caches_cross_the_fabric_and_the_trace_shows_them(found: Disaggregated, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    found.prepared.write_trace(path, overlap="none")
    events = [e for e in json.loads(path.read_text(encoding="utf-8"))["traceEvents"] if e.get("ph") == "X"]
    sends = [e for e in events if e["name"].endswith(" send")]
    graph = found.prepared.problem.graph
    caches = {t.name for op in graph.ops for t in op.operands if op.name.startswith("decode.")} & {
        op.output.name for op in graph.ops if op.name.startswith("prefill.")
    }
    assert {e["name"].removesuffix(" send") for e in sends} == caches
    assert sum(e["dur"] for e in sends) == pytest.approx(1e6 * found.transfer_s, rel=1e-3)
    handed = sum(graph.tensors[name].bytes({**graph.sizes, "batch": 4}) for name in caches)
    assert sum(e["args"]["nvlink_bytes"] for e in sends) == pytest.approx(handed, rel=1e-6)
    first_decode = min(e["ts"] for e in events if e["args"]["block"].startswith("decode."))
    assert first_decode >= min(e["ts"] + e["dur"] for e in sends)


def test_times_of_the_halves(found: Disaggregated) -> None:
    stages = found.point.sim.stages
    assert found.prefill_s + found.transfer_s == pytest.approx(stages[0].elapsed_s)
    assert found.decode_s == pytest.approx(stages[1].elapsed_s)
    assert found.ttft_s() == pytest.approx(found.prefill_s)
    assert found.ratio(100) == pytest.approx(found.prefill_s / found.decode_s / 100)
    assert found.prefill_s > 10 * found.decode_s


def test_stages_that_cannot_be() -> None:
    with pytest.raises(ValueRangeError, match="0 decode stages"):
        disaggregate(small_flash(), hardware="b300", gpus=2, context=8192, batch=4, decode_stages=0)
