"""set_compute: a device must have every rate that the operator computes at."""

from __future__ import annotations

from dataclasses import replace

from rooflang.hw.cluster import Cluster
from rooflang.ir import GraphBuilder
from rooflang.rules import rule
from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.record import Ok, Refusal

RULE = rule("set_compute")
DEVICE = Cluster.of("b300", 8).device


def test_a_device_with_the_rate_is_taken() -> None:
    verdict = RULE.check(mlp().op_by_name["up"], DEVICE, "copies")
    assert isinstance(verdict, Ok)
    assert verdict.result == (DEVICE.name, "copies")


def test_a_device_without_the_rate_is_refused() -> None:
    slim = replace(DEVICE, peaks={"fp8": 1.0})
    refused = RULE.check(mlp().op_by_name["up"], slim)
    assert isinstance(refused, Refusal)
    assert refused.code == "no-peak"
    assert "bf16" in refused.reason


def test_every_rate_of_an_operator_counts() -> None:
    g = GraphBuilder("index", batch=2, heads=2, width=4, entries=8, chosen=2)
    q, weights = g.input("q", "batch heads width", "fp8"), g.input("w", "batch heads")
    keys = g.cache("keys", "batch entries width")
    (op,) = g.build(g.op("ids", "index_select", [q, weights, keys], "batch chosen", "int32")).ops
    assert isinstance(RULE.check(op, replace(DEVICE, peaks={"fp8": 1.0, "fp32": 1.0})), Ok)
    for rate, missing in (("fp8", "fp32"), ("fp32", "fp8")):
        refused = RULE.check(op, replace(DEVICE, peaks={rate: 1.0}))
        assert isinstance(refused, Refusal)
        assert f"no {missing} rate" in refused.reason


def test_an_operator_that_computes_nothing_runs_anywhere() -> None:
    assert isinstance(RULE.check(decode_step().op_by_name["append"], replace(DEVICE, peaks={})), Ok)
