"""Products that share their input: which of them can be one, and the graph that has it."""

from __future__ import annotations

import numpy as np
import pytest

from rooflang.errors import GraphError, RefusedError
from rooflang.ir import GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.ir.evaluate import evaluate, random_leaves
from rooflang.ir.graph import Graph
from rooflang.ir.joint import Joint, joint_of, shared_inputs
from rooflang.ir.kinds.fused import SHARED_INPUT, fits, fuse
from rooflang.ir.reference import reference
from rooflang.ir.reference.base import whole
from rooflang.ir.verify import verify
from rooflang.models import Workload, load
from rooflang.soundness.joints import down_projections


def layers() -> Graph:
    """Two layers with three projections of one input, and one that has two dims of its own."""
    g = GraphBuilder("layers", batch=2, hidden=4, rank=3, latent=5, head=2, width=2)
    g.block = "in"
    x = g.op("x", "activation", [g.input("raw", "batch hidden")], "batch hidden")
    for number in range(2):
        g.block = f"layers.{number}"
        a = g.op(f"{number}.q", "matmul", [x, g.weight(f"{number}.wq", "hidden rank")], "batch rank")
        b = g.op(f"{number}.kv", "matmul", [x, g.weight(f"{number}.wkv", "hidden latent")], "batch latent")
        heads = [x, g.weight(f"{number}.wh", "hidden head width")]
        c = g.op(f"{number}.h", "matmul", heads, "batch head width")
        ends = [(a, "hidden rank"), (b, "hidden latent"), (c, "hidden head width")]
        ups = [
            g.op(f"{number}.up{i}", "matmul", [t, g.weight(f"{number}.wup{i}", dims)], "batch hidden")
            for i, (t, dims) in enumerate(ends)
        ]
        x = g.op(f"{number}.y", "add", [g.op(f"{number}.s", "add", ups[:2], "batch hidden"), ups[2]], "batch hidden")
    return g.build(x)


def test_one_record_for_all_blocks_of_a_kind() -> None:
    (found,) = shared_inputs(split_blocks(layers()))
    assert found == Joint(targets=(("0.q", "0.kv"), ("1.q", "1.kv")))
    assert found.name == "0.q+0.kv"


def test_the_graph_gains_the_joint_product_in_front_of_its_products() -> None:
    graph = layers()
    (found,) = shared_inputs(split_blocks(graph))
    both = verify(found.of(graph))
    names = [op.name for op in both.ops]
    assert names.index("0.q+0.kv") < names.index("0.q")
    assert both.sizes["rank+latent"] == 8
    assert [op for op in both.ops if "+" not in op.name] == list(graph.ops)
    assert [kind.blocks for kind in split_blocks(both).kinds] == [kind.blocks for kind in split_blocks(graph).kinds]


def test_each_product_is_a_range_of_it() -> None:
    graph = down_projections()
    q, kv, k = (graph.op_by_name[name] for name in ("q", "kv", "k"))
    joint = joint_of([q, kv, k])
    sizes = {**graph.sizes, "rank+latent+index": 6}
    values = evaluate(graph, random_leaves(graph))
    made = reference(joint.kind).full(joint, sizes, *(values[t.name] for t in joint.operands))
    for op in (q, kv, k):
        assert fits(SHARED_INPUT, op, joint)
        part = fuse(SHARED_INPUT, op, joint)
        assert np.allclose(reference(part.kind).share(part, whole(sizes), made), values[op.output.name])


def test_what_does_not_fit_together() -> None:
    graph = down_projections(other_input=True)
    with pytest.raises(RefusedError, match="one input"):
        joint_of([graph.op_by_name["q"], graph.op_by_name["kv"]])
    with pytest.raises(RefusedError, match="no operator"):
        Joint(targets=(("q", "nowhere"),)).of(graph)
    joined = Joint(targets=(("q", "k"),)).of(graph)
    with pytest.raises(RefusedError, match="already"):
        Joint(targets=(("q", "k"),)).of(joined)
    with pytest.raises(GraphError, match="those of all products"):
        verify(joined.resized(**{"rank+index": 5}))


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("deepseek-v4-pro", {("q_lora", "head_dim")}),
        ("glm-5.3", {("q_lora", "latent"), ("q_lora", "index_dim", "latent")}),
        ("kimi-k3", {("q_lora", "latent")}),
        ("deepseek-v3", {("q_lora", "latent")}),
    ],
)
def test_models_with_latent_attention_have_them(name: str, dims: set[tuple[str, ...]]) -> None:
    graph = load(name).build(Workload(stage="decode", context=4096, batch=1))
    found = list(shared_inputs(split_blocks(graph)))
    assert {tuple(graph.op_by_name[op].output.dims[-1] for op in each.targets[0]) for each in found} == dims
