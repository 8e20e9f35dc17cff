"""Statements of the paper's analysis: the formulas, and when one holds."""

from __future__ import annotations

import pytest

from rooflang.hw import Cluster
from rooflang.report.reproduction.claims import EndVerdict, ScopeRow, curve_ends, scope_holds, scope_jobs, scoped_peak
from rooflang.report.reproduction.setting import Scope
from rooflang.search.api import optimize
from tests.report.reproduction.curves import curve, point


def row(model: str, context: int, routing: float, small: float, large: float) -> ScopeRow:
    rates = {8: small, 64: large, 72: large}
    return ScopeRow(model=model, context=context, assumptions="paper", tok_s_gpu=rates, routing=routing)


def test_the_left_end_is_beside_flops_and_the_right_end_beside_bytes() -> None:
    prefill = curve(point(1, 9e6, 145e3), point(64, 5e4, 155e3), stage="prefill")
    (left,) = curve_ends([prefill, curve(point(1, 1.0, 1.0))], "prefill")
    assert left.simulated == 155e3
    assert left.holds
    decode = curve(point(64, 683.7, 683.7), point(4096, 500.0, 32e3))
    (right,) = curve_ends([decode], "decode")
    assert right.simulated == 683.7
    active_bytes = Cluster.of("gb300", 64).device.hbm_bytes_per_s / right.formula
    assert 12e9 < active_bytes < 14e9  # 13 B active parameters, most of them in 4 and 8 bits, and the embedding's table
    verdict = EndVerdict.of("paper", [left, right])
    assert (verdict.count, verdict.holds) == (2, 2)
    assert verdict.least == pytest.approx(min(left.ratio, right.ratio))


def test_an_end_that_is_far_off_does_not_hold() -> None:
    (end,) = curve_ends([curve(point(64, 100.0, 100.0))], "decode")
    assert not end.holds


def test_a_larger_scope_has_to_help_where_routing_dominates_and_less_at_long_contexts() -> None:
    good = [row("a", 1, 0.6, 1.0, 2.0), row("b", 1, 0.2, 1.0, 1.1), row("a", 2, 0.1, 1.0, 1.0)]
    assert scope_holds(good) == (True, True)
    assert scope_holds([row("a", 1, 0.6, 1.0, 1.1), row("b", 1, 0.2, 1.0, 2.0)]) == (False, True)
    alike = [row("c", 3, 0.1, 1.0, 1.0 + 1e-12), row("d", 3, 0.2, 1.0, 1.0), row("e", 3, 0.3, 1.0, 1.0)]
    assert scope_holds([*good, *alike]) == (True, True)
    assert scope_holds([row("a", 1, 0.6, 1.0, 1.1), row("a", 2, 0.1, 1.0, 1.2)])[1] is False


def test_each_scope_is_a_job() -> None:
    jobs = list(scope_jobs(Scope(models=("kimi-k3",), contexts=(2**16,))))
    assert {(job.asked["gpus"], job.asked["domain"]) for job in jobs} == {(64, 8), (64, 64), (72, 72)}
    assert len(jobs) == 6


def test_the_peak_of_a_scope_is_that_of_the_whole_grid() -> None:
    asked = {"model": "deepseek-v4-flash", "stage": "decode", "context": 2**16, "assumptions": "paper"}
    peak = scoped_peak(**asked, hardware="gb300", gpus=8, domain=4)
    grid = optimize(**asked, hardware=Cluster.of("gb300", 8, domain=4), search="grid").frontier[-1]
    assert (peak["tok_s_gpu"], peak["batch"], peak["pp"]) == (grid.sim.tok_s_gpu, grid.batch, grid.pp)
    assert 0.0 < peak["routing"] < 1.0
    nothing = scoped_peak(**{**asked, "model": "kimi-k3", "context": 2**20}, hardware="gb300", gpus=4, domain=4)
    assert set(nothing.values()) == {None}
