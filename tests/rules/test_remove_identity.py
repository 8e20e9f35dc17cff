"""remove_identity: readers of a copy may read what was copied."""

from __future__ import annotations

from dataclasses import replace

from rooflang.ir import Graph, GraphBuilder
from rooflang.rules import rule
from rooflang.rules.examples import decode_step
from rooflang.rules.record import Ok, Refusal

from .saturations import enodes_lost, saturated, snapshot

RULE = rule("remove_identity")


def copied() -> Graph:
    """A product, copied, then read by a norm."""
    g = GraphBuilder("copied", batch=8, hidden=4, ffn=6)
    up = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden ffn")], "batch ffn")
    copy = g.op("copy", "to_hbm", [up], "batch ffn")
    return g.build(g.op("norm", "rms_norm", [copy], "batch ffn", over="ffn"))


def test_moves_are_taken_and_nothing_else() -> None:
    graph = decode_step()
    taken = RULE.check(graph.op_by_name["copy"])
    assert isinstance(taken, Ok)
    assert taken.result == "attend"
    refused = RULE.check(graph.op_by_name["attend"])
    assert isinstance(refused, Refusal)
    assert refused.code == "no-identity"


def test_a_cast_is_no_identity() -> None:
    copy = copied().op_by_name["copy"]
    refused = RULE.check(replace(copy, output=replace(copy.output, dtype="fp8")))
    assert isinstance(refused, Refusal)
    assert refused.code == "lossy"


def test_copy_and_operand_are_one_class() -> None:
    theory, egraph = snapshot(copied())
    up, copy = (egraph.rows[theory.term(copied().op_by_name[name].output)][0].output for name in ("up", "copy"))
    assert up == copy
    block = saturated(copied())
    assert block.aliases == {"x": "x", "w": "w", "up": "up", "copy": "up", "norm": "norm"}
    assert {t.tensor for t in block.transfers} == {"up", "norm"}


def test_a_copy_is_still_there_for_those_who_want_it() -> None:
    assert "copy" in {mode.op.name for mode in saturated(copied()).modes}


def test_a_copy_of_what_is_overwritten_is_a_snapshot() -> None:
    graph = decode_step()
    refused = RULE.check(graph.op_by_name["save"], ops=graph.ops)
    assert isinstance(refused, Refusal)
    assert refused.code == "snapshot"
    assert isinstance(RULE.check(graph.op_by_name["copy"], ops=graph.ops), Ok)
    block = saturated(graph)
    assert block.aliases["save"] == "save"
    assert block.aliases["copy"] == "attend"
    assert not [t for t in block.transfers if t.tensor in ("save", "cache")]


def test_without_it_readers_need_the_copy() -> None:
    assert enodes_lost(copied(), "remove_identity")["View"] < 0  # one class less to view
    block = saturated(copied(), without="remove_identity")
    assert block.aliases["copy"] == "copy"
    assert {"up", "copy"} <= {t.tensor for t in block.transfers}
