"""Costs and refusals of the operators of latent and linear attention, by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rooflang.assumptions import PHYSICAL
from rooflang.errors import GraphError
from rooflang.ir.cut import CutKind
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.kinds.mla import attended
from rooflang.ir.op import op_kind, signature
from rooflang.ir.tensor import Tensor

Make = Callable[[GraphBuilder], Tensor]

SIZES = {
    "batch": 3, "seq": 8, "ctx": 8, "head": 5, "query": 12, "nope": 8, "rank": 16, "width": 20, "chosen": 4,
    "key": 6, "value": 10, "tap": 4, "h": 32, "other": 2,
}  # fmt: skip


def graph(make: Make, **sizes: int) -> Graph:
    builder = GraphBuilder("one", **{**SIZES, **sizes})
    return builder.build(make(builder))


def flops(make: Make, local: dict[str, float] | None = None) -> dict[str, float]:
    built = graph(make)
    op = built.ops[-1]
    return dict(op_kind(op.kind).flops(op, {**built.sizes, **(local or {})}, built.sizes))


def shares(make: Make, local: dict[str, float] | None = None) -> list[float]:
    """The share of each operand that is read, then that of the output that is written."""
    built = graph(make)
    op = built.ops[-1]
    here = {**built.sizes, **(local or {})}
    kind = op_kind(op.kind)
    read = [kind.read_fraction(op, i, here, built.sizes, PHYSICAL) for i in range(len(op.operands))]
    return [*read, kind.write_fraction(op, here, built.sizes)]


# -- latent attention -------------------------------------------------------------------------------------------------


def absorb(g: GraphBuilder) -> Tensor:
    return g.op(
        "y", "absorb_query", [g.input("q", "batch head query"), g.weight("w", "head nope rank")], "batch head rank"
    )


def attend(chosen: bool = False, causal: bool = False) -> Make:
    def make(g: GraphBuilder) -> Tensor:
        rows = "batch seq head"
        operands = [g.input("a", f"{rows} rank"), g.input("q", f"{rows} query"), g.cache("kv", "batch ctx width")]
        attrs: dict[str, object] = {"causal": True} if causal else {}
        if chosen:
            operands.append(g.input("ids", "batch seq chosen", "int32"))
            attrs["select"] = 4
        return g.op("y", "latent_attention", operands, f"{rows} rank", **attrs)

    return make


def test_absorption_takes_the_unrotated_part_of_a_query() -> None:
    assert flops(absorb) == {"bf16": 2 * 3 * 5 * 8 * 16}
    assert shares(absorb) == [8 / 12, 1, 1]


def test_a_score_costs_the_entry_and_a_value_its_rank() -> None:
    assert flops(attend()) == {"bf16": 2 * 3 * 8 * 5 * 8 * (20 + 16)}
    # Of the queries only the rotary part, 4 of 12 elements: the rest has come absorbed.
    assert shares(attend()) == [1, 4 / 12, 1, 1]


def test_a_causal_query_attends_itself_and_what_is_before() -> None:
    built = graph(attend(causal=True))
    assert attended(built.ops[-1], built.sizes) == sum(range(1, 9)) / 8
    chosen = graph(attend(chosen=True, causal=True))
    assert attended(chosen.ops[-1], chosen.sizes) == (1 + 2 + 3 + 5 * 4) / 8
    assert attended(graph(attend(chosen=True)).ops[-1], SIZES) == 4


def test_chosen_entries_are_read_once_each_at_most() -> None:
    assert shares(attend(chosen=True), {"seq": 1}) == [1, 4 / 12, 4 / 8, 1, 1]
    assert shares(attend(chosen=True), {"seq": 4})[2] == 1


def test_a_share_of_the_context_has_its_share_of_the_keys() -> None:
    assert flops(attend(chosen=True), {"ctx": 2}) == {"bf16": 2 * 3 * 8 * 5 * 1 * (20 + 16)}


# -- linear attention -------------------------------------------------------------------------------------------------


def delta(kind: str, **attrs: object) -> Make:
    rows = "batch head" if kind in ("delta_update", "delta_read") else "batch seq head"

    def make(g: GraphBuilder) -> Tensor:
        k, v, f = g.input("k", f"{rows} key"), g.input("v", f"{rows} value"), g.input("f", f"{rows} key")
        gates = [f, g.input("b", rows), g.weight("r", "head"), g.weight("s", "head key")]
        state = "batch head key value"
        if kind == "delta_update":
            return g.op("y", kind, [k, v, *gates, g.state("S", state)], state, **attrs)
        if kind == "delta_read":
            return g.op("y", kind, [k, g.input("S", state)], f"{rows} value", **attrs)
        if kind == "delta_scan":
            return g.op("y", kind, [g.input("q", f"{rows} key"), k, v, *gates], f"{rows} value", **attrs)
        return g.op("y", kind, [k, v, *gates], state, **attrs)

    return make


def test_one_position_costs_seven_flops_an_element_of_the_state() -> None:
    """Decay, answer (2), outer product (2), output (2); the published programs count 7·K·V + 2·V a head, and gates."""
    heads, state = 3 * 5, 6 * 10
    update, read = flops(delta("delta_update"))["bf16"], flops(delta("delta_read"))["bf16"]
    gates = (3 * 6 + 1) * 2 + 5 * 6 + 3
    assert update + read == heads * (7 * state + 2 * 10 + gates)


def test_the_state_is_read_and_written_once() -> None:
    assert shares(delta("delta_update")) == [1] * 8
    assert shares(delta("delta_read", fused=True)) == [1, 0, 1]
    assert shares(delta("delta_read")) == [1, 1, 1]


def test_a_scan_costs_its_chunks() -> None:
    rows, each = 3 * 8 * 5, 6 * 6 * 10 + 3 * 64 * 6 + 64**2 + 2 * (3 * 6 + 1) + 5 * 6 + 3
    assert flops(delta("delta_scan")) == {"bf16": rows * each}
    assert shares(delta("delta_scan")) == [1] * 8


def test_a_shard_of_a_sequence_makes_a_map_and_corrects_its_outputs() -> None:
    rows, whole = 3 * 4 * 5, flops(delta("delta_scan"))["bf16"]
    assert flops(delta("delta_scan"), {"seq": 4})["bf16"] == whole / 2 + rows * 4 * 6 * (6 + 10)
    # Queries and decays once more; outputs written, read and written again.
    assert shares(delta("delta_scan"), {"seq": 4}) == [2, 1, 1, 2, 1, 1, 1, 3]


def test_the_last_state_comes_with_the_scan() -> None:
    assert flops(delta("delta_final", fused=True)) == {}
    assert shares(delta("delta_final", fused=True)) == [0] * 6 + [1]
    assert flops(delta("delta_final"))["bf16"] > 0


def test_no_cut_of_keys() -> None:
    for kind in ("delta_update", "delta_read", "delta_scan", "delta_final"):
        cuts = signature(graph(delta(kind)).ops[-1])
        assert {"batch", "head", "value"} <= {cut.dim for cut in cuts}
        assert not [cut for cut in cuts if "key" in (*cut.operands, cut.out)]


def test_a_sequence_is_scanned_and_exchanges_maps() -> None:
    scan = next(c for c in signature(graph(delta("delta_scan", map_bytes=384)).ops[-1]) if c.dim == "seq")
    assert (scan.kind, scan.combine, scan.stat_rows, scan.stat_bytes) == (
        CutKind.SCAN, "affine", ("batch", "head"), 384,
    )  # fmt: skip


def conv(g: GraphBuilder) -> Tensor:
    return g.op("y", "short_conv", [g.input("x", "batch seq h"), g.weight("w", "h tap")], "batch seq h", taps=4)


def test_a_convolution_hands_on_its_last_inputs() -> None:
    assert flops(conv) == {"bf16": (2 * 4 + 4) * 3 * 8 * 32}
    halo = next(c for c in signature(graph(conv).ops[-1]) if c.dim == "seq")
    assert (halo.kind, halo.combine, halo.stat_rows, halo.stat_bytes) == (CutKind.SCAN, "suffix", ("batch", "h"), 3 * 2)


# -- the rest ---------------------------------------------------------------------------------------------------------


def mix(g: GraphBuilder) -> Tensor:
    vectors = [g.input(f"v{i}", "batch h") for i in range(3)]
    return g.op("y", "depth_mix", [g.weight("gain", "h"), g.weight("query", "h"), *vectors], "batch h")


def test_a_mix_costs_seven_flops_an_element_in_fp32() -> None:
    assert flops(mix) == {"fp32": 7 * 3 * 3 * 32}


def norm(g: GraphBuilder) -> Tensor:
    operands = [g.input("x", "batch h"), g.weight("gain", "h"), g.weight("bias", "h")]
    return g.op("y", "layer_norm", operands, "batch h", over="h")


def gate(g: GraphBuilder) -> Tensor:
    return g.op("y", "sigmoid_mul", [g.input("x", "batch h"), g.input("g", "batch h")], "batch h")


def test_elementwise_flops() -> None:
    assert flops(norm) == {"bf16": 7 * 3 * 32}
    assert flops(gate) == {"bf16": 5 * 3 * 32}


# -- refusals ---------------------------------------------------------------------------------------------------------


def refused(kind: str, operands: str, out: str, **attrs: object) -> Make:
    """One operator on inputs whose dims are separated by commas."""

    def make(g: GraphBuilder) -> Tensor:
        inputs = [g.input(f"x{i}", dims.strip()) for i, dims in enumerate(operands.split(","))]
        return g.op("y", kind, inputs, out, **attrs)

    return make


ROWS = "batch seq head key, batch seq head value, batch seq head key, batch seq head"
STEP = "batch head key, batch head value, batch head key, batch head, head, head key, batch head key value"
ATTENDED = "batch head rank, batch head query, batch ctx width"
OUT = "batch head rank"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (refused("latent_norm", "batch width, width", "batch width"), "a dim that the entries lack"),
        (refused("absorb_query", "batch query, head nope rank", "batch rank"), "head, query"),
        (refused("absorb_query", "batch head query, head nope rank", "batch head width"), "the output"),
        (refused("latent_attention", "batch head rank, batch head query, batch ctx query", OUT), "entries"),
        (refused("latent_attention", ATTENDED, OUT, select=4), "4 operands"),
        (refused("latent_attention", ATTENDED, OUT, causal=True), "nothing is causal"),
        (refused("latent_attention", f"{ATTENDED}, head chosen", OUT, select=4), "tokens, ids"),
        (refused("short_conv", "batch seq h, h seq", "batch seq h", taps=8), "batch positions channels"),
        (refused("short_conv", "batch seq h, h tap", "batch seq h", taps=3), "4, as the weight has"),
        (refused("short_conv", "batch seq h, h tap, tap", "batch seq h", taps=4), "x2"),
        (refused("conv_push", "batch tap h, batch tap h", "batch tap h"), "batch tap"),
        (refused("conv_step", "batch h tap, h tap", "batch h"), "batch tap"),
        (refused("delta_update", STEP, "batch head key"), "key value"),
        (refused("delta_update", "batch head key, batch head key", "batch head key"), "7 operands"),
        (refused("delta_read", "batch head key, batch head value key", "batch head value"), "key value"),
        (refused("delta_scan", f"batch seq head value, {ROWS}, head, head key", "batch seq head value"), "head"),
        (refused("delta_scan", f"batch seq head key, {ROWS}, key, head key", "batch seq head value"), "head"),
        (refused("delta_final", f"{ROWS}, head, head key", "batch head value key"), "key value"),
        (refused("depth_mix", "h, h", "h"), "a gain, a query and vectors"),
        (refused("depth_mix", "h, batch, batch h", "batch h"), "expected: batch"),
        (refused("depth_mix", "other, other, batch h", "batch h"), "the mixed dim alone"),
        (refused("layer_norm", "batch h, h, h", "batch h", over="other"), "over=<label>"),
        (refused("layer_norm", "batch h, h, batch", "batch h", over="h"), "h"),
        (refused("sigmoid_mul", "batch, batch h", "batch h"), "batch h"),
        (refused("rms_norm", "batch h, batch", "batch h", over="h"), "h"),
    ],
)  # fmt: skip
def test_refused(make: Make, says: str) -> None:
    with pytest.raises(GraphError) as caught:
        graph(make)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("make", "sizes"),
    [(absorb, {"nope": 13}), (attend(), {"rank": 21}), (attend(), {"width": 29})],
    ids=["more than a query", "more than an entry", "more rotary elements than a query has"],
)
def test_parts_are_no_larger_than_the_whole(make: Make, sizes: dict[str, int]) -> None:
    with pytest.raises(GraphError):
        graph(make, **sizes)
