"""fuse_kernels: fused and unfused forms are one class, and what others read stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflang.assumptions import profile
from rooflang.cost.model import CostModel
from rooflang.eqsat import enodes
from rooflang.hw import Cluster, Mesh
from rooflang.ir import GraphBuilder, make_mode
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import CutKind
from rooflang.ir.graph import Graph
from rooflang.ir.kinds.fused import FUSIONS, Fusion, covered
from rooflang.rules import rule
from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.record import Ok, Refusal
from rooflang.rules.theory import Theory
from rooflang.soundness.joints import shared

from .saturations import enodes_lost, moe, saturated, snapshot, specs

RULE = rule("fuse_kernels")


def test_named_pairs_are_taken() -> None:
    taken = RULE.check(mlp().op_by_name["up"], mlp().op_by_name["norm"])
    assert isinstance(taken, Ok)
    assert taken.result.kind == "norm_matmul"
    assert [tensor.name for tensor in taken.result.operands] == ["x", "w_up"]


@pytest.mark.parametrize(
    ("outer", "inner", "code"),
    [("down", "up", "no-such-fusion"), ("down", "norm", "not-adjacent"), ("up", "y", "no-such-fusion")],
)
def test_refusals(outer: str, inner: str, code: str) -> None:
    refused = RULE.check(mlp().op_by_name[outer], mlp().op_by_name[inner])
    assert isinstance(refused, Refusal)
    assert refused.code == code


def test_a_side_effect_is_never_computed_inside_another_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = decode_step()
    named = Fusion(name="append_attend", summary="", outer="attention", inner="kv_append", operand=1)
    monkeypatch.setattr("rooflang.rules.theory.NAMED", {named.name: named})
    refused = RULE.check(graph.op_by_name["attend"], graph.op_by_name["append"])
    assert isinstance(refused, Refusal)
    assert refused.code == "side-effect"
    (kind,) = split_blocks(graph).kinds
    assert Theory.of(kind, 1).pairs == ()


def test_fused_and_unfused_are_one_class() -> None:
    theory, egraph = snapshot(mlp())
    assert [theory.kernels[pair.kernel].name for pair in theory.pairs] == ["norm+up", "down+y"]
    class_of = {row.inputs[0]: row.output for name in ("Op1", "Op2", "Op3") for row in egraph.rows[name]}
    for pair in theory.pairs:
        assert class_of[pair.kernel] == class_of[pair.outer]
        assert class_of[pair.kernel] != class_of[pair.inner]


def test_a_fused_kernel_covers_both_and_makes_the_outer_one_s_tensor() -> None:
    fused = [mode for mode in saturated(mlp()).modes if len(mode.covers) > 1]
    assert {(mode.covers, mode.op.output.name) for mode in fused} == {(("norm", "up"), "up"), (("down", "y"), "y")}
    for mode in fused:
        assert mode.derivation[0].primitive == "fuse_kernels"
        assert enodes(mode)[1].startswith(f"(Op{len(mode.op.operands)} {mode.op.name} ")


def gated() -> Graph:
    """A norm, the projections of gate and up, and their product."""
    g = GraphBuilder("gated", batch=8, hidden=4, ffn=6)
    norm = g.op("norm", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden")
    gate = g.op("gate", "matmul", [norm, g.weight("w1", "hidden ffn")], "batch ffn")
    up = g.op("up", "matmul", [norm, g.weight("w3", "hidden ffn")], "batch ffn")
    return g.build(g.op("y", "gated_activation", [gate, up], "batch ffn"))


def test_gate_up_and_activation_are_one_kernel_that_reads_their_input_once() -> None:
    block = saturated(gated())
    fused = {mode.op.kind: mode.op for mode in block.modes if mode.op.output.name == "y"}
    assert set(fused) == {"gated_activation", "matmul_gate", "gated_projections", "norm_projections"}
    both = fused["gated_projections"]
    assert [t.name for t in both.operands] == ["norm", "w1", "w3"]
    assert covered(both) == ("up", "gate", "y")
    assert [t.name for t in fused["norm_projections"].operands] == ["x", "w1", "w3"]
    mode = next(mode for mode in block.modes if mode.op.kind == "gated_projections")
    assert [(s.primitive, s.dim) for s in mode.derivation[:2]] == [
        ("fuse_kernels", "matmul_gate"),
        ("fuse_kernels", "gated_projections"),
    ]


def test_it_is_cut_only_where_both_projections_are() -> None:
    modes = [mode for mode in saturated(gated()).modes if mode.op.kind == "gated_projections"]
    cuts = {(mode.operands[0], mode.operands[1], mode.operands[2], mode.out) for mode in modes}
    assert cuts == {
        (("R",), ("R",), ("R",), ("R",)),
        (("O",), ("O",), ("O",), ("O",)),
        (("batch",), ("R",), ("R",), ("batch",)),
        (("R",), ("ffn",), ("ffn",), ("ffn",)),
    }


def test_every_named_fusion_is_in_the_table() -> None:
    text = RULE.describe()
    for fusion in FUSIONS:
        assert f"{fusion.name}, {fusion.inner} inside {fusion.outer}" in text
    assert "part, matmul of joint_matmul: projections that share their input" in text


def test_the_intermediate_is_still_made_for_its_other_readers() -> None:
    g = GraphBuilder("twice", batch=8, hidden=4, ffn=6)
    norm = g.op("norm", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden")
    one = g.op("one", "matmul", [norm, g.weight("w1", "hidden ffn")], "batch ffn")
    two = g.op("two", "matmul", [norm, g.weight("w2", "hidden ffn")], "batch ffn")
    block = saturated(g.build(one, two))
    assert {"norm", "one", "two", "norm+one", "norm+two"} == {mode.op.name for mode in block.modes}


def test_a_fused_product_sums_into_a_partial_residual_only_where_both_are_sums() -> None:
    """matmul_add: the product is partial along ffn; x is not, so that the sum cannot pass through."""
    assert all("P" not in mode.out for mode in saturated(mlp()).modes if mode.op.name == "down+y")


def test_without_it_no_kernel_is_fused_or_routed() -> None:
    lost = enodes_lost(moe(), "fuse_kernels")
    assert {"Op3", "Run3", "Run2"} <= set(lost)
    routed = [mode for mode in saturated(moe()).modes if (cut := mode.cut(0)) and cut.kind is CutKind.ROUTE]
    assert {mode.op.name for mode in routed} == {"dispatch", "combine"}
    assert [step.primitive for step in routed[0].derivation] == ["split_kernel", "fuse_kernels"]
    block = saturated(moe(), without="fuse_kernels")
    assert "Mode3" not in block.stats.facts  # no mode is derived for a kernel that no term has
    assert all(len(mode.covers) == 1 for mode in block.modes)
    assert specs(block, "dispatch") < specs(saturated(moe()), "dispatch")


def test_products_that_share_their_input_are_parts_of_one() -> None:
    theory, egraph = snapshot(shared())
    product, joint = (theory.kernels.index(shared().op_by_name[name]) for name in ("q", "q+kv"))
    part = next(each for each in theory.parts if each.outer == product)
    assert (part.inner, theory.kernels[part.kernel].kind) == (joint, "part")
    class_of = {row.inputs[0]: row.output for name in ("Op1", "Op2", "Op3") for row in egraph.rows[name]}
    assert class_of[part.kernel] == class_of[product] != class_of[joint]
    block = saturated(shared())
    assert {mode.op.kind for mode in block.modes if mode.op.output.name == "q"} == {"matmul", "norm_matmul", "part"}
    assert {mode.op.kind for mode in block.modes if mode.op.output.name == "q+kv"} == {"joint_matmul", "norm_joint"}
    assert not {"part", "joint_matmul"} & {m.op.kind for m in saturated(shared(), without="fuse_kernels").modes
                                           if m.op.output.name != "q+kv"}  # fmt: skip


def test_the_joint_product_is_cut_by_rows_and_as_summands_only() -> None:
    block = saturated(shared())
    joint = {mode.out for mode in block.modes if mode.op.kind == "joint_matmul"}
    assert joint == {("R",), ("O",), ("batch",), ("P",)}
    assert {(m.operands[0], m.out) for m in block.modes if m.op.kind == "part"} == {(s, s) for s in map(tuple, joint)}


def test_the_shared_input_is_read_once_and_a_part_moves_nothing() -> None:
    graph, cluster = shared(), Cluster.of("b300", 1)
    cost = CostModel.of(graph, cluster, Mesh.lay(cluster, [1]), profile("physical"))
    joint = cost.mode(make_mode(graph.op_by_name["q+kv"], ["R"]))
    apart = [cost.mode(make_mode(graph.op_by_name[name], ["R"])) for name in ("q", "kv")]
    spared = graph.tensors["x"].bytes(graph.sizes) / cluster.device.hbm_bytes_per_s
    assert joint.memory_s == pytest.approx(sum(each.memory_s for each in apart) - spared)
    assert joint.compute_s == pytest.approx(sum(each.compute_s for each in apart))
    parts = [mode for mode in saturated(graph).modes if mode.op.kind == "part"]
    assert parts
    assert all(cost.mode(mode).local_s == 0.0 for mode in parts if mode.out == ("R",))


@pytest.mark.parametrize(
    ("one", "other", "code"),
    [
        ("q", "up", "other-input"),
        ("q", "later", "other-input"),
        ("q", "q", "one-label"),
        ("q", "heads", "no-range"),
        ("q", "narrow", "other-format"),
        ("long", "turned", "other-rows"),
    ],
)
def test_what_is_no_range_of_one_product_is_refused(one: str, other: str, code: str) -> None:
    g = GraphBuilder("down", batch=2, seq=2, hidden=2, rank=2, head=2, width=2)
    x = g.input("x", "batch hidden")
    q = g.op("q", "matmul", [x, g.weight("w", "hidden rank")], "batch rank")
    up = g.op("up", "matmul", [q, g.weight("v", "rank head")], "batch head")
    heads = g.op("heads", "matmul", [x, g.weight("u", "hidden head width")], "batch head width")
    narrow = g.op("narrow", "matmul", [x, g.weight("n", "hidden width", "fp8")], "batch width")
    prompt = g.input("prompt", "batch seq hidden")
    long = g.op("long", "matmul", [prompt, g.weight("l", "hidden rank")], "batch seq rank")
    turned = g.op("turned", "matmul", [prompt, g.weight("t", "hidden width")], "seq batch width")
    g.block = "another"
    later = g.op("later", "matmul", [x, g.weight("z", "hidden width")], "batch width")
    graph = g.build(up, heads, narrow, long, turned, later)
    twice = replace(graph.op_by_name["q"], name="q2")
    found = {**graph.op_by_name, "q": twice if one == other else graph.op_by_name["q"]}
    refused = RULE.check(graph.op_by_name[one] if one == other else found[one], found[other])
    assert isinstance(refused, Refusal)
    assert refused.code == code


def test_what_both_read_is_charged_once() -> None:
    """x, the two weights and the output, at their bytes; the products that stay on chip cost nothing."""
    graph, cluster = gated(), Cluster.of("b300", 1)
    cost = CostModel.of(graph, cluster, Mesh.lay(cluster, [1]), profile("physical"))
    mode = next(m for m in saturated(graph).modes if m.op.kind == "gated_projections" and m.out == ("R",))
    sizes = graph.sizes
    moved = sum(graph.tensors[name].bytes(sizes) for name in ("norm", "w1", "w3", "y"))
    assert cost.mode(mode).memory_s == pytest.approx(moved / cluster.device.hbm_bytes_per_s)
    apart = [make_mode(op, ["R"]) for op in graph.ops if op.name in ("gate", "up", "y")]
    assert sum(cost.mode(each).memory_s for each in apart) > cost.mode(mode).memory_s
    assert sum(cost.flops(each)["bf16"] for each in apart) == cost.flops(mode)["bf16"]
