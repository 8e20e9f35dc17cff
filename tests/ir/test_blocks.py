"""Blocks: layers of one structure are one kind, others are not, and their ports are connected."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rooflang.errors import GraphError
from rooflang.ir import Graph, GraphBuilder, Tensor
from rooflang.ir.blocks import Blocks, split_blocks

Layer = Callable[[GraphBuilder, str, Tensor, Tensor], Tensor]


def plain(g: GraphBuilder, name: str, x: Tensor, ids: Tensor) -> Tensor:
    up = g.op(f"{name}.up", "matmul", [x, g.weight(f"{name}.w1", "hidden ffn")], "batch ffn")
    down = g.op(f"{name}.down", "matmul", [up, g.weight(f"{name}.w2", "ffn hidden")], "batch hidden")
    return g.op(f"{name}.out", "add", [x, down], "batch hidden")


def embedded(g: GraphBuilder, name: str, x: Tensor, ids: Tensor) -> Tensor:
    """Reads the ids that all blocks share."""
    rows = g.op(f"{name}.rows", "embed", [ids, g.weight(f"{name}.table", "vocab hidden")], "batch hidden")
    return g.op(f"{name}.out", "add", [x, rows], "batch hidden")


def stack(*layers: Layer) -> Graph:
    g = GraphBuilder("stack", batch=4, hidden=8, ffn=16, vocab=32)
    ids = g.input("ids", "batch", "int32")
    g.block = "embed"
    x = g.op("x", "embed", [ids, g.weight("table", "vocab hidden")], "batch hidden")
    for index, layer in enumerate(layers):
        g.block = f"layers.{index}"
        x = layer(g, f"layers.{index}", x, ids)
    g.block = "head"
    return g.build(g.op("logits", "matmul", [x, g.weight("head", "hidden vocab")], "batch vocab"))


def kinds(blocks: Blocks) -> list[tuple[str, ...]]:
    return [kind.blocks for kind in blocks.kinds]


def test_layers_of_one_structure_are_one_kind() -> None:
    blocks = split_blocks(stack(plain, embedded, plain, plain, embedded))
    assert blocks.sequence == ("embed", "layers.0", "layers.1", "layers.2", "layers.3", "layers.4", "head")
    assert kinds(blocks) == [
        ("embed",),
        ("layers.0", "layers.2", "layers.3"),
        ("layers.1", "layers.4"),
        ("head",),
    ]
    assert blocks.kind_of["layers.3"] == "layers.0"
    assert blocks.counts() == {"embed": 1, "layers.0": 3, "layers.1": 2, "head": 1}
    assert blocks.counts(("layers.2", "layers.4", "head")) == {"embed": 0, "layers.0": 1, "layers.1": 1, "head": 1}


def test_who_reads_a_leaf() -> None:
    blocks = split_blocks(stack(embedded, plain, embedded))
    assert blocks.leaf_readers["ids"] == (("embed", "ids"), ("layers.0", "ids"), ("layers.2", "ids"))
    assert blocks.leaf_readers["layers.2.table"] == (("layers.2", "layers.0.table"),)
    assert blocks.shared_leaves == {("embed", "ids"), ("layers.0", "ids")}


def test_ports_and_leaves_of_a_kind() -> None:
    kind = split_blocks(stack(plain, plain)).by_name["layers.0"]
    assert [t.name for t in kind.inputs] == ["x"]
    assert [t.name for t in kind.outputs] == ["layers.0.out"]
    assert [t.name for t in kind.leaves] == ["layers.0.w1", "layers.0.w2"]
    assert [op.name for op in kind.ops] == ["layers.0.up", "layers.0.down", "layers.0.out"]


def test_names_of_the_representative_map_to_those_of_each_block() -> None:
    graph = stack(plain, embedded, plain)
    blocks = split_blocks(graph)
    names = blocks.rename["layers.2"]
    assert names["layers.0.w1"] == "layers.2.w1"
    assert names["x"] == "layers.1.out"  # the input port
    assert blocks.rename["layers.1"]["ids"] == "ids"  # shared by all blocks
    for label in blocks.sequence:
        kind = blocks.by_name[blocks.kind_of[label]]
        for op in kind.ops:
            actual = graph.op_by_name[blocks.rename[label][op.name]]
            assert actual.kind == op.kind
            assert actual.block == label
            assert [t.name for t in actual.operands] == [blocks.rename[label][t.name] for t in op.operands]


def test_connected_ports_are_one_group() -> None:
    """Where a layer follows one of its own kind, the stream lies alike before, between and behind all layers."""
    group = split_blocks(stack(plain, plain, embedded)).port_group
    stream = {group[("embed", "x")], group[("layers.0", "x")], group[("layers.0", "layers.0.out")]}
    stream |= {
        group[("layers.2", "layers.1.out")],
        group[("layers.2", "layers.2.out")],
        group[("head", "layers.2.out")],
    }
    assert len(stream) == 2  # behind the last layer it may lie in another way
    assert group[("head", "layers.2.out")] == group[("layers.2", "layers.2.out")] != group[("embed", "x")]
    assert group[("head", "logits")] not in stream


def test_kinds_in_turn_may_hand_over_in_two_ways() -> None:
    group = split_blocks(stack(plain, embedded, plain, embedded)).port_group
    before, between = group[("layers.0", "x")], group[("layers.0", "layers.0.out")]
    assert before != between
    assert group[("layers.1", "layers.0.out")] == between
    assert group[("layers.1", "layers.1.out")] == group[("head", "layers.3.out")] == before


def test_ports_that_nothing_connects_are_groups_of_their_own() -> None:
    g = GraphBuilder("two", b=2, h=2)
    x = g.input("x", "b h")
    g.block = "first"
    left, right = (g.op(name, "activation", [x], "b h") for name in ("left", "right"))
    g.block = "second"
    blocks = split_blocks(g.build(g.op("y", "add", [left, right], "b h")))
    groups = [blocks.port_group[("first", name)] for name in ("left", "right")]
    assert groups[0] != groups[1]
    assert blocks.port_group[("second", "left")] == groups[0]


def test_blocks_that_wait_for_each_other_are_refused() -> None:
    g = GraphBuilder("braid", batch=8)
    g.block = "a"
    x = g.op("x", "activation", [g.input("in", "batch")], "batch")
    g.block = "b"
    y = g.op("y", "activation", [x], "batch")
    g.block = "a"
    graph = g.build(g.op("z", "activation", [y], "batch"))
    with pytest.raises(GraphError, match="z of block 'a' reads y of block 'b', which comes after it"):
        split_blocks(graph)


def test_what_is_in_no_block_has_a_kind_name_of_its_own() -> None:
    g = GraphBuilder("two", batch=8, hidden=4, ffn=2)
    x = g.input("x", "batch hidden")
    y = g.op("y", "matmul", [x, g.weight("w", "hidden ffn")], "batch ffn")
    g.block = "block0"
    blocks = split_blocks(g.build(g.op("z", "activation", [y], "batch ffn")))
    assert sorted(blocks.by_name) == ["block0", "block1"]
    assert [op.name for op in blocks.by_name["block0"].ops] == ["z"]


def varied(change: Callable[[GraphBuilder, str, Tensor], Tensor]) -> list[tuple[str, ...]]:
    """The kinds of two blocks, the second one made by `change`."""
    g = GraphBuilder("g", b=2, h=2, n=2)
    x = g.input("x", "b h")
    for index, make in enumerate((_product, change)):
        g.block = f"block{index}"
        make(g, str(index), x)
    return [kind.blocks for kind in split_blocks(g.build()).kinds]


def _product(g: GraphBuilder, name: str, x: Tensor) -> Tensor:
    return g.op(f"{name}.y", "matmul", [x, g.weight(f"{name}.w", "h n")], "b n")


@pytest.mark.parametrize(
    "change",
    [
        lambda g, n, x: g.op(f"{n}.y", "matmul", [x, g.weight(f"{n}.w", "h n", "fp8")], "b n"),
        lambda g, n, x: g.op(f"{n}.y", "matmul", [x, g.weight(f"{n}.w", "n h")], "b n"),
        lambda g, n, x: g.op(f"{n}.y", "matmul", [x, g.weight(f"{n}.w", "h n")], "b n", "fp32"),
        lambda g, n, x: g.op(f"{n}.y", "matmul", [x, g.weight(f"{n}.w", "h n")], "b n", fill=0.5),
        lambda g, n, x: g.op(f"{n}.y", "matmul", [x, g.weight(f"{n}.w", "h n")], "b n", compute="fp8"),
        lambda g, n, x: g.op(f"{n}.y", "matmul", [x, g.weight(f"{n}.w", "h n")], "b n", group="special"),
        lambda g, n, x: g.op(f"{n}.y", "matmul", [x, g.cache(f"{n}.w", "h n", "bf16")], "b n"),
        lambda g, n, x: g.op(f"{n}.y", "activation", [_product(g, f"{n}.p", x)], "b n"),
        lambda g, n, x: g.op(f"{n}.y", "add", [x, x], "b h"),
    ],
    ids=["dtype", "dims", "output", "fill", "compute", "group", "role", "longer", "kind"],
)
def test_any_difference_separates_kinds(change: Callable[[GraphBuilder, str, Tensor], Tensor]) -> None:
    assert varied(_product) == [("block0", "block1")]
    assert varied(change) == [("block0",), ("block1",)]


def test_attributes_and_wiring_separate_kinds() -> None:
    g = GraphBuilder("g", b=2, h=2)
    x = g.input("x", "b h")
    for index, (function, swapped) in enumerate([("silu", False), ("gelu", False), ("silu", True)]):
        g.block = f"block{index}"
        a = g.op(f"{index}.a", "activation", [x], "b h", function=function)
        b = g.op(f"{index}.b", "rms_norm", [a], "b h", over="h")
        g.op(f"{index}.c", "add", [b, a] if swapped else [a, b], "b h")
    assert len(split_blocks(g.build()).kinds) == 3


def test_being_an_output_of_the_graph_separates_kinds() -> None:
    g = GraphBuilder("g", b=2, h=2)
    x = g.input("x", "b h")
    inner, outer = [], []
    for index in range(3):
        g.block = f"block{index}"
        inner.append(g.op(f"{index}.a", "activation", [x], "b h"))
        outer.append(g.op(f"{index}.b", "activation", [inner[-1]], "b h"))
    kinds = [kind.blocks for kind in split_blocks(g.build(*outer, inner[1])).kinds]
    assert kinds == [("block0", "block2"), ("block1",)]


def test_a_graph_without_labels_is_one_block() -> None:
    g = GraphBuilder("g", b=2)
    blocks = split_blocks(g.build(g.op("y", "activation", [g.input("x", "b")], "b")))
    assert [kind.name for kind in blocks.kinds] == ["block0"]
    assert blocks.sequence == ("",)
