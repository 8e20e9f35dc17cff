"""Layouts by hand: edits of one operator, of all layers of its kind, and what follows from them."""

from __future__ import annotations

import pytest

from rooflang.errors import PlacementError, UnknownNameError
from rooflang.hw import Cluster
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import REPLICATED
from rooflang.ir.graph import GraphBuilder
from rooflang.place.certificate import certificate, replay
from rooflang.place.check import check_connected
from rooflang.place.layout import Layout
from rooflang.place.lower import lower

from .graphs import decode, mlp

R = REPLICATED
CLUSTER = Cluster.of("b300", 8)


def names(layout: Layout) -> list[str]:
    """What every stage runs, transfers by name."""
    plan, blocks = layout.plan(), split_blocks(layout.graph)
    check_connected(plan, blocks)
    return [op.name for op in lower(plan, blocks).ops]


def test_it_starts_with_everything_whole() -> None:
    layout = Layout.start(mlp(2), CLUSTER, [8])
    plan = layout.plan()
    assert {mode.choices for block in plan.blocks.values() for mode in block.modes.values()} == {(R,)}
    assert set(plan.boundary.values()) == {(R,)}
    assert plan.stages == (("embed", "layers.0", "layers.1", "head"),)
    assert names(layout) == [op.output.name for op in layout.graph.ops]


def test_an_edit_leaves_the_layout_before_it_as_it_was() -> None:
    layout = Layout.start(mlp(2), CLUSTER, [8])
    layout.split_kernel("up0", "ffn")
    assert layout.choices == {}


def test_a_cut_brings_its_collectives() -> None:
    layout = Layout.start(mlp(1), CLUSTER, [8])
    layout = layout.split_kernel("up0", "ffn").split_kernel("copy0", "ffn").split_kernel("down0", "ffn")
    assert names(layout) == ["first", "norm0", "up0", "copy0", "down0", "down0 all_reduce", "add0", "last"]


def test_a_port_lies_as_it_was_made_and_partial_sums_are_summed_up() -> None:
    layout = Layout.start(mlp(2), CLUSTER, [8]).split_kernel("first", "batch")
    assert layout.plan().boundary[0] == ("batch",)
    assert names(layout)[:2] == ["first", "first all_gather"]
    g = GraphBuilder("sum", batch=8, hidden=16, ffn=16)
    graph = g.build(g.op("y", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden ffn")], "batch ffn"))
    layout = Layout.start(graph, CLUSTER, [8]).split_kernel("y", "hidden")
    assert layout.plan().boundary == {0: (R,)}
    assert names(layout) == ["y", "y all_reduce"]


def test_layers_of_one_kind_are_laid_alike() -> None:
    graph = mlp(3)
    ways = [Layout.start(graph, CLUSTER, [8]).split_kernel(f"up{layer}", "ffn") for layer in range(3)]
    assert ways[0].plan() == ways[1].plan() == ways[2].plan()
    assert [name for name in names(ways[2]) if "all_gather" in name] == [f"up{layer} all_gather" for layer in range(3)]


def test_axes_are_named() -> None:
    layout = Layout.start(mlp(1), CLUSTER, [2, 4]).split_kernel("up0", "ffn", axis="y")
    assert layout.plan().blocks["layers.0"].modes["up0"].out == (R, "ffn")
    with pytest.raises(UnknownNameError, match="mesh axis 'z'"):
        layout.split_kernel("up0", "ffn", axis="z")


def test_dup_kernel_takes_a_cut_back() -> None:
    layout = Layout.start(mlp(1), CLUSTER, [8])
    assert layout.split_kernel("up0", "ffn").dup_kernel("up0").plan() == layout.plan()


def test_an_append_that_nothing_cuts_writes_every_replica() -> None:
    graph = decode(1)
    layout = Layout.start(graph, CLUSTER, [8])
    plan, blocks = layout.plan(), split_blocks(graph)
    assert plan.blocks["layers.0"].modes["after0"].derivation[0].dim == "replica"
    assert layout.dup_kernel("after0").plan() == plan
    # A certificate refuses to duplicate what has side effects.
    again = replay(certificate(plan, blocks), blocks, CLUSTER)
    assert again.blocks == plan.blocks


def test_a_cache_that_is_read_as_it_was_not_written_is_refused() -> None:
    layout = Layout.start(decode(1), CLUSTER, [8])
    with pytest.raises(PlacementError, match="in another spec"):
        layout.split_kernel("after0", "ctx").plan()
    both = layout.split_kernel("after0", "ctx").split_kernel("attend0", "ctx")
    assert "attend0 all_reduce" in names(both)


def test_unknown_operators_and_dims_are_refused_with_what_there_is() -> None:
    layout = Layout.start(mlp(1), CLUSTER, [8])
    with pytest.raises(UnknownNameError, match="unknown operator 'up9'"):
        layout.split_kernel("up9", "ffn")
    with pytest.raises(UnknownNameError):
        layout.dup_kernel("up9")
    with pytest.raises(PlacementError, match="cannot be cut by 'vocab'") as caught:
        layout.split_kernel("up0", "vocab")
    assert caught.value.expected == "one of batch, ffn, hidden"
