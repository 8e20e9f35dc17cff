"""fuse_kernels of products that share their input."""

from __future__ import annotations

import pytest

from rooflang.agent import Session
from rooflang.errors import PlacementError, RefusedError
from rooflang.hw import Cluster
from rooflang.ir import GraphBuilder
from rooflang.ir.graph import Graph
from rooflang.place.certificate import replay
from rooflang.place.storage import storage
from rooflang.search.problem import Problem


def down() -> Graph:
    """Down-projections of one input to two ranks, and back up."""
    g = GraphBuilder("down", batch=64, hidden=4096, rank=512, latent=256)
    x = g.op("x", "rms_norm", [g.input("raw", "batch hidden")], "batch hidden", over="hidden")
    q = g.op("q", "matmul", [x, g.weight("wq", "hidden rank")], "batch rank")
    kv = g.op("kv", "matmul", [x, g.weight("wkv", "hidden latent")], "batch latent")
    up = g.op("up", "matmul", [q, g.weight("wup", "rank hidden")], "batch hidden")
    return g.build(up, g.op("y", "activation", [kv], "batch latent"))


def session() -> Session:
    return Session.about(Problem.of(down(), hardware=Cluster.of("b300", 2)))


def test_both_come_out_of_one_kernel_that_reads_their_input_once() -> None:
    one = session()
    before = one.simulate().step_s
    one.apply("fuse_kernels kv inner=q")
    modes = (
        one.plan.blocks["block0"].modes if "block0" in one.plan.blocks else next(iter(one.plan.blocks.values())).modes
    )
    assert list(modes) == ["x", "q+kv", "q", "kv", "up", "y"]
    assert [modes[name].op.kind for name in ("q+kv", "q", "kv")] == ["joint_matmul", "part", "part"]
    spared = 64 * 4096 * 2 / one.problem.cluster.device.hbm_bytes_per_s
    assert before - one.simulate().step_s == pytest.approx(spared)


def test_a_part_takes_no_room_of_its_own() -> None:
    one, other = session(), session()
    one.apply("fuse_kernels kv inner=q")
    lies = storage(one.prepared().placed, receive_buffers=True)
    joint = ("q+kv", ("R",), 0)
    assert lies["q", ("R",), 0] == lies["kv", ("R",), 0] == lies[joint] == joint
    peaks = [each.simulate().stages[0].peak_bytes for each in (one, other)]
    assert peaks[0] <= peaks[1]


def test_cuts_are_kept_where_both_have_them() -> None:
    one = session()
    for name in ("x", "q", "kv"):
        one.apply(f"split_kernel {name} dim=batch")
    one.apply("fuse_kernels kv inner=q")
    modes = next(iter(one.plan.blocks.values())).modes
    assert {modes[name].out for name in ("q+kv", "q", "kv")} == {("batch",)}
    assert not next(iter(one.plan.blocks.values())).paths.get(("q+kv", 0))


def test_summands_of_all_are_added_up_at_once() -> None:
    one = session()
    for name in ("q", "kv"):
        one.apply(f"split_kernel {name} dim=hidden")
    one.apply("fuse_kernels kv inner=q")
    modes = next(iter(one.plan.blocks.values())).modes
    assert {modes[name].out for name in ("q+kv", "q", "kv")} == {("P",)}
    one.check("merge_reduce_broadcast q axis=x")


@pytest.mark.parametrize(
    ("done", "code"),
    [
        (("split_kernel q dim=batch",), "cut-apart"),
        (("split_kernel q dim=rank", "split_kernel kv dim=latent"), "cut-apart"),
        (("fuse_kernels q inner=x",), "fused"),
        (("fuse_kernels kv inner=q",), "fused"),
        (("add_control_edge q after=kv",), "ordered"),
    ],
)
def test_refusals(done: tuple[str, ...], code: str) -> None:
    one = session()
    for line in done:
        one.apply(line)
    before = one.state_bytes()
    with pytest.raises(RefusedError) as refused:
        one.apply("fuse_kernels kv inner=q")
    assert refused.value.refusal == code
    assert one.state_bytes() == before


def test_the_dim_of_all_products_is_not_cut() -> None:
    one = session()
    one.apply("fuse_kernels kv inner=q")
    for dim in ("rank+latent", "rank", "latent"):
        with pytest.raises(RefusedError, match="whole of one and nothing of another"):
            one.apply(f"split_kernel q+kv dim={dim}")


def test_it_is_proposed_written_down_and_certified() -> None:
    one = session()
    assert "fuse_kernels kv inner=q" in [str(each.action) for each in one.actions("fuse_kernels", predict=False)]
    one.apply("fuse_kernels kv inner=q")
    for name in ("x", "q+kv"):
        one.apply(f"split_kernel {name} dim=batch")
    one.apply("fuse_kernels q+kv inner=x")
    again = session()
    for entry in one.entries:
        again.apply(str(entry.action))
    assert again.state_bytes() == one.state_bytes()
    followed = session()
    followed.follow(one.certificate())
    assert followed.certificate() == one.certificate()
    assert one.certificate()["joint"] == [{"targets": [["q", "kv"]]}]


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ([["q", "up"]], "do not read one input"),
        ([["q", "nowhere"]], "no operator 'nowhere'"),
        ([["q"]], "one of two or more products"),
        ([[]], "one of two or more products"),
        ([["q", "q"]], "need a feature dim each"),
        ([], "another graph"),
        ([["kv", "q"]], "another graph"),
    ],
)
def test_a_certificate_that_joins_something_else_is_refused(targets: list[list[str]], said: str) -> None:
    one = session()
    one.apply("fuse_kernels kv inner=q")
    script = one.certificate() | {"joint": [{"targets": targets}]}
    laid = session().problem.for_script(script)
    with pytest.raises(PlacementError, match=said):
        replay(script, laid.blocks, laid.cluster)


def test_a_part_of_something_else_is_refused() -> None:
    one = session()
    one.apply("fuse_kernels kv inner=q")
    script = one.certificate()
    (kind,) = script["kinds"]
    (kernel,) = (each for each in kind["kernels"] if each["kernel"] == "up")
    kernel["steps"].insert(0, {"primitive": "fuse_kernels", "target": "up", "dim": "part", "axis": -1})
    with pytest.raises(PlacementError, match="no fusion 'part' applies to up"):
        replay(script, one.problem.blocks, one.problem.cluster)
