"""What crosses the network: collectives between operators, and what operators exchange inside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.cost import CostModel
from rooflang.hw import Mesh
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, CutKind
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.layout import make_transfer
from rooflang.ir.tensor import Tensor

from .test_model import attention, cut, experts, mode, near, product
from .toy import HBM, IB, IB_S, NVLINK, NVLINK_S, model, toy

X = Tensor(name="x", dims=("batch", "hidden"), dtype="bf16")
BYTES = 2 * 64 * 256


def move(before: str, after: str) -> tuple[float, float]:
    """Seconds and α of a transfer of x along one axis of four ranks in one domain."""
    cost = model(product(), [4]).transfer(X, make_transfer("x", (before,), (after,)))
    assert set(cost.levels_s) <= {"nvlink"}
    assert (cost.compute_s, cost.memory_s) == (0.0, 0.0)
    return cost.levels_s.get("nvlink", 0.0), cost.alpha_s


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ("batch", REPLICATED, 0.75 * BYTES),  # all_gather: three quarters of the whole arrive
        (PARTIAL, REPLICATED, 1.5 * BYTES),  # all_reduce: there and back
        (PARTIAL, "batch", 0.75 * BYTES),  # reduce_scatter: three quarters of the whole leave
        ("batch", "hidden", 0.75 * BYTES / 4),  # all_to_all: three quarters of a shard leave
        (OWNER, REPLICATED, BYTES),  # broadcast
    ],
)
def test_collectives_along_one_axis(before: str, after: str, moved: float) -> None:
    seconds, alpha = move(before, after)
    assert seconds == near(moved / NVLINK)
    assert alpha == near(NVLINK_S)


@pytest.mark.parametrize(("before", "after"), [(REPLICATED, "batch"), (REPLICATED, OWNER)])
def test_a_slice_moves_nothing(before: str, after: str) -> None:
    assert move(before, after) == (0.0, 0.0)


def test_other_axes_make_what_a_collective_moves_smaller() -> None:
    costs = model(product(), [2, 4], domain=4)
    gather = costs.transfer(X, make_transfer("x", ("hidden", "batch"), ("hidden", REPLICATED)))
    assert gather.levels_s == near({"nvlink": 0.75 * BYTES / 2 / NVLINK})
    across = costs.transfer(X, make_transfer("x", ("batch", "hidden"), (REPLICATED, "hidden")))
    assert across.levels_s == near({"ib": 0.5 * BYTES / 4 / IB})
    assert across.alpha_s == near(IB_S)


def test_axes_that_move_together_are_one_group() -> None:
    costs = model(product(), [2, 4], domain=4)
    joint = costs.transfer(X, make_transfer("x", ("batch", "batch"), (REPLICATED, REPLICATED)))
    assert joint.levels_s == near({"nvlink": 0.75 * BYTES / NVLINK, "ib": 0.5 * BYTES / 4 / IB})
    assert joint.alpha_s == near(IB_S)


def test_partial_values_travel_with_their_statistics() -> None:
    graph = attention()
    out = graph.op_by_name["a"].output
    size = 2 * 4 * 2 * 32
    for assumptions, scale in ((PHYSICAL, 1 + 8 / 64), (PAPER, 1.0)):
        costs = model(graph, [2], assumptions=assumptions)
        scatter = costs.transfer(out, make_transfer("a", (PARTIAL,), ("batch",)))
        assert scatter.network_s == near(0.5 * size * scale / NVLINK)
        # What was combined has no statistics any more.
        assert costs.transfer(out, make_transfer("a", ("batch",), (REPLICATED,))).network_s == near(0.5 * size / NVLINK)


def test_a_transfer_to_shares_that_do_not_divide_is_impossible() -> None:
    one = model(product(), [4], batch=6)
    many = model(product(), [4], batch=np.array([4.0, 6.0]))
    for transfer in (
        make_transfer("x", (PARTIAL,), ("batch",)),
        make_transfer("x", ("batch",), (REPLICATED,)),
        make_transfer("x", (REPLICATED,), ("batch",)),
    ):
        assert np.isinf(one.transfer(X, transfer).local_s)
        assert np.isinf(many.transfer(X, transfer).local_s).tolist() == [False, True]


# -- routed cuts ------------------------------------------------------------------------------------------------------


def routed() -> tuple[Graph, Graph]:
    """Dispatch of 16 tokens to 2 of 8 experts, and the combine."""
    g = GraphBuilder("combine", batch=16, expert=8, hidden=64)
    rows, gates = g.input("rows", "batch expert hidden"), g.input("gates", "batch expert")
    rows = replace(rows, fill=0.25)
    back = g.build(g.op("y", "combine", [rows, gates], "batch hidden"))
    return experts(16), back


@pytest.mark.parametrize(
    ("assumptions", "copies"),
    [
        # One copy per expert, or per rank that hosts at least one of the two: 1 − (3/4)² of four ranks instead of 2.
        (replace(PHYSICAL, dispatch_copies="expert"), 1.0),
        (PHYSICAL, 4 * (1 - 0.75**2) / 2),
    ],
    ids=["expert", "rank"],
)
def test_routed_rows_cross_once_per_copy(assumptions: Assumptions, copies: float) -> None:
    dispatch, combine = routed()
    # A rank holds 4 tokens with 2 rows of 64 BF16 each; three quarters belong to other ranks.
    held = 4 * 2 * 64 * 2
    for graph, name in ((dispatch, "rows"), (combine, "y")):
        cost = model(graph, [4], assumptions=assumptions).mode(
            mode(graph, name, cut(graph, name, "batch", CutKind.ROUTE))
        )
        assert cost.levels_s == near({"nvlink": 0.75 * held * copies / NVLINK})
        assert cost.alpha_s == near(NVLINK_S)
        x, gates = 2 * 4 * 64, (2 * 4 * 8)
        assert cost.memory_s == near((x + gates + held) / HBM)


def test_remote_rows_may_cost_no_local_traffic_and_no_latency() -> None:
    dispatch, combine = routed()
    held = 4 * 2 * 64 * 2
    for graph, name in ((dispatch, "rows"), (combine, "y")):
        cost = model(graph, [4], assumptions=PAPER).mode(mode(graph, name, cut(graph, name, "batch", CutKind.ROUTE)))
        assert cost.network_s == near(0.75 * held / NVLINK)
        assert cost.alpha_s == 0.0
        assert cost.memory_s == near((2 * 4 * 64 + 2 * 4 * 8 + held / 4) / HBM)


def test_routed_over_two_axes_spans_both_levels() -> None:
    graph = experts(16)
    row = cut(graph, "rows", "batch", CutKind.ROUTE)
    cost = model(graph, [2, 4], domain=4).mode(mode(graph, "rows", row, row))
    held, share = 2 * 2 * 64 * 2, 1 / 8
    copies = (1 - (1 - share) ** 2) / (2 * share)
    assert cost.levels_s == near({"nvlink": held * copies * 3 / 8 / NVLINK, "ib": held * copies * 4 / 8 / IB})
    assert cost.alpha_s == near(IB_S)


def test_routed_over_one_axis_with_experts_cut_over_another() -> None:
    """Tokens whole on both ranks of the outer axis, which has half of the experts each: copies go to ranks of the own
    half only, and a destination hosts an eighth of all experts."""
    graph = experts(16)
    owned, row = cut(graph, "rows", "expert"), cut(graph, "rows", "batch", CutKind.ROUTE)
    cost = model(graph, [2, 4], domain=4).mode(mode(graph, "rows", owned, row))
    held = 4 * 1 * 64 * 2  # a quarter of the tokens, one of their two rows on average
    copies = (1 - (7 / 8) ** 2) / (2 / 8)
    assert cost.levels_s == near({"nvlink": held * copies * 3 / 4 / NVLINK})


def test_copies_per_rank_against_a_count_of_all_choices() -> None:
    """Expected ranks hit by k independent choices among E experts, E/R of them on each of R ranks."""
    experts_, ranks, k = 8, 4, 2
    hit = [len({a * ranks // experts_, b * ranks // experts_}) for a in range(experts_) for b in range(experts_)]
    graph = experts(16)
    row = cut(graph, "rows", "batch", CutKind.ROUTE)
    one, each = (
        model(graph, [4], assumptions=replace(PHYSICAL, dispatch_copies=what)).mode(mode(graph, "rows", row)).network_s
        for what in ("rank", "expert")
    )
    assert one / each == near(sum(hit) / len(hit) / k)


# -- summaries --------------------------------------------------------------------------------------------------------


def test_a_norm_cut_by_its_own_label_exchanges_sums_of_squares() -> None:
    g = GraphBuilder("norm", batch=64, hidden=256)
    graph = g.build(g.op("y", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden"))
    cost = model(graph, [4]).mode(mode(graph, "y", cut(graph, "y", "hidden")))
    assert cost.levels_s == near({"nvlink": 1.5 * 64 * 4 / NVLINK})
    assert cost.alpha_s == near(NVLINK_S)
    # Rows cut over another axis: a rank exchanges those that it has.
    both = mode(graph, "y", cut(graph, "y", "batch"), cut(graph, "y", "hidden"))
    assert model(graph, [2, 4], domain=4).mode(both).network_s == near(1.5 * 32 * 4 / NVLINK)
    assert model(graph, [4]).mode(mode(graph, "y", cut(graph, "y", "batch"))).levels_s == {}


def test_summaries_over_two_axes_are_exchanged_one_after_the_other() -> None:
    g = GraphBuilder("norm", batch=64, hidden=256)
    graph = g.build(g.op("y", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden"))
    row = cut(graph, "y", "hidden")
    cost = model(graph, [2, 4], domain=4).mode(mode(graph, "y", row, row))
    assert cost.levels_s == near({"ib": 1.0 * 64 * 4 / IB, "nvlink": 1.5 * 64 * 4 / NVLINK})
    assert cost.alpha_s == near(IB_S + NVLINK_S)
    inside = model(graph, [2, 2]).mode(mode(graph, "y", row, row))
    assert inside.levels_s == near({"nvlink": 2 * 1.0 * 64 * 4 / NVLINK})
    assert inside.alpha_s == near(2 * NVLINK_S)


@pytest.mark.parametrize("assumptions", [PHYSICAL, PAPER], ids=lambda a: a.name)
@pytest.mark.parametrize(
    ("combine", "moved"),
    [("suffix", 64 * 4), ("affine", 0.75 * 4 * 64 * 4), ("topk", 0.75 * 4 * 64 * 4)],
)
def test_scans_hand_on_what_the_next_rank_needs_or_gather_maps(
    combine: str, moved: float, assumptions: Assumptions
) -> None:
    g = GraphBuilder("norm", batch=64, hidden=256)
    graph = g.build(g.op("y", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden"))
    scan = replace(cut(graph, "y", "hidden"), kind=CutKind.SCAN, combine=combine)
    cost = model(graph, [4], assumptions=assumptions).mode(mode(graph, "y", scan))
    assert cost.levels_s == near({"nvlink": moved / NVLINK})
    # Maps are made before and applied after the exchange, and the last rank applies those of three others first.
    waits = 3 * 64 * 4 / HBM + cost.local_s if combine == "affine" else 0.0
    assert cost.alpha_s == near(NVLINK_S + waits)


@pytest.mark.parametrize("fused", [False, True])
def test_the_last_state_takes_the_maps_of_all_shards_which_a_scan_has_exchanged_already(fused: bool) -> None:
    g = GraphBuilder("linear", batch=4, seq=64, head=2, key=8, value=16)
    k, v = g.input("k", "batch seq head key"), g.input("v", "batch seq head value")
    graph = g.build(g.op("y", "linear_final", [k, v, g.weight("slopes", "head")], "batch head key value",
                         map_bytes=512, fused=fused))  # fmt: skip
    cost = model(graph, [4]).mode(mode(graph, "y", cut(graph, "y", "seq")))
    maps, state = 4 * 2 * 512, 2 * 4 * 2 * 8 * 16
    read = 0 if fused else 2 * 4 * 16 * 2 * (8 + 16) + 2 * 2
    assert cost.memory_s == near((read + state + 4 * maps) / HBM)
    assert cost.levels_s == ({} if fused else near({"nvlink": 3 * maps / NVLINK}))


def test_rows_collected_by_copies_pass_once_for_each_axis_that_cuts_what_they_are_collected_across() -> None:
    g = GraphBuilder("copies", batch=64, expert=16, width=8)
    rows = g.input("rows", "batch expert width")
    graph = g.build(g.op("y", "to_hbm", [rows], "batch expert width", one_pass=True, across="expert"))
    experts, size = cut(graph, "y", "expert"), 2 * 64 * 16 * 8
    assert model(graph, [4]).mode(mode(graph, "y", "R")).memory_s == 0.0
    assert model(graph, [4]).mode(mode(graph, "y", experts)).memory_s == near(size / 4 / HBM)
    both = model(graph, [2, 2], domain=4).mode(mode(graph, "y", experts, experts))
    assert both.memory_s == near(2 * size / 4 / HBM)


@pytest.mark.parametrize("assumptions", [PHYSICAL, PAPER], ids=lambda a: a.name)
def test_routes_on_cut_logits_gather_candidates(assumptions: Assumptions) -> None:
    g = GraphBuilder("router", batch=64, expert=8)
    graph = g.build(
        g.op("gates", "route", [g.input("logits", "batch expert", "fp32")], "batch expert", fill=0.25, top_k=2)
    )
    cost = model(graph, [4], assumptions=assumptions).mode(mode(graph, "gates", cut(graph, "gates", "expert")))
    # Two candidates of 8 bytes per token from each of four ranks come together, three quarters from others.
    assert cost.network_s == near(0.75 * 4 * 64 * 2 * 8 / NVLINK)
    assert cost.alpha_s == near(NVLINK_S)


def test_candidates_of_a_cut_index_are_exchanged_unless_the_profile_forgets_them() -> None:
    g = GraphBuilder("sparse", batch=4, head=2, width=32, ctx=128, index_width=8)
    operands = [
        g.input("q", "batch head width"),
        g.cache("c", "batch ctx width"),
        g.cache("i", "batch ctx index_width"),
    ]
    attrs = {"parts": ("context", "index"), "select": 16, "index_heads": 2, "value_bytes": 64.0}
    graph = g.build(g.op("a", "attention", operands, "batch head width", **attrs))
    fold = cut(graph, "a", "ctx")
    cost = model(graph, [4]).mode(mode(graph, "a", fold))
    assert cost.network_s == near(0.75 * 4 * (4 * 16 * 8) / NVLINK)
    assert cost.alpha_s == near(NVLINK_S)
    forgotten = model(graph, [4], assumptions=PAPER).mode(mode(graph, "a", fold))
    assert (forgotten.network_s, forgotten.alpha_s) == (0.0, 0.0)


# -- sends between stages ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "level", "rate", "alpha"),
    [(0, "nvlink", NVLINK, NVLINK_S), (1, "ib", IB, IB_S), (2, "nvlink", NVLINK, NVLINK_S)],
)
def test_a_send_crosses_the_level_between_two_stages(stage: int, level: str, rate: float, alpha: float) -> None:
    graph = product()
    cluster = toy(8)  # stages 0 and 1 in the first domain, 2 and 3 in the second
    mesh = Mesh.lay(cluster, [2], stages=4)
    for assumptions, expected in ((PHYSICAL, alpha), (replace(PHYSICAL, remote_latency=False), 0.0)):
        cost = CostModel.of(graph, cluster, mesh, assumptions).send(X, ("batch",), stage)
        assert cost.levels_s == near({level: BYTES / 2 / rate})
        assert cost.alpha_s == near(expected)
        assert cost.local_s == 0.0


def test_stages_of_whole_domains_send_between_domains() -> None:
    graph, cluster = product(), toy(16)
    costs = CostModel.of(graph, cluster, Mesh.lay(cluster, [2, 4], stages=2), PHYSICAL)
    assert costs.send(X, (REPLICATED, REPLICATED), 0).levels_s == near({"ib": BYTES / IB})


def test_stages_of_one_gpu_send_inside_their_domain_where_they_can() -> None:
    graph, cluster = product(), toy(12, domain=4)
    one_gpu = CostModel.of(graph, cluster, Mesh.lay(cluster, [], stages=12), PHYSICAL)
    levels = [*(one_gpu.send(X, (), stage).levels_s for stage in range(11))]
    assert [next(iter(level)) for level in levels] == ["nvlink"] * 3 + ["ib"] + ["nvlink"] * 3 + ["ib"] + ["nvlink"] * 3
