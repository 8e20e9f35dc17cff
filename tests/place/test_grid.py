"""The paper's grid: partitions, what every operator does, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.errors import PlacementError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.blocks import Blocks, split_blocks
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, CutKind, Spec
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.layout import Mode
from rooflang.models import Workload, load, model_names
from rooflang.place.certificate import certificate, replay
from rooflang.place.check import check_connected
from rooflang.place.grid import balanced, grid_plan, layer_labels, partition
from rooflang.place.lower import lower
from rooflang.place.plan import Plan

from .graphs import mlp, small_v4

R = REPLICATED


def test_the_remainder_of_the_layers_goes_to_the_first_stages() -> None:
    assert balanced(61, 16) == (4,) * 13 + (3,) * 3
    assert balanced(6, 6) == (1,) * 6
    assert balanced(6, 1) == (6,)


@given(layers=st.integers(1, 200), stages=st.integers(1, 200))
def test_balanced_stages_differ_by_at_most_one_layer(layers: int, stages: int) -> None:
    if stages > layers:
        with pytest.raises(ValueRangeError, match=f"{stages} pipeline stages for {layers} layers"):
            balanced(layers, stages)
        return
    counts = balanced(layers, stages)
    assert (len(counts), sum(counts)) == (stages, layers)
    assert max(counts) - min(counts) <= 1 and list(counts) == sorted(counts, reverse=True)


def test_no_stages_are_refused() -> None:
    with pytest.raises(ValueRangeError):
        balanced(4, 0)


def chain(*labels: str) -> Blocks:
    """A block per label, each reading the one before."""
    g = GraphBuilder("chain", batch=8)
    x = g.input("x", "batch")
    for index, label in enumerate(labels):
        g.block = label
        x = g.op(f"op{index}", "activation", [x], "batch")
    return split_blocks(g.build(x))


def test_the_ends_go_with_the_first_and_the_last_layer() -> None:
    blocks = chain("embed", "layers.0", "layers.1", "layers.2", "head")
    assert layer_labels(blocks) == ("layers.0", "layers.1", "layers.2")
    assert partition(blocks, [3]) == (blocks.sequence,)
    assert partition(blocks, [1, 2]) == (("embed", "layers.0"), ("layers.1", "layers.2", "head"))
    assert partition(blocks, [2, 1]) == (("embed", "layers.0", "layers.1"), ("layers.2", "head"))


def test_blocks_between_layers_go_with_the_layer_before() -> None:
    blocks = chain("embed", "mask", "layers.0", "mix", "layers.1", "pool", "head")
    assert partition(blocks, [1, 1]) == (("embed", "mask", "layers.0", "mix"), ("layers.1", "pool", "head"))


def test_where_no_block_is_called_a_layer_all_are() -> None:
    blocks = chain("a", "b", "c")
    assert layer_labels(blocks) == ("a", "b", "c")
    assert partition(blocks, [1, 2]) == (("a",), ("b", "c"))


@pytest.mark.parametrize("counts", [[2, 2], [1, 1], [3, 0], [4, -1]])
def test_a_partition_that_is_none_is_refused(counts: list[int]) -> None:
    with pytest.raises(ValueRangeError, match=f"has {sum(counts)} layers") as caught:
        partition(chain("layers.0", "layers.1", "layers.2"), counts)
    assert caught.value.expected == "positive numbers that sum to 3"


@given(st.data())
def test_every_block_is_in_one_stage_in_order(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(["layers.", "other"]), min_size=1, max_size=12))
    blocks = chain(*(f"{kind}{index}" for index, kind in enumerate(kinds)))
    layers = len(layer_labels(blocks))
    counts = balanced(layers, data.draw(st.integers(1, layers)))
    stages = partition(blocks, counts)
    assert sum(stages, ()) == blocks.sequence
    assert tuple(sum(label in layer_labels(blocks) for label in stage) for stage in stages) == counts


# -- plans of real models ---------------------------------------------------------------------------------------------


def shapes(gpus: int) -> Iterator[tuple[int, int, int]]:
    for pp in (1, 2):
        for cp in (1, 2, 4, 8, 16):
            if gpus % (cp * pp) == 0:
                yield gpus // (cp * pp), cp, pp


GRAPHS = {
    (stage, profile.name): small_v4(stage, profile) for stage in ("decode", "prefill") for profile in (PAPER, PHYSICAL)
}


def modes(plan: Plan, suffix: str) -> list[Mode]:
    """Modes of the kernels of all block kinds whose name ends so."""
    found = [mode for block in plan.blocks.values() for name, mode in block.modes.items() if name.endswith(suffix)]
    assert found, suffix
    return found


def kinds(mode: Mode) -> list[object]:
    return [choice if isinstance(choice, str) else (choice.kind, choice.dim) for choice in mode.choices]


@pytest.mark.parametrize("profile", ["paper", "physical"])
@pytest.mark.parametrize("stage", ["decode", "prefill"])
@pytest.mark.parametrize("shape", list(shapes(16)), ids=str)
def test_every_shape_connects_and_covers_every_operator(stage: str, profile: str, shape: tuple[int, int, int]) -> None:
    graph, (dp, cp, pp) = GRAPHS[stage, profile], shape
    cluster = Cluster.of("b300", 16)
    plan = grid_plan(graph, cluster, dp=dp, cp=cp, pp=pp)
    blocks = split_blocks(graph)
    check_connected(plan, blocks)
    assert [axis.size for axis in plan.mesh.axes] == [size for size in (dp, cp) if size > 1]
    assert (len(plan.stages), plan.mesh.gpus) == (pp, 16 // pp)
    assert plan.origin == f"grid dp{dp} cp{cp} ep{dp * cp} pp{pp}"
    for kind in blocks.kinds:
        assert list(plan.blocks[kind.name].modes) == [op.output.name for op in kind.ops]
    # Experts lie over all ranks of a stage, whatever cuts the tokens.
    for mode in modes(plan, ".expert_up"):
        assert mode.operands[1] == ("expert",) * len(plan.mesh.axes)


@pytest.mark.parametrize("stage", ["decode", "prefill"])
@pytest.mark.parametrize("model", {load(name).config.model_type: name for name in model_names()}.values())
def test_plans_of_a_model_of_every_family_lower_and_replay(model: str, stage: str) -> None:
    graph = load(model).build(Workload(stage=stage, context=4096, batch=8), PHYSICAL)  # type: ignore[arg-type]
    cluster, blocks = Cluster.of("b300", 16), split_blocks(graph)
    plan = grid_plan(graph, cluster, dp=4, cp=2, pp=2)
    check_connected(plan, blocks)
    again = replay(certificate(plan, blocks), blocks, cluster)
    assert (again.blocks, again.boundary, again.mesh, again.stages) == (
        plan.blocks,
        plan.boundary,
        plan.mesh,
        plan.stages,
    )
    kernels = [op.name for op in lower(plan, blocks).ops if op.kind == "kernel"]
    assert kernels == [op.output.name for op in graph.ops]


def both(stage: str, profile: str = "physical") -> Plan:
    return grid_plan(GRAPHS[stage, profile], Cluster.of("b300", 16), dp=4, cp=4, pp=1)


def test_in_decode_context_ranks_repeat_what_precedes_attention_and_share_requests_after_it() -> None:
    plan = both("decode")
    for name in ("attn_norm", "q_a", "q_b", "kv"):
        for mode in modes(plan, f".{name}"):
            assert kinds(mode) == [(CutKind.PAR, "batch"), R], name
    for mode in modes(plan, ".attention"):
        (dp, cp) = mode.choices
        assert not isinstance(dp, str) and dp.dim == "batch"
        assert not isinstance(cp, str) and cp.kind is CutKind.FOLD
    for mode in modes(plan, ".context"):
        assert mode.op.kind == "kv_append"
        assert mode.out == ("batch", mode.op.output.dims[1])
    for name in ("o_a", "o_b", "ffn_norm", "logits", "shared_up"):
        for mode in modes(plan, f".{name}"):
            assert mode.out[:2] == ("batch", "batch"), name
    for mode in (*modes(plan, ".dispatch"), *modes(plan, ".combine")):
        assert kinds(mode) == [(CutKind.ROUTE, "batch")] * 2
    for block in plan.blocks.values():
        for (name, _), steps in block.paths.items():
            if name.endswith(".o_a"):
                assert [step.collective for step in steps] == ["reduce_scatter"]


def test_in_prefill_context_ranks_have_positions_and_caches_are_gathered_for_attention() -> None:
    plan = both("prefill")
    for name in ("attn_norm", "q_b", "o_b", "shared_up"):
        for mode in modes(plan, f".{name}"):
            assert mode.out == ("batch", "seq"), name
    for mode in modes(plan, ".attention"):
        assert (mode.operands[0], mode.out) == (("batch", "seq"),) * 2
        assert mode.operands[1] == ("batch", R)
    for mode in (*modes(plan, ".dispatch"), *modes(plan, ".combine")):
        assert kinds(mode) == [(CutKind.ROUTE, "batch"), (CutKind.ROUTE, "seq")]
    for mode in modes(plan, ".last_token"):
        assert mode.out == ("batch", PARTIAL)
    assert {mode.op.kind for mode in modes(plan, ".rows")} == {"embed"}
    assert [mode.choices[1] for mode in modes(plan, ".rows")] == [OWNER]


def boundary(plan: Plan, graph: Graph, port: str) -> Spec:
    blocks = split_blocks(graph)
    (group,) = {g for (kind, name), g in blocks.port_group.items() if name == port}
    return plan.boundary[group]


def test_the_stream_lies_by_requests_and_positions_between_blocks() -> None:
    for stage, cp in (("decode", "batch"), ("prefill", "seq")):
        graph = GRAPHS[stage, "physical"]
        for kind in split_blocks(graph).kinds:
            for port in kind.inputs:
                assert boundary(both(stage), graph, port.name) == ("batch", cp)


def test_what_is_left_behind_stays_as_it_was_made() -> None:
    graph = GRAPHS["prefill", "physical"]
    plan = both("prefill")
    assert boundary(plan, graph, "layers.2.context") == ("batch", "ctx4")
    # The last window is a sum of one rank's positions and the others' zeros: summed up.
    assert boundary(plan, graph, "layers.2.window") == ("batch", R)
    assert boundary(plan, graph, "head.token") == ("batch", R)
    assert boundary(both("decode"), GRAPHS["decode", "physical"], "head.token") == ("batch", "batch")


def test_a_port_without_the_dim_is_whole() -> None:
    g = GraphBuilder("table", batch=8, rows=4, width=16)
    g.block = "layers.0"
    table = g.op("table", "activation", [g.weight("w", "rows width")], "rows width")
    g.block = "layers.1"
    y = g.op("y", "matmul", [g.input("x", "batch width"), table], "batch rows")
    graph = g.build(y)
    plan = grid_plan(graph, Cluster.of("b300", 8), dp=8, cp=1, pp=1)
    check_connected(plan, split_blocks(graph))
    assert boundary(plan, graph, "table") == (R,)
    assert boundary(plan, graph, "y") == ("batch",)


def test_a_given_partition_is_kept() -> None:
    plan = grid_plan(mlp(3), Cluster.of("b300", 8), dp=4, cp=1, pp=2, partition_layers=[1, 2])
    assert plan.stages == (("embed", "layers.0"), ("layers.1", "layers.2", "head"))


# -- refusals ---------------------------------------------------------------------------------------------------------


def refused(graph: Graph, dp: int, cp: int, pp: int, **more: object) -> str:
    with pytest.raises((PlacementError, ValueRangeError)) as caught:
        grid_plan(graph, Cluster.of("b300", 8), dp=dp, cp=cp, pp=pp, **more)  # type: ignore[arg-type]
    return str(caught.value)


def test_degrees_that_do_not_make_the_gpus_are_refused() -> None:
    assert "DP 4 × CP 1 × PP 1 = 4 GPUs" in refused(mlp(), 4, 1, 1)
    assert "a product of 8" in refused(mlp(), 8, 2, 1)


def test_a_partition_with_another_number_of_stages_is_refused() -> None:
    for counts in ([3], [1, 1, 1], []):
        text = refused(mlp(3), 4, 1, 2, partition_layers=counts)
        assert f"stages in the partition: {len(counts)}" in text and "as many as --pp, 2" in text


def test_requests_that_do_not_divide_are_refused() -> None:
    assert "4 requests do not divide over 8 ranks (DP 8, CP 1)" in refused(mlp(batch=4), 8, 1, 1)
    text = refused(mlp(batch=12), 8, 1, 1)
    assert text.startswith("--batch: 12 requests do not divide over 8 ranks") and "a multiple of 8" in text
    # In decode the context ranks share the requests too; in prefill they share positions.
    assert "4 requests do not divide over 8 ranks (DP 2, CP 4)" in refused(small_v4("decode", batch=4), 2, 4, 1)
    plan = grid_plan(small_v4("prefill", batch=2), Cluster.of("b300", 8), dp=2, cp=4, pp=1)
    assert len(plan.mesh.axes) == 2


def test_experts_that_do_not_divide_are_refused() -> None:
    graph = small_v4("decode").resized(expert=12)
    assert refused(graph, 8, 1, 1).startswith("--dp, --cp: 12 experts do not divide over 8 ranks (DP 8, CP 1)")


def test_more_stages_than_layers_are_refused() -> None:
    assert "8 pipeline stages for 3 layers" in refused(mlp(3), 1, 1, 8)


def test_a_graph_without_requests_runs_on_one_rank_a_stage() -> None:
    g = GraphBuilder("grid", rows=8, columns=8)
    x = g.input("x", "rows columns")
    for layer in range(2):
        g.block = f"layers.{layer}"
        x = g.op(f"y{layer}", "activation", [x], "rows columns")
    graph = g.build(x)
    assert "grid has no dim 'batch' to divide over 8 ranks (DP 8, CP 1)" in refused(graph, 8, 1, 1)
    assert grid_plan(graph, Cluster.of("b300", 1), dp=1, cp=1, pp=1).mesh.axes == ()
    assert len(grid_plan(graph, Cluster.of("b300", 2), dp=1, cp=1, pp=2).stages) == 2
