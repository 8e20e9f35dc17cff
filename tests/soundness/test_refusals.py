"""What looks like a rewrite and is none is refused, with a reason that says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rooflang import Layout, optimize, simulate_layout
from rooflang.assumptions import profile
from rooflang.cost.model import CostModel
from rooflang.errors import PlacementError
from rooflang.hw import Cluster, Mesh
from rooflang.ir import GraphBuilder, make_mode, shard_sizes
from rooflang.ir.cut import CutKind
from rooflang.ir.op import Op, signature
from rooflang.ir.tensor import Tensor
from rooflang.rules import rule
from rooflang.rules.examples import decode_step
from rooflang.rules.record import Ok, Refusal, Verdict
from rooflang.soundness.cases import example, the_op
from rooflang.soundness.joints import down_projections

SPLIT = rule("split_kernel").check
PAGE = (Path(__file__).parents[2] / "docs" / "soundness.md").read_text(encoding="utf-8")


def case(name: str) -> Op:
    return the_op(example(name))


def refused(verdict: Verdict, code: str, *words: str) -> None:
    assert isinstance(verdict, Refusal), verdict
    assert verdict.code == code
    for word in words:
        assert word in verdict.reason


def _attended() -> Tensor:
    return decode_step().op_by_name["attend"].output


def _edge(*names: str) -> Verdict:
    return rule("remove_control_edge").check(decode_step(), *names, control=[names])


def _two_inputs() -> Verdict:
    graph = down_projections(other_input=True)
    return rule("fuse_kernels").check(graph.op_by_name["q"], graph.op_by_name["kv"])


#: What is refused, by which rule; docs/soundness.md has the same table, with the codes.
TABLE: dict[str, tuple[str, Callable[[], Verdict]]] = {
    "top-k of the own experts in MoE": ("split_kernel", lambda: SPLIT(case("route"), "expert", kind=CutKind.PAR)),
    "one contiguous cut of fused QKV": ("split_kernel", lambda: SPLIT(case("segment"), "qkv")),
    "one contiguous cut of q and kv that share their input": (
        "split_kernel",
        lambda: SPLIT(case("joint_matmul"), "joint"),
    ),
    "a contiguous cut of RoPE's dim": ("split_kernel", lambda: SPLIT(case("rope"), "even")),
    "local positions under a causal mask": (
        "split_kernel",
        lambda: SPLIT(case("grouped_causal"), "ctx", local=["ctx"]),
    ),
    "a hidden cut of gate·up·activation": ("split_kernel", lambda: SPLIT(case("gated_matmul"), "k")),
    "a bias or residual in every summand": ("split_kernel", lambda: SPLIT(case("bias"), "partial")),
    "a token cut of MoE with dropped tokens": ("split_kernel", lambda: SPLIT(case("capped_gates"), "b")),
    "keys of the delta rule": ("split_kernel", lambda: SPLIT(case("delta_scan"), "k")),
    "a nucleus of a cut vocabulary": ("split_kernel", lambda: SPLIT(case("sample_nucleus"), "vocab")),
    "a cut of a generator with a state": ("split_kernel", lambda: SPLIT(case("stateful_sample"), "b")),
    "half a quantisation block": (
        "split_kernel",
        lambda: SPLIT(case("block_matmul"), "blocks", sizes={"blocks": 16}, parts=16),
    ),
    "half a group of pooled positions, or of heads": (
        "split_kernel",
        lambda: SPLIT(case("pool"), "seq", sizes={"seq": 10, "ctx": 4}, parts=2),
    ),
    "log-sum-exp states passed on as summands": (
        "split_kernel",
        lambda: SPLIT(case("add"), "partial", partials={"y0": frozenset({"lse"})}),
    ),
    "a second copy of a KV append": ("dup_kernel", lambda: rule("dup_kernel").check(case("kv_append"))),
    "a second draw of a random operator": ("dup_kernel", lambda: rule("dup_kernel").check(case("stateful_sample"))),
    "an owner's draw for all": ("dedup_kernel", lambda: rule("dedup_kernel").check(case("stateful_sample"))),
    "an edge from a write to a read removed": ("remove_control_edge", lambda: _edge("append", "save")),
    "an edge that closes a cycle": (
        "add_control_edge",
        lambda: rule("add_control_edge").check(decode_step(), "copy", "append"),
    ),
    "a merge of a gather that another one reads": (
        "merge_gather_scatter",
        lambda: rule("merge_gather_scatter").check(_attended(), ("batch",), ("head",), also_read=["copy"]),
    ),
    "an all-to-all from a dim to itself": (
        "merge_gather_scatter",
        lambda: rule("merge_gather_scatter").check(_attended(), ("batch",), ("batch",)),
    ),
    "a reduce of what is cut": (
        "merge_reduce_broadcast",
        lambda: rule("merge_reduce_broadcast").check(_attended(), ("batch",), ("R",)),
    ),
    "a gather of what is partial": (
        "merge_gather_broadcast",
        lambda: rule("merge_gather_broadcast").check(_attended(), ("P",), ("R",)),
    ),
    "a lossy cast as identity": (
        "insert_identity",
        lambda: rule("insert_identity").check(example("kv_append").leaves[1], "dram", dtype="fp4"),
    ),
    "a copy of what is overwritten, left out": (
        "remove_identity",
        lambda: rule("remove_identity").check(decode_step().op_by_name["save"], ops=decode_step().ops),
    ),
    "products of two inputs in one kernel": ("fuse_kernels", _two_inputs),
    "a fusion that nobody named": (
        "fuse_kernels",
        lambda: rule("fuse_kernels").check(decode_step().op_by_name["attend"], decode_step().op_by_name["copy"]),
    ),
}


@pytest.mark.parametrize("trap", TABLE)
def test_the_table_of_refusals_is_that_of_the_page(trap: str) -> None:
    name, ask = TABLE[trap]
    verdict = ask()
    assert isinstance(verdict, Refusal), verdict
    assert f"| {trap} | `{name}` | `{verdict.code}` |" in PAGE


def test_the_page_lists_no_other_refusal() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and line.count("`") == 4]
    assert len(rows) == len(TABLE)


def test_local_top_k_in_moe() -> None:
    refused(SPLIT(case("route"), "expert", kind=CutKind.PAR), "other-join", "summary", "top-k")
    taken = SPLIT(case("route"), "expert")
    assert isinstance(taken, Ok)
    assert taken.result.kind is CutKind.STAT


def test_a_contiguous_cut_of_fused_qkv() -> None:
    refused(SPLIT(case("segment"), "qkv"), "unsound-cut", "contiguous", "qkv")
    refused(SPLIT(case("segment"), "part"), "unsound-cut", "contiguous")
    assert isinstance(SPLIT(case("gated_matmul"), "n"), Ok)  # gate and up apart: every segment is cut
    assert isinstance(SPLIT(case("segment"), "t"), Ok)


def test_a_contiguous_cut_of_rope() -> None:
    refused(SPLIT(case("rope"), "even"), "unsound-cut", "pairs")
    assert isinstance(SPLIT(case("rope_interleaved"), "even", sizes={"even": 8}, parts=4), Ok)
    refused(SPLIT(case("rope_interleaved"), "even", sizes={"even": 8}, parts=8), "unaligned", "multiples of 2")


@pytest.mark.parametrize(
    ("name", "dim"), [("grouped_causal", "ctx"), ("grouped_causal", "seq"), ("latent_causal", "ctx")]
)
def test_local_positions_under_a_causal_mask(name: str, dim: str) -> None:
    refused(SPLIT(case(name), dim, local=[dim]), "global-ids", dim, "all shards")
    assert isinstance(SPLIT(case(name), dim), Ok)


@pytest.mark.parametrize("primitive", ["dup_kernel", "dedup_kernel"])
@pytest.mark.parametrize("name", ["kv_append", "conv_push", "delta_update", "stateful_sample"])
def test_copies_of_what_has_side_effects(primitive: str, name: str) -> None:
    refused(rule(primitive).check(case(name)), "side-effect", name)


def test_a_split_of_a_stateful_random_operator() -> None:
    refused(SPLIT(case("stateful_sample"), "b"), "unsound-cut", "generator")
    assert isinstance(SPLIT(case("sample"), "b"), Ok)
    assert isinstance(SPLIT(case("sample"), "vocab"), Ok)


def test_the_edge_from_a_write_to_a_read() -> None:
    graph = decode_step()
    for edge in (("append", "save"), ("save", "append")):
        refused(rule("remove_control_edge").check(graph, *edge, control=[edge]), "memory-order", *edge)


def test_an_edge_that_closes_a_cycle() -> None:
    refused(rule("add_control_edge").check(decode_step(), "copy", "append"), "cycle", "append → attend → copy")


def test_a_merge_that_takes_away_what_another_one_reads() -> None:
    tensor = decode_step().op_by_name["attend"].output
    for name, before, after in (
        ("merge_gather_scatter", "batch", "head"),
        ("merge_gather_broadcast", "batch", "R"),
        ("merge_reduce_scatter", "P", "batch"),
        ("merge_reduce_broadcast", "P", "R"),
    ):
        refused(rule(name).check(tensor, (before,), (after,), also_read=["copy"]), "still-read", "copy", "attend")
        assert isinstance(rule(name).check(tensor, (before,), (after,)), Ok)


def test_a_reduce_of_what_is_cut_and_a_gather_of_what_is_partial() -> None:
    tensor = decode_step().op_by_name["attend"].output
    refused(rule("merge_reduce_broadcast").check(tensor, ("batch",), ("R",)), "not-partial", "batch")
    refused(rule("merge_gather_broadcast").check(tensor, ("P",), ("R",)), "partial")
    refused(rule("merge_gather_scatter").check(tensor, ("batch",), ("batch",)), "not-one-step")


def test_a_lossy_cast_as_identity() -> None:
    cache = example("kv_append").leaves[1]
    refused(rule("insert_identity").check(cache, "dram", dtype="fp4"), "lossy", "fp4", "bf16")


def test_a_copy_of_what_is_overwritten() -> None:
    graph = decode_step()
    refused(rule("remove_identity").check(graph.op_by_name["save"], ops=graph.ops), "snapshot", "save", "in place")


def test_a_token_cut_of_capacity_drop_moe() -> None:
    for token in ("b", "t"):
        refused(SPLIT(case("capped_gates"), token), "unsound-cut", "came before")
    assert isinstance(SPLIT(case("capped_gates"), "expert"), Ok)


def test_shards_that_are_not_aligned_to_quantisation_blocks() -> None:
    op = case("block_matmul")
    refused(SPLIT(op, "blocks", sizes={"blocks": 16}, parts=16), "unaligned", "multiples of 2")
    assert isinstance(SPLIT(op, "blocks", sizes={"blocks": 16}, parts=8), Ok)


def test_keys_of_the_delta_rule_and_inputs_of_a_nonlinearity() -> None:
    refused(SPLIT(case("delta_scan"), "k"), "unsound-cut", "mixes all keys")
    refused(SPLIT(case("gated_matmul"), "k"), "unsound-cut", "nonlinearity")


def chain(rows: int) -> tuple[Op, CostModel]:
    """A product of so many rows, over 4 GPUs."""
    g = GraphBuilder("chain", batch=rows, hidden=64, ffn=64)
    graph = g.build(g.op("y", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden ffn")], "batch ffn"))
    cluster = Cluster.of("b300", 8)
    return graph.ops[0], CostModel.of(graph, cluster, Mesh.lay(cluster, [4, 2]), profile("physical"))


def test_ten_rows_cut_in_four_keep_their_flops() -> None:
    """Uneven, 3 + 3 + 3 + 1, or refused by the costs; never 2 + 2 + 2 + 2."""
    assert shard_sizes(10, [4]) == (3, 3, 3, 1)
    for rows in (8, 10, 12):
        op, cost = chain(rows)
        mode = make_mode(op, [next(c for c in signature(op) if c.dim == "batch"), "R"])
        priced = cost.mode(mode).compute_s
        if np.isfinite(priced):
            per_rank = cost.flops(mode)["bf16"]
            assert 4 * per_rank >= 2.0 * rows * 64 * 64
        else:
            assert rows == 10


@pytest.mark.parametrize(("ranks", "good"), [(4, True), (8, True), (16, False)])
def test_no_plan_has_half_a_quantisation_block(ranks: int, good: bool) -> None:
    """1024 elements in blocks of 128: 8 shards have one each; what has half of one costs no price, it is refused."""
    g = GraphBuilder("quantised", batch=16, hidden=1024, ffn=64)
    weight = g.weight("w", "hidden ffn", "fp8_block")
    graph = g.build(g.op("y", "block_matmul", [g.input("x", "batch hidden"), weight], "batch ffn", block=128))
    cluster = Cluster.of("b300", ranks)
    layout = Layout.start(graph, cluster, mesh=[ranks]).split_kernel("y", "hidden")
    if good:
        assert simulate_layout(layout).sim.step_s > 0
        return
    with pytest.raises(PlacementError, match="multiples of 128"):
        simulate_layout(layout)
    best = optimize(graph, hardware=cluster, batch=[16]).frontier[0]
    cut = [k for k in best.certificate["kinds"][0]["kernels"] if k["kernel"] == "y"]
    assert "hidden" not in [step["dim"] for step in cut[0]["steps"]]
