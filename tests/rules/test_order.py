"""Paths over data and control edges, memory cells, and operators whose order can be seen."""

from __future__ import annotations

from rooflang.ir import Graph, GraphBuilder
from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.order import Cells, conflicts, overwritten, path


def test_a_path_is_a_chain_of_edges() -> None:
    assert path(mlp(), (), "norm", "y") == ("norm", "up", "down", "y")
    assert path(mlp(), (), "y", "norm") == ()
    assert path(mlp(), (), "up", "up") == ()
    assert path(mlp(), [("y", "norm")], "up", "up") == ("up", "down", "y", "norm", "up")


def test_control_edges_make_paths() -> None:
    assert path(decode_step(), (), "save", "attend") == ()
    assert path(decode_step(), [("save", "append")], "save", "attend") == ("save", "append", "attend")


def two_writers() -> Graph:
    """Two appends to one cache, a reader of what the first one makes, and two draws."""
    g = GraphBuilder("writers", batch=2, window=4, width=2)
    entry, cache = g.input("entry", "batch width"), g.cache("cache", "batch window width")
    one = g.op("one", "kv_append", [entry, cache], "batch window width", "fp8")
    g.op("two", "kv_append", [entry, cache], "batch window width", "fp8")
    g.op("read", "attention", [entry, one], "batch width", parts=("window",))
    for name in ("draw", "again"):
        g.op(name, "stateful_sample", [entry], "batch", "int32")
    return g.build()


def test_what_is_written_in_place_lies_where_its_operand_lay() -> None:
    cells = Cells.of(two_writers().ops)
    assert {cells.of_tensor(name) for name in ("cache", "one", "two")} == {"cache"}
    assert cells.of_tensor("read") == "read"
    assert overwritten(two_writers().ops) == {"cache"}
    gone = Cells.of(decode_step().ops, without=("save",))
    assert gone.read("save") == gone.of_tensor("save") == "cache"


def test_of_copies_of_copies_that_are_left_out_the_first_operand_is_read() -> None:
    g = GraphBuilder("copies", batch=2, window=4, width=2)
    once = g.op("once", "to_dram", [g.cache("cache", "batch window width")], "batch window width", "fp8")
    twice = g.op("twice", "to_hbm", [once], "batch window width", "fp8")
    new = g.op("new", "kv_append", [g.input("entry", "batch width"), twice], "batch window width", "fp8")
    gone = Cells.of(g.build(new).ops, without=("once", "twice"))
    assert gone.read("twice") == gone.of_tensor("twice") == gone.of_tensor("new") == "cache"


def test_operators_conflict_over_memory_and_over_a_generator() -> None:
    pairs = {frozenset((a.name, b.name)) for a, b in conflicts(decode_step())}
    assert pairs == {frozenset(("append", "save")), frozenset(("append", "attend"))}
    assert list(conflicts(mlp())) == []
    pairs = {frozenset((a.name, b.name)) for a, b in conflicts(two_writers())}
    assert pairs == {frozenset(p) for p in (("one", "two"), ("one", "read"), ("two", "read"), ("draw", "again"))}
