"""What splits bring with them before any merge: gather, reduce, scatter and broadcast by the first coordinate."""

from __future__ import annotations

import pytest

from rooflang.agent import Session
from rooflang.assumptions import PHYSICAL
from rooflang.cost.network import collective
from rooflang.hw import Cluster
from rooflang.ir.layout import make_transfer, step_of
from rooflang.sim import DeviceOverride
from rooflang.sim.simulate import simulate

from .graphs import decode, mlp


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [("b", "O", "gather"), ("P", "O", "reduce"), ("O", "b", "scatter"), ("O", "R", "broadcast"), ("R", "P", "")],
)
def test_steps_between_states(before: str, after: str, name: str) -> None:
    assert step_of(before, after) == name
    if name not in ("", "broadcast"):
        (step,) = make_transfer("x", (before,), (after,)).derivation
        assert (step.primitive, step.dim) == ("split_kernel", f"{before}→{after}")


def test_two_halves_take_as_long_as_their_ports_are_busy() -> None:
    cluster = Cluster.of("b300", 8)
    group = {level.name: 8 for level in cluster.levels if level.size > 1}
    cost = {
        name: sum(collective(cluster, group, name, 8e9, PHYSICAL).values())
        for name in ("gather", "scatter", "reduce", "broadcast", "all_gather", "all_reduce", "reduce_scatter")
    }
    assert cost["gather"] == cost["scatter"] == cost["all_gather"] == pytest.approx(7e9 / cluster.levels[0].bytes_per_s)
    assert cost["reduce"] == cost["broadcast"] == pytest.approx(8e9 / cluster.levels[0].bytes_per_s)
    assert cost["reduce"] + cost["broadcast"] > cost["all_reduce"]


def test_a_gather_waits_for_every_shard() -> None:
    session = Session.start(mlp(), hardware="b300", gpus=8, overlap="none")
    session.run("split_kernel up dim=batch")
    ready = session.prepared()
    usual = simulate(ready.placed, ready.cost, tokens=1, overlap="none").step_s
    slow = [DeviceOverride(gpus=(5,), hbm=0.5)]
    late = simulate(ready.placed, ready.cost, tokens=1, overlap="none", overrides=slow)
    assert late.step_s > usual
    explicit = simulate(ready.placed, ready.cost, tokens=1, overlap="none", overrides=slow, explicit=True)
    assert explicit.step_s == late.step_s


def test_an_edit_takes_back_the_merges_around_it() -> None:
    session = Session.start(decode(), hardware="b300", gpus=4)
    session.run("tensor_parallel axis=x")
    merged = session.simulate().step_s
    session.run("dup_kernel q")  # attention reads slices of the whole queries, its own merges stay
    (block,) = session.plan.blocks.values()
    assert [step.collective for step in block.paths["attend", 0]] == ["slice"]
    assert [step.collective for step in block.paths["sum", 1]] == ["all_reduce"]
    session.run("split_kernel o dim=width")
    (block,) = session.plan.blocks.values()
    assert [step.collective for step in block.paths["sum", 1]] == ["reduce", "broadcast"]
    assert [step.collective for step in block.paths["o", 0]] == ["gather", "scatter"]
    assert session.simulate().step_s > merged


@pytest.mark.parametrize("overlap", ["none", "perfect"])
def test_predictions_are_what_is_simulated_where_nothing_is_in_the_way(overlap: str) -> None:
    session = Session.start(mlp(), hardware="b300", gpus=8, overlap=overlap)  # type: ignore[arg-type]
    for line in (
        *("split_kernel up dim=ffn", "split_kernel act dim=ffn", "split_kernel down dim=ffn"),
        *("merge_reduce_scatter down dim=hidden", "merge_gather_broadcast down", "fuse_kernels act inner=up"),
    ):
        wanted = session.branch()
        wanted.apply(line)
        found = [p for p in session.actions() if p.action.primitive == line.split()[0]]
        session.apply(line)
        times = [p.predicted_s for p in found if p.predicted_s is not None]
        step_s = session.simulate().step_s
        assert min(abs(time / step_s - 1.0) for time in times) < 1e-9
