"""Blocks that differ in how many twins they read are saturated once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflang.eqsat.frozen import Limits
from rooflang.eqsat.program import program
from rooflang.eqsat.saturate import saturate, saturated
from rooflang.eqsat.twins import Twins
from rooflang.ir import GraphBuilder
from rooflang.ir.blocks import BlockKind, split_blocks
from rooflang.ir.graph import Graph
from rooflang.rules.theory import Theory


def depths(count: int, *, also_read: bool = False) -> Graph:
    """A block that mixes what `count` blocks before it left; and perhaps reads the first of them by itself too."""
    g = GraphBuilder("depths", batch=4, hidden=8, ffn=8)
    x = g.input("x", "batch hidden")
    left = []
    for number in range(count):
        g.block = f"before.{number}"
        w = g.weight(f"w{number}", "hidden ffn")
        up = g.op(f"up{number}", "matmul", [x, w], "batch ffn")
        left.append(g.op(f"left{number}", "matmul", [up, g.weight(f"v{number}", "ffn hidden")], "batch hidden"))
    g.block = "mix"
    parts = [g.weight("gain", "hidden"), g.weight("query", "hidden"), *left]
    mixed = g.op("mixed", "depth_mix", parts, "batch hidden")
    if also_read:
        mixed = g.op("more", "add", [mixed, left[0]], "batch hidden")
    y = g.op("y", "rms_norm", [mixed], "batch hidden", over="hidden")
    return g.build(y)


def mix(graph: Graph) -> BlockKind:
    return split_blocks(graph).by_name["mix"]


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("also_read", [False, True])
def test_what_is_restored_is_what_the_whole_block_has(axes: int, also_read: bool) -> None:
    kind = mix(depths(4, also_read=also_read))
    twins = Twins.of(kind)
    assert len(twins.stands) == (2 if also_read else 3)
    small, full = Theory.of(twins.kind, axes), Theory.of(kind, axes)
    found, _ = saturated(program(small, frozenset()), axes, Limits())
    wanted, _ = saturated(program(full, frozenset()), axes, Limits())
    restored = twins.restored(found, small, full)
    assert replace(restored, classes=0, views=0) == replace(wanted, classes=0, views=0)


def test_blocks_with_more_and_fewer_twins_are_one_program() -> None:
    programs = {program(Theory.of(Twins.of(mix(depths(count))).kind, 2), frozenset()) for count in (1, 2, 5)}
    assert len(programs) == 1
    assert {t.name for t in mix(depths(5)).inputs} == set(saturate(mix(depths(5)), 2).aliases) & {
        f"left{number}" for number in range(5)
    }


def test_a_sum_has_no_twins() -> None:
    """Rows of an addition want its operands alike, but one of them is no addition."""
    g = GraphBuilder("sum", batch=4, hidden=8)
    left = []
    for number in range(2):
        g.block = f"before.{number}"
        left.append(g.op(f"left{number}", "activation", [g.input("x", "batch hidden")], "batch hidden"))
    g.block = "mix"
    graph = g.build(g.op("y", "add", left, "batch hidden"))
    assert not Twins.of(mix(graph)).stands


def test_what_another_operator_reads_alone_has_no_twin() -> None:
    assert "left0" not in {*Twins.of(mix(depths(3, also_read=True))).stands.values()}
