"""Ways to lay experts over a mesh: each written by hand, equal to the whole, and in the e-graph that optimize
extracts from."""

from __future__ import annotations

import pytest

from rooflang.eqsat import saturate_all
from rooflang.hw import Cluster
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.place.layout import Layout
from rooflang.place.lower import lower
from rooflang.search.api import optimize, simulate_layout
from rooflang.search.validate import evaluated

LAID = {
    "replicated over nodes": {
        "x": dict.fromkeys(("logits", "route", "dispatch", "up", "act", "down", "combine"), "batch"),
        "y": {
            **dict.fromkeys(("up", "act", "down"), "expert"),
            **dict.fromkeys(("logits", "route", "dispatch"), "batch"),
        },
    },
    "each cut within": {
        "x": dict.fromkeys(("up", "act", "down"), "ffn"),
        "y": dict.fromkeys(("up", "act", "down"), "expert"),
    },
    "over all GPUs": {axis: dict.fromkeys(("up", "act", "down"), "expert") for axis in "xy"},
    "cut within over all GPUs": {axis: dict.fromkeys(("up", "act", "down"), "ffn") for axis in "xy"},
    "one way up, another way down": {
        "x": {"up": "ffn", "act": "ffn", "down": "hidden2"},
        "y": {"up": "expert", "act": "expert", "down": "expert"},
    },
}


def experts(batch: int = 64) -> Graph:
    """A router, eight experts of two products each, of which every token asks two."""
    g = GraphBuilder("experts", batch=batch, hidden=1024, hidden2=1024, ffn=2048, expert=8)
    x = g.input("x", "batch hidden")
    logits = g.op("logits", "matmul", [x, g.weight("router", "hidden expert")], "batch expert", "fp32")
    route = g.op("route", "route", [logits], "batch expert", "fp32", top_k=2)
    rows = g.op("dispatch", "dispatch", [x, route], "batch expert hidden")
    up = g.op("up", "matmul", [rows, g.weight("w1", "expert hidden ffn")], "batch expert ffn")
    act = g.op("act", "activation", [up], "batch expert ffn")
    down = g.op("down", "matmul", [act, g.weight("w2", "expert ffn hidden2")], "batch expert hidden2")
    return g.build(g.op("combine", "combine", [down, route], "batch hidden2"))


def laid(cuts: dict[str, dict[str, str]]) -> Layout:
    layout = Layout.start(experts(), Cluster.of("b300", 8, domain=4), mesh=[2, 4])
    for axis, ops in cuts.items():
        for op, dim in ops.items():
            layout = layout.split_kernel(op, dim, axis=axis)
    return layout


@pytest.mark.parametrize("name", LAID)
def test_it_computes_the_same_and_the_search_has_it(name: str) -> None:
    layout = laid(LAID[name])
    blocks, plan = split_blocks(layout.graph), layout.plan()
    assert evaluated(plan, blocks).to_json()["verdict"] == "equal"
    (kind,) = blocks.kinds
    block = plan.blocks[kind.name]
    paths = [step for path in (*block.paths.values(), *block.exits.values()) for step in path]
    frozen = saturate_all(blocks, 2)[kind.name]
    assert frozen.missing(block.modes.values(), paths) == ()
    best = optimize(layout.graph, hardware=layout.cluster, batch=[64]).frontier[0]
    assert best.bound_s is not None
    assert best.bound_s <= simulate_layout(layout).sim.step_s * (1 + 1e-9)


def test_replicas_of_experts_keep_tokens_on_their_node() -> None:
    """With one copy of all experts in each node, nothing goes over the network between nodes."""
    plan = laid(LAID["replicated over nodes"]).plan()
    crossing = {step.collective for op in lower(plan, split_blocks(experts())).ops if (step := op.transfer) is not None
                and 0 in step.axes}  # fmt: skip
    assert crossing <= {"all_gather", "slice"}
    (w1,) = (r.spec for r in lower(plan, split_blocks(experts())).residents if r.name == "w1")
    assert w1 == ("R", "expert")
