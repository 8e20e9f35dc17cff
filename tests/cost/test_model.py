"""Operators at rest: FLOPs and bytes of one rank against numbers worked out by hand on the toy machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.cost import CostModel, peaks_needed
from rooflang.errors import HardwareError
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.layout import Choice, Mode, make_mode
from rooflang.ir.op import signature
from rooflang.ir.tensor import Role

from .toy import BF16, FP4, FP8, FP32, HBM, model


def near(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12)


def cut(graph: Graph, op: str, dim: str, kind: CutKind | None = None) -> Cut:
    """The one row of an operator's signature by that dim (and kind)."""
    (row,) = (
        c
        for c in signature(graph.op_by_name[op])
        if c.dim == dim and (c.kind is kind if kind else c.kind is not CutKind.ROUTE)
    )
    return row


def mode(graph: Graph, op: str, *choices: Choice) -> Mode:
    return make_mode(graph.op_by_name[op], choices)


def product(weight: str = "bf16", **attrs: str) -> Graph:
    g = GraphBuilder("product", batch=64, hidden=256, ffn=512)
    return g.build(
        g.op("y", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden ffn", weight)], "batch ffn", **attrs)
    )


FLOPS = 2 * 64 * 256 * 512
X, W, Y = 2 * 64 * 256, 2 * 256 * 512, 2 * 64 * 512


def test_a_product_reads_both_operands_and_writes_its_output() -> None:
    graph = product()
    cost = model(graph).mode(mode(graph, "y"))
    assert cost.compute_s == near(FLOPS / BF16)
    assert cost.memory_s == near((X + W + Y) / HBM)
    assert (cost.levels_s, cost.alpha_s) == ({}, 0.0)


@pytest.mark.parametrize(
    ("dtype", "weight_bytes", "rate"),
    [
        ("fp4", 256 * 512 / 2, FP4),
        ("mxfp4", 256 * 512 / 2 + 512 * 256 / 32, FP4),  # one byte of scale per 32 elements
        ("fp8", 256 * 512, FP8),
        ("fp8_block", 256 * 512 + 2 * 4, FP8),  # one byte per block of 128 × 128
        ("bf16", 2 * 256 * 512, BF16),
        ("fp32", 4 * 256 * 512, FP32),
    ],
)
def test_the_dtype_of_the_weight_sets_the_rate_and_scales_are_read(
    dtype: str, weight_bytes: float, rate: float
) -> None:
    graph = product(dtype)
    cost = model(graph).mode(mode(graph, "y"))
    assert cost.compute_s == near(FLOPS / rate)
    assert cost.memory_s == near((X + weight_bytes + Y) / HBM)


def test_an_operator_may_name_its_rate() -> None:
    graph = product("fp8", compute="fp4")
    assert model(graph).mode(mode(graph, "y")).compute_s == near(FLOPS / FP4)


def test_flops_at_several_rates_add_up() -> None:
    g = GraphBuilder("attention", batch=2, head=4, width=16, window=8, ctx=64, index_width=4)
    q = g.input("q", "batch head width")
    operands = [
        q,
        g.cache("k", "batch window width"),
        g.cache("c", "batch ctx width"),
        g.cache("i", "batch ctx index_width", "fp4"),
    ]
    attrs = {"parts": ("window", "context", "index"), "select": 16, "index_heads": 2}
    graph = g.build(g.op("a", "attention", operands, "batch head width", compute="fp8", **attrs))
    cost = model(graph).mode(mode(graph, "a"))
    scores = 4 * (2 * 4 * 16) * (8 + 16)
    index = (2 * 2 * 4 + 3 * 2) * 2 * 64
    assert cost.compute_s == near(scores / FP8 + index / FP4)
    # q, the window, a quarter of the context (16 of 64 entries), all index keys, the output.
    read = 2 * 2 * 4 * 16 + 2 * 8 * 16 + 2 * 64 * 16 / 4 + 2 * 64 * 4 / 2
    assert cost.memory_s == near((read + 2 * 2 * 4 * 16) / HBM)


def test_a_cut_of_rows_divides_activations_and_flops_not_the_weight() -> None:
    graph = product()
    cost = model(graph, [4]).mode(mode(graph, "y", cut(graph, "y", "batch")))
    assert cost.compute_s == near(FLOPS / 4 / BF16)
    assert cost.memory_s == near((X / 4 + W + Y / 4) / HBM)


def test_a_cut_of_the_summed_label_leaves_the_output_whole() -> None:
    graph = product()
    cost = model(graph, [4]).mode(mode(graph, "y", cut(graph, "y", "hidden")))
    assert cost.compute_s == near(FLOPS / 4 / BF16)
    assert cost.memory_s == near((X / 4 + W / 4 + Y) / HBM)


def test_cuts_along_two_axes_multiply() -> None:
    graph = product()
    one = cut(graph, "y", "batch")
    cost = model(graph, [2, 4], domain=4).mode(mode(graph, "y", one, one))
    assert cost.compute_s == near(FLOPS / 8 / BF16)
    assert cost.memory_s == near((X / 8 + W + Y / 8) / HBM)
    cost = model(graph, [2, 4], domain=4).mode(mode(graph, "y", one, cut(graph, "y", "ffn")))
    assert cost.memory_s == near((X / 2 + W / 4 + Y / 8) / HBM)


@pytest.mark.parametrize("state", [REPLICATED, OWNER])
def test_run_whole_it_costs_what_it_costs_on_one_rank(state: str) -> None:
    graph = product()
    alone, whole = model(graph).mode(mode(graph, "y")), model(graph, [4]).mode(mode(graph, "y", state))
    assert (whole.compute_s, whole.memory_s) == (alone.compute_s, alone.memory_s)


def experts(tokens: int) -> Graph:
    g = GraphBuilder("experts", batch=tokens, expert=8, hidden=64, ffn=128)
    x, gates = g.input("x", "batch hidden"), g.input("gates", "batch expert")
    rows = g.op("rows", "dispatch", [x, gates], "batch expert hidden", fill=0.25)
    up = g.op("up", "matmul", [rows, g.weight("w", "expert hidden ffn")], "batch expert ffn", fill=0.25)
    return g.build(up)


@pytest.mark.parametrize(
    ("assumptions", "tokens", "share"),
    [
        (PHYSICAL, 1, 0.25),
        (PHYSICAL, 3, 1 - 0.75**3),
        (PHYSICAL, 16, 1 - 0.75**16),
        (PAPER, 1, 0.25),
        (PAPER, 3, 0.75),
        (PAPER, 4, 1.0),
        (PAPER, 16, 1.0),
    ],
)
def test_weights_of_experts_that_no_token_chose_are_not_read(
    assumptions: Assumptions, tokens: int, share: float
) -> None:
    graph = experts(tokens)
    cost = model(graph, assumptions=assumptions).mode(mode(graph, "up"))
    weight, rows, out = 2 * 8 * 64 * 128, 2 * tokens * 2 * 64, 2 * tokens * 2 * 128
    assert cost.memory_s == near((rows + weight * share + out) / HBM)
    assert cost.compute_s == near(2 * tokens * 2 * 64 * 128 / BF16)


@pytest.mark.parametrize("assumptions", [PHYSICAL, PAPER], ids=lambda a: a.name)
def test_a_rank_with_some_of_the_experts_sees_all_tokens(assumptions: Assumptions) -> None:
    graph = experts(2)
    cost = model(graph, [4], assumptions=assumptions).mode(mode(graph, "up", cut(graph, "up", "expert")))
    share = 1 - 0.75**2 if assumptions is PHYSICAL else 0.5
    weight, rows, out = 2 * 8 * 64 * 128 / 4, 2 * 2 * 2 * 64 / 4, 2 * 2 * 2 * 128 / 4
    assert cost.memory_s == near((rows + weight * share + out) / HBM)


def test_an_embedding_reads_the_rows_of_its_tokens_or_the_whole_table() -> None:
    g = GraphBuilder("ends", batch=16, vocab=1024, hidden=32)
    ids, table = g.input("ids", "batch", "int32"), g.weight("table", "vocab hidden")
    graph = g.build(g.op("rows", "embed", [ids, table], "batch hidden"))
    read, written = 4 * 16, 2 * 16 * 32
    row, whole = 2 * 32, 2 * 1024 * 32
    assert model(graph).mode(mode(graph, "rows")).memory_s == near((read + 16 * row + written) / HBM)
    assert model(graph, assumptions=PAPER).mode(mode(graph, "rows")).memory_s == near((read + whole + written) / HBM)
    # More tokens than rows: every row once.
    crowd = model(graph, batch=4096).mode(mode(graph, "rows"))
    assert crowd.memory_s == near((4 * 4096 + whole + 2 * 4096 * 32) / HBM)


def test_a_cache_is_appended_to_in_place() -> None:
    g = GraphBuilder("append", batch=8, ctx=64, width=32)
    new, cache = g.input("new", "batch width"), g.cache("cache", "batch ctx width")
    graph = g.build(g.op("after", "kv_append", [new, cache], "batch ctx width", "fp8", role=Role.KV_CACHE, rate=0.5))
    # Reads the new row, writes half an entry of each request: not the 64 that are there.
    assert model(graph).mode(mode(graph, "after")).memory_s == near((2 * 8 * 32 + 8 * 0.5 * 32) / HBM)


def test_what_stays_on_chip_is_neither_written_nor_read() -> None:
    g = GraphBuilder("fused", batch=64, hidden=256, ffn=512)
    x = g.input("x", "batch hidden")
    h = g.op("h", "matmul", [x, g.weight("w", "hidden ffn")], "batch ffn", role=Role.ON_CHIP)
    graph = g.build(g.op("y", "activation", [h], "batch ffn"))
    assert model(graph).mode(mode(graph, "h")).memory_s == near((X + W) / HBM)
    assert model(graph).mode(mode(graph, "y")).memory_s == near(Y / HBM)


def test_partial_attention_carries_its_statistics() -> None:
    graph = attention()
    fold = cut(graph, "a", "ctx")
    # An output row has 32 elements of BF16; beside them travel a maximum and a sum in FP32.
    out, scale = 2 * 4 * 2 * 32, 1 + 8 / 64
    tensor = graph.op_by_name["a"].output
    physical, paper = model(graph, [2]), model(graph, [2], assumptions=PAPER)
    assert physical.bytes(tensor, (PARTIAL,)) == near(out * scale)
    assert physical.bytes(tensor, (REPLICATED,)) == near(out)
    assert physical.bytes(tensor, ("batch",)) == near(out / 2)
    assert paper.bytes(tensor, (PARTIAL,)) == near(out)
    q, caches = out, 4 * (16 + 128) * 32 / 2
    assert physical.mode(mode(graph, "a", fold)).memory_s == near((q + caches + out * scale) / HBM)
    assert paper.mode(mode(graph, "a", fold)).memory_s == near((q + caches + out) / HBM)


def attention() -> Graph:
    g = GraphBuilder("attention", batch=4, head=2, width=32, window=16, ctx=128)
    operands = [
        g.input("q", "batch head width"),
        g.cache("k", "batch window width"),
        g.cache("c", "batch ctx width"),
    ]
    attrs = {"parts": ("window", "context"), "value_bytes": 64.0}
    return g.build(g.op("a", "attention", operands, "batch head width", **attrs))


def test_only_values_that_grow_when_partial_are_scaled() -> None:
    graph = product()
    assert model(graph, [2]).partial_scale == {}
    assert model(graph, [2]).bytes(graph.op_by_name["y"].output, (PARTIAL,)) == Y


def test_what_does_not_divide_is_impossible() -> None:
    graph = product()
    rows, sums = cut(graph, "y", "batch"), cut(graph, "y", "hidden")
    assert np.isinf(model(graph, [4], batch=6).mode(mode(graph, "y", rows)).local_s)
    assert np.isfinite(model(graph, [4], batch=6).mode(mode(graph, "y", sums)).local_s)
    # 8 does not divide by the 4 × 4 ranks that both axes make together.
    assert np.isinf(model(graph, [4, 4], domain=4, batch=8).mode(mode(graph, "y", rows, rows)).local_s)
    assert np.isfinite(model(graph, [4, 4], domain=4, batch=8).mode(mode(graph, "y", rows, sums)).local_s)


def test_an_extent_that_only_a_spec_cuts_has_to_divide_too() -> None:
    g = GraphBuilder("append", batch=8, ctx=6, width=32)
    new, cache = g.input("new", "batch width"), g.cache("cache", "batch ctx width")
    graph = g.build(g.op("after", "kv_append", [new, cache], "batch ctx width", role=Role.KV_CACHE))
    owner = cut(graph, "after", "ctx")
    assert owner.loops == ()
    assert np.isinf(model(graph, [4]).mode(mode(graph, "after", owner)).local_s)
    assert np.isfinite(model(graph, [3], domain=1).mode(mode(graph, "after", owner)).local_s)


def grouped_attention(heads: int, shared: int) -> Graph:
    g = GraphBuilder("attention", batch=2, seq=4, head=heads, kv=shared, ctx=4, key=8, value=8)
    k, v = g.input("k", "batch ctx kv key"), g.input("v", "batch ctx kv value")
    return g.build(g.op("y", "grouped_attention", [g.input("q", "batch seq head key"), k, v], "batch seq head value"))


def pooled(positions: int, entries: int) -> Graph:
    g = GraphBuilder("pool", batch=2, seq=positions, ctx=entries, width=8)
    return g.build(g.op("y", "pool", [g.input("x", "batch seq width")], "batch ctx width"))


@pytest.mark.parametrize(("dim", "seen"), [("seq", 32 + 16 - 1), ("kv", 128)])
def test_a_window_is_read_where_the_queries_of_a_rank_see_it(dim: str, seen: int) -> None:
    """128 queries over four ranks, each of which looks back at 16 positions: its own and 15 before them."""
    g = GraphBuilder("window", batch=1, seq=128, head=4, kv=4, ctx=128, key=8, value=8)
    k, v = g.input("k", "batch ctx kv key"), g.input("v", "batch ctx kv value")
    graph = g.build(g.op("y", "grouped_attention", [g.input("q", "batch seq head key"), k, v], "batch seq head value",
                         causal=True, window=16))  # fmt: skip
    cost = model(graph, [4]).mode(mode(graph, "y", cut(graph, "y", dim)))
    heads = 1 if dim == "kv" else 4
    assert cost.memory_s == near((2 * 2 * 128 * 8 + 2 * 2 * seen * heads * 8) / HBM)


@pytest.mark.parametrize(
    ("whole", "torn", "dim"),
    [
        (grouped_attention(8, 4), grouped_attention(6, 4), "kv"),  # 2 + 2 + 2 heads, and 0: the third one reads group 1
        (pooled(16, 4), pooled(10, 4), "seq"),  # 3 + 3 + 3 + 1 positions: the second half begins inside entry 1
    ],
)
def test_shards_that_divide_but_tear_a_group_are_impossible(whole: Graph, torn: Graph, dim: str) -> None:
    assert np.isfinite(model(whole, [2], domain=2).mode(mode(whole, "y", cut(whole, "y", dim))).local_s)
    assert np.isinf(model(torn, [2], domain=2).mode(mode(torn, "y", cut(torn, "y", dim))).local_s)
    assert np.isfinite(model(torn, [1], domain=1).mode(mode(torn, "y", cut(torn, "y", dim))).local_s)


def test_batch_sizes_that_do_not_divide_are_impossible_one_by_one() -> None:
    graph = product()
    batches = np.array([4.0, 6.0, 8.0])
    cost = model(graph, [4], batch=batches).mode(mode(graph, "y", cut(graph, "y", "batch")))
    assert (cost.compute_s == np.inf).tolist() == (cost.memory_s == np.inf).tolist() == [False, True, False]
    assert cost.memory_s[2] == near((2 * 2 * 256 + W + 2 * 2 * 512) / HBM)


def test_a_batch_replaces_the_extent_of_that_name_only() -> None:
    assert model(product(), batch=7).sizes == {"batch": 7, "hidden": 256, "ffn": 512}
    assert model(product()).sizes["batch"] == 64
    g = GraphBuilder("grid", rows=8, columns=8)
    graph = g.build(g.op("y", "activation", [g.input("x", "rows columns")], "rows columns"))
    assert model(graph, batch=7).sizes == {"rows": 8, "columns": 8}


def test_parts_divides_and_local() -> None:
    costs = model(product(), [2, 4], domain=4)
    assert costs.parts(("batch", "batch")) == {"batch": 8}
    assert costs.parts(("batch", "hidden")) == {"batch": 2, "hidden": 4}
    assert costs.parts((REPLICATED, PARTIAL)) == costs.parts((OWNER, OWNER)) == {}
    assert bool(costs.divides({"batch": 64})) and not costs.divides({"batch": 8, "hidden": 3})
    assert costs.local({"batch": 8}) == {"batch": 8, "hidden": 256, "ffn": 512}
    with pytest.raises(ValueError, match="zip"):
        costs.parts(("batch",))


def test_a_rate_that_the_device_lacks_is_an_error() -> None:
    graph = product("fp8")
    costs = model(graph)
    device = replace(costs.cluster.device, peaks={"bf16": 1e12})
    lacking = CostModel.of(graph, replace(costs.cluster, device=device), costs.mesh, PHYSICAL)
    with pytest.raises(HardwareError, match="fp8"):
        lacking.mode(mode(graph, "y"))


def test_peaks_needed_are_those_of_all_operators() -> None:
    g = GraphBuilder("mixed", batch=4, hidden=8, ffn=16)
    h = g.op("h", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden ffn", "mxfp4")], "batch ffn")
    graph = g.build(g.op("y", "activation", [h], "batch ffn"))
    assert peaks_needed(graph) == {"fp4", "bf16"}
