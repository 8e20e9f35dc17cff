"""Critical paths, what bounds an operator, and what would help: against graphs that one can work out."""

from __future__ import annotations

from itertools import pairwise

import pytest

from rooflang.assumptions import PAPER
from rooflang.sim.build import build
from rooflang.sim.engine import run
from rooflang.sim.explain import critical_path, explain
from rooflang.sim.fleet import DeviceOverride
from rooflang.sim.simulate import simulate

from .plans import placed_model


@pytest.mark.parametrize("overlap", ["none", "two-batch"])
def test_the_path_is_a_chain_from_the_start_to_the_end_of_the_step(overlap: str) -> None:
    placed, cost = placed_model(batch=512)
    found = explain(placed, cost, tokens=1, overlap=overlap, what_if=False)  # type: ignore[arg-type]
    path = found.path
    assert path[0].start_s == 0.0 and path[-1].end_s == found.result.step_s
    assert all(before.end_s == after.start_s for before, after in pairwise(path))
    assert found.path_s == pytest.approx(found.result.step_s, rel=1e-9)
    for shares in (found.by_group, found.by_operator, found.by_bound):
        assert sum(share.share for share in shares) == pytest.approx(1.0)
        assert sum(share.seconds for share in shares) == pytest.approx(found.path_s)
        assert [share.seconds for share in shares] == sorted((s.seconds for s in shares), reverse=True)


def test_without_overlap_the_path_is_every_operator_that_takes_time() -> None:
    placed, cost = placed_model()
    built = build(placed, cost)
    timeline = run(built.program)
    path = critical_path(built, timeline, 0)
    busy = [op for op in range(built.program.op_count) if timeline.end_s[op] > timeline.start_s[op]]
    assert [step.op for step in path] == busy
    assert all(step.seconds == pytest.approx(step.alone_s, rel=1e-9) for step in path)


def test_bounds_are_those_of_the_costs_when_nothing_runs_beside() -> None:
    placed, cost = placed_model(hardware="gb300", gpus=64, dp=64, batch=65536)
    built = build(placed, cost)
    timeline = run(built.program)
    seen = set()
    for step in critical_path(built, timeline, 0):
        spent = built.costs[step.op]
        network_s = max(spent.levels_s.values(), default=0.0) + spent.alpha_s
        if step.bound in ("compute", "memory"):
            own = spent.compute_s if step.bound == "compute" else spent.memory_s
            assert own == max(spent.compute_s, spent.memory_s, network_s)
        else:
            assert network_s > max(spent.compute_s, spent.memory_s)
            assert (step.bound == "latency") == (spent.alpha_s > max(spent.levels_s.values()))
        seen.add(step.bound)
    assert seen >= {"compute", "memory", "nvlink"}


def test_latency_bounds_small_messages() -> None:
    placed, cost = placed_model(gpus=16, dp=16, batch=16)
    found = explain(placed, cost, tokens=1, overlap="none", what_if=False)
    dispatches = {step.bound for step in found.path if step.name.endswith("dispatch")}
    assert dispatches == {"latency"}


def test_what_if_is_the_simulation_of_the_better_machine() -> None:
    placed, cost = placed_model(hardware="gb300", gpus=64, dp=64, batch=65536)
    found = explain(placed, cost, tokens=1, overlap="none")
    gains = {change.change: change.gain for change in found.what_if}
    assert set(gains) == {
        *("HBM bandwidth", "nvlink bandwidth", "latencies"),
        *(f"{dtype} peak" for dtype in ("fp4", "fp8", "bf16", "fp32")),
    }
    assert gains["HBM bandwidth"] > gains["nvlink bandwidth"] > gains["bf16 peak"] > gains["latencies"] > 0
    # What is bound by one thing cannot gain more than its share of the path.
    bound = {share.name: share.share for share in found.by_bound}
    assert gains["nvlink bandwidth"] == pytest.approx(1 / (1 - bound["nvlink"] * (1 - 1 / 1.1)) - 1, rel=0.02)
    every = [DeviceOverride(gpus=tuple(range(64)), hbm=1.1)]
    faster = simulate(placed, cost, tokens=1, overlap="none", overrides=every).step_s
    hbm = next(change for change in found.what_if if change.change == "HBM bandwidth")
    assert hbm.step_s == pytest.approx(faster, rel=1e-12)


def test_links_between_domains_are_varied_too() -> None:
    placed, cost = placed_model("deepseek-v4-pro", gpus=256, dp=16, pp=16, batch=4096, assumptions=PAPER)
    none = explain(placed, cost, tokens=1, overlap="none")
    gains = {change.change: change.gain for change in none.what_if}
    assert 0.03 < gains["ib bandwidth"] < 0.1
    perfect = explain(placed, cost, tokens=1, overlap="perfect")
    hidden = {change.change: change.gain for change in perfect.what_if}
    assert hidden["HBM bandwidth"] == pytest.approx(0.1, abs=1e-3)
    assert hidden["ib bandwidth"] == pytest.approx(0.0, abs=1e-3)


def test_formats_that_are_emulated_vary_with_their_carrier() -> None:
    placed, cost = placed_model(hardware="h200", gpus=8, dp=8)
    names = {change.change for change in explain(placed, cost, tokens=1).what_if}
    assert "fp8 peak" in names and "fp4 peak" not in names


def test_in_words() -> None:
    placed, cost = placed_model(hardware="gb300", gpus=64, dp=64, batch=65536)
    lines = explain(placed, cost, tokens=1, overlap="none").lines(top=3)
    assert lines[0].startswith("step 16.9") and "memory 5" in lines[0]
    assert [line.split()[-1] for line in lines[1:4]] == ["selection", "attention", "dispatch"]
    assert any("throughput if HBM bandwidth were 10% better" in line for line in lines)
    assert lines[-1].startswith("  nothing from better")
