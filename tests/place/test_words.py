"""Plans in words."""

from __future__ import annotations

from dataclasses import replace

from rooflang.hw import Cluster
from rooflang.ir.blocks import split_blocks
from rooflang.ir.graph import Graph
from rooflang.ir.layout import make_transfer
from rooflang.place.grid import grid_plan
from rooflang.place.layout import Layout
from rooflang.place.words import describe

from .graphs import decode, mlp, small_v4

CLUSTER = Cluster.of("b300", 8)


def words(graph: Graph, dp: int, cp: int, pp: int = 1) -> dict[str, str]:
    text = describe(grid_plan(graph, CLUSTER, dp=dp, cp=cp, pp=pp), split_blocks(graph))
    *groups, pipeline = text.split("; ")
    return dict(group.split(": ", 1) for group in groups) | {"": pipeline}


def test_groups_with_weights_or_a_cache_are_told() -> None:
    assert words(mlp(2), 8, 1) == {"mlp": "batch→8", "": "pipeline 1"}
    assert words(mlp(2), 4, 1, 2)[""] == "pipeline 2"


def test_dims_have_their_words_and_axes_multiply() -> None:
    told = words(small_v4("decode"), 2, 4)
    assert told["attention"].startswith("batch→2, ")
    assert "→4" in told["attention"]
    assert told["experts"] == "expert→8"
    assert words(small_v4("decode"), 8, 1)["attention"] == "batch→8"


def test_what_is_not_cut_is_replicated() -> None:
    graph = mlp(2)
    layout = Layout.start(graph, CLUSTER, [8])
    assert describe(layout.plan(), split_blocks(graph)) == "mlp: replicated; pipeline 1"
    half = layout.split_kernel("up0", "ffn")
    assert "ffn→8" in describe(half.plan(), split_blocks(graph))


def test_leaves_in_other_tiers_are_counted() -> None:
    graph = decode(3)  # two kinds of layer: the first one's x is the graph's input
    blocks = split_blocks(graph)
    plan = grid_plan(graph, CLUSTER, dp=8, cp=1, pp=1)
    kinds = {
        name: replace(block, tiers={leaf.name: "dram" for leaf in blocks.by_name[name].leaves if "cache" in leaf.name})
        for name, block in plan.blocks.items()
    }
    assert describe(replace(plan, blocks=kinds), blocks).endswith("; 3 leaves in DRAM; pipeline 1")


def test_weights_that_are_gathered_are_counted() -> None:
    graph = mlp(2)
    blocks = split_blocks(graph)
    plan = grid_plan(graph, CLUSTER, dp=8, cp=1, pp=1)
    step = make_transfer("u0", ("hidden",), ("R",))
    kinds = {
        name: replace(block, paths={("up0", 1): (step,)} if "up0" in block.modes else block.paths)
        for name, block in plan.blocks.items()
    }
    assert describe(replace(plan, blocks=kinds), blocks) == "mlp: batch→8; 2 weights gathered; pipeline 1"
