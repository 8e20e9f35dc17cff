"""Exported programs as compute graphs: a recorded model, and operators one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rooflang.errors import GraphError
from rooflang.importers import Exported, graph_work, read_exported, to_graph
from rooflang.ir import Graph, Role
from rooflang.ir.blocks import split_blocks
from rooflang.ir.evaluate import evaluate, random_leaves
from rooflang.ir.op import signature
from rooflang.ir.text import dump, parse

from .program import Program

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def recorded() -> Exported:
    """Two decoder layers of width 64 with 4 heads and 2 key-value heads, 2 prompts of 16 tokens, by torch 2.13."""
    return read_exported(DATA / "two-layers.json")


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def result(graph: Graph, **arrays: Any) -> Any:
    """The first output, from these leaves and random others."""
    leaves = {**random_leaves(graph, 1), **arrays}
    return evaluate(graph, leaves)[graph.outputs[0]]


def test_operators_and_dims_of_a_recorded_model(recorded: Exported) -> None:
    graph = to_graph(recorded)
    assert parse(dump(graph)) == graph
    assert {kind: kinds(graph).count(kind) for kind in ("matmul", "grouped_attention", "rms_norm", "embed", "add")} == {
        "matmul": 15,
        "grouped_attention": 2,
        "rms_norm": 5,
        "embed": 1,
        "add": 4,
    }
    assert "opaque" not in kinds(graph)
    assert (graph.sizes["batch"], graph.sizes["seq"], graph.sizes["head"]) == (2, 16, 100)
    assert graph.op_by_name["scaled_dot_product_attention"].attr("causal") is True


def test_operations_are_those_that_pytorch_counts(recorded: Exported) -> None:
    works = graph_work(to_graph(recorded))
    by_sort = {sort: sum(w.flops for w in works if w.sort == sort) for sort in ("product", "attention")}
    assert by_sort["product"] == recorded.flops["mm"] + recorded.flops["addmm"] == 5_128_192
    assert by_sort["attention"] == recorded.flops["scaled_dot_product_attention"]


def test_weights_are_as_large_as_the_parameters(recorded: Exported) -> None:
    parameters = [node for node in recorded.nodes if node.target == "parameter"]
    expected = 4 * sum(int(np.prod(node.shape)) for node in parameters)
    assert to_graph(recorded).leaf_bytes(Role.WEIGHT) == expected


def test_layers_that_are_alike_are_one_kind_of_block(recorded: Exported) -> None:
    blocks = split_blocks(to_graph(recorded))
    assert blocks.sequence == ("start", "layers.0", "layers.1", "end")
    assert len(blocks.kinds) == 3


def test_axes_of_inputs_may_be_named(recorded: Exported) -> None:
    graph = to_graph(recorded, dims={"ids": ("requests", "position")})
    assert (graph.sizes["requests"], graph.sizes["position"]) == (2, 16)
    with pytest.raises(GraphError, match="ids has 2 axes, not 1"):
        to_graph(recorded, dims={"ids": ("requests",)})
    with pytest.raises(GraphError, match="there is no input 'tokens'"):
        to_graph(recorded, dims={"tokens": ("a", "b")})


def test_a_product_and_its_bias_compute_what_they_should() -> None:
    p = Program()
    x, w, b = p.leaf("x", 2, 3, 4), p.leaf("w", 5, 4, target="parameter"), p.leaf("b", 5, target="parameter")
    graph = to_graph(p.end(p.op("linear.default", x, w, b, shape=(2, 3, 5))))
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=shape) for name, shape in (("x", (2, 3, 4)), ("w", (5, 4)), ("b", (5,)))}
    np.testing.assert_allclose(result(graph, **arrays), arrays["x"] @ arrays["w"].T + arrays["b"])


def test_a_square_weight_and_a_residual_need_a_second_name() -> None:
    """Rows by a 4 × 4 weight plus the rows: the weight may not have one dim twice."""
    p = Program()
    x, w = p.leaf("x", 3, 4), p.leaf("w", 4, 4, target="parameter")
    y = p.op("linear.default", x, w, shape=(3, 4))
    graph = to_graph(p.end(p.op("add.Tensor", x, y, shape=(3, 4))))
    assert "rename" in kinds(graph)
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(3, 4)), "w": rng.normal(size=(4, 4))}
    np.testing.assert_allclose(result(graph, **arrays), arrays["x"] + arrays["x"] @ arrays["w"].T)


@pytest.mark.parametrize(
    ("target", "shapes"), [("mm.default", ((2, 3), (3, 4))), ("bmm.default", ((5, 2, 3), (5, 3, 4)))]
)
def test_products_of_two_activations(target: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    p = Program()
    a, b = (p.leaf(name, *shape) for name, shape in zip("ab", shapes))
    graph = to_graph(
        p.end(p.op(target, a, b, shape=(*shapes[0][:-1], 4))), dims={"b": ("b0", "b1", "b2")[-len(shapes[1]) :]}
    )
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=shape) for name, shape in zip("ab", shapes)}
    np.testing.assert_allclose(result(graph, **arrays), arrays["a"] @ arrays["b"])


def test_addmm_is_a_product_with_a_bias() -> None:
    p = Program()
    b, x, w = p.leaf("b", 5, target="parameter"), p.leaf("x", 2, 4), p.leaf("w", 4, 5, target="parameter")
    graph = to_graph(p.end(p.op("addmm.default", b, x, w, shape=(2, 5))))
    assert kinds(graph) == ["matmul", "bias"]


def test_attention_of_heads_that_share_keys(recorded: Exported) -> None:
    """Against a softmax in NumPy, for the axes in the order of ATen."""
    p = Program()
    q, k, v = p.leaf("q", 2, 4, 3, 8), p.leaf("k", 2, 2, 3, 8), p.leaf("v", 2, 2, 3, 8)
    attend = p.op("scaled_dot_product_attention.default", q, k, v, None, 0.0, True, shape=(2, 4, 3, 8), enable_gqa=True)
    names = {"q": ("batch", "h", "seq", "d"), "k": ("batch", "g", "pos", "d2"), "v": ("batch", "g3", "pos3", "d3")}
    graph = to_graph(p.end(attend), dims=names)
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.normal(size=shape) for name, shape in (("q", (2, 4, 3, 8)), ("k", (2, 2, 3, 8)), ("v", (2, 2, 3, 8)))
    }
    scores = arrays["q"] @ np.repeat(arrays["k"], 2, 1).swapaxes(-1, -2) / np.sqrt(8)
    weights = np.exp(np.where(np.tril(np.ones((3, 3))), scores, -np.inf))
    expected = weights / weights.sum(-1, keepdims=True) @ np.repeat(arrays["v"], 2, 1)
    found = result(graph, **arrays)
    np.testing.assert_allclose(found.swapaxes(1, 2), expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [((6, 4), (2, 3, 4)), ((2, 3, 4), (6, 4)), ((2, 12), (2, 3, 2, 2)), ((2, 3, 2, 2), (2, 12)), ((4,), (1, 4))],
)
def test_views_keep_the_order_of_elements(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    p = Program()
    x = p.leaf("x", *old)
    y = p.op("view.default", x, list(new), shape=new)
    names = {"x": tuple("abcd"[: len(old)])}
    graph = to_graph(p.end(p.op("silu.default", y, shape=new)), dims=names)
    assert "opaque" not in kinds(graph)
    array = np.arange(np.prod(old)).reshape(old) / 10.0
    flat = array.reshape(new)
    np.testing.assert_allclose(result(graph, x=array), flat / (1 + np.exp(-flat)))


@pytest.mark.parametrize(
    ("target", "how", "sizes"),
    [("chunk.default", 3, (2, 2, 2)), ("split.Tensor", 4, (4, 2)), ("split_with_sizes.default", [1, 3, 2], (1, 3, 2))],
)
def test_pieces_of_an_axis(target: str, how: Any, sizes: tuple[int, ...]) -> None:
    p = Program()
    x = p.leaf("x", 2, 6)
    pieces = p.several(target, x, how, -1)
    last = p.op("getitem", pieces, len(sizes) - 1, shape=(2, sizes[-1]))
    graph = to_graph(p.end(last))
    assert kinds(graph) == ["segment"]
    array = np.arange(12.0).reshape(2, 6)
    np.testing.assert_allclose(result(graph, x=array), array[:, 6 - sizes[-1] :])


def test_one_of_other_outputs_is_opaque() -> None:
    p = Program()
    found = p.several("unknown.default", p.leaf("x", 2, 6), 3)
    graph = to_graph(p.end(p.op("getitem", found, 0, shape=(2, 3))))
    assert kinds(graph) == ["opaque"]
    assert [t.name for t in graph.ops[0].operands] == ["x"]


@pytest.mark.parametrize(
    ("target", "args", "shape", "kept"),
    [
        ("sum.dim_IntList", ([-1],), (2, 3), 2),
        ("sum.dim_IntList", ([-1], True), (2, 3, 1), 2),
        ("mean.dim", ([0, 2],), (3,), 1),
        ("cumsum.default", (1,), (2, 3, 4), 2),
        ("select.int", (1, 0), (2, 4), 2),
        ("slice.Tensor", (2, 1, 3), (2, 3, 2), 2),
        ("flip.default", ([1],), (2, 3, 4), 2),
    ],
)
def test_what_works_along_some_axes_may_be_cut_by_the_others(
    target: str, args: tuple[Any, ...], shape: tuple[int, ...], kept: int
) -> None:
    p = Program()
    x = p.leaf("x", 2, 3, 4)
    y = p.op(target, x, *args, shape=shape)
    graph = to_graph(p.end(p.op("relu.default", y, shape=shape)), dims={"x": ("a", "b", "c")})
    op = graph.ops[0]
    assert op.kind == "rowwise"
    assert len(signature(op)) == kept
    assert {cut.dim for cut in signature(op)} <= {"a", "b", "c"}


def test_tensors_are_joined_along_one_axis() -> None:
    p = Program()
    x, y = p.leaf("x", 2, 3), p.leaf("y", 2, 5)
    graph = to_graph(p.end(p.op("cat.default", [{"ref": x}, {"ref": y}], -1, shape=(2, 8))))
    (op,) = graph.ops
    assert [cut.dim for cut in signature(op)] == ["batch"]
    assert [t.name for t in op.operands] == ["x", "y"]


@pytest.mark.parametrize(("target", "args"), [("sum.default", ()), ("max.default", ()), ("mean.dim", ([0, 1],))])
def test_what_works_along_all_axes_is_opaque(target: str, args: tuple[Any, ...]) -> None:
    p = Program()
    graph = to_graph(p.end(p.op(target, p.leaf("x", 2, 3), *args, shape=(1,))))
    assert kinds(graph) == ["opaque"]


def test_what_crosses_axes_is_opaque() -> None:
    p = Program()
    x = p.leaf("x", 4, 6)
    graph = to_graph(p.end(p.op("view.default", x, [3, 8], shape=(3, 8))))
    assert kinds(graph) == ["opaque"]
    assert graph.ops[0].attr("function") == "view"


def test_elements_are_laid_over_each_other() -> None:
    p = Program()
    x, y = p.leaf("x", 2, 3, 4), p.leaf("y", 4, target="parameter")
    graph = to_graph(p.end(p.op("mul.Tensor", x, y, shape=(2, 3, 4))))
    (op,) = graph.ops
    assert (op.kind, op.attr("function")) == ("pointwise", "mul")
    assert set(op.operands[1].dims) < set(op.output.dims)


@pytest.mark.parametrize(
    ("left", "right", "out"),
    [
        ((2, 3, 4), (2, 1, 4), (2, 3, 4)),
        ((2, 1, 4), (3, 1), (2, 3, 4)),
        ((1, 4), (3, 1), (3, 4)),
        ((2, 3), (1,), (2, 3)),
    ],
)
def test_axes_of_size_one_are_laid_over_longer_ones(
    left: tuple[int, ...], right: tuple[int, ...], out: tuple[int, ...]
) -> None:
    p = Program()
    x, y = p.leaf("x", *left), p.leaf("y", *right)
    names = {"x": ("a", "b", "c")[-len(left) :], "y": ("d", "e", "f")[-len(right) :]}
    graph = to_graph(p.end(p.op("mul.Tensor", x, y, shape=out)), dims=names)
    assert "opaque" not in kinds(graph)
    made = graph.tensors[graph.outputs[0]]
    assert sorted(graph.sizes[d] for d in made.dims) == sorted(size for size in out if size > 1)


def test_masks_gather_and_other_operators_are_read_too() -> None:
    p = Program()
    x, mask = p.leaf("x", 2, 2, 3, 4), p.leaf("mask", 3, 3)
    y = p.op("scaled_dot_product_attention.default", x, x, x, mask, shape=(2, 2, 3, 4))
    z = p.op("unknown.default", y, 2, shape=(2, 2, 3, 2))
    names = {"x": ("batch", "h", "seq", "d"), "mask": ("m0", "m1")}
    graph = to_graph(p.end(z), dims=names)
    assert [op.attr("function") for op in graph.ops] == ["scaled_dot_product_attention", "unknown"]


def test_what_nothing_reads_is_left_out_and_nothing_is_no_program() -> None:
    p = Program()
    x = p.leaf("x", 2, 3)
    p.op("relu.default", x, shape=(2, 3))
    kept = p.op("silu.default", x, shape=(2, 3))
    assert kinds(to_graph(p.end(kept))) == ["activation"]
    with pytest.raises(GraphError, match="computes nothing"):
        to_graph(p.end(x))


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "x"}', "\xff"])
def test_files_that_are_no_record_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(GraphError) as caught:
        read_exported(path)
    assert caught.value.where == str(path)
    with pytest.raises(GraphError, match="cannot be read"):
        read_exported(tmp_path / "none.json")


def test_a_record_is_read_back(recorded: Exported, tmp_path: Path) -> None:
    path = tmp_path / "again.json"
    path.write_text(recorded.to_json(), encoding="utf-8")
    assert read_exported(path) == recorded


def test_an_imported_graph_is_optimized(recorded: Exported) -> None:
    """Exactly evaluated, opaque operators too, and a joint product whose parts grow late while dims are shrunk."""
    from rooflang import optimize

    result = optimize(to_graph(recorded), hardware="h200", gpus=2, batch=(2, 4))
    assert all(point.certificate["evaluated"]["verdict"] == "equal" for point in result.frontier)
