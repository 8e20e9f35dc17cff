"""Who shares whose memory, under both profiles."""

from __future__ import annotations

from rooflang.hw import Cluster
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import REPLICATED
from rooflang.ir.graph import GraphBuilder
from rooflang.ir.tensor import Role
from rooflang.place.grid import grid_plan
from rooflang.place.lower import Value, lower
from rooflang.place.storage import storage, stored

from .graphs import decode, mlp
from .test_lower import two_readers

R = REPLICATED


def test_a_slice_lies_in_what_it_is_cut_from() -> None:
    placed = two_readers("batch", "hidden", made=R)
    for receive_buffers in (True, False):
        lies = storage(placed, receive_buffers=receive_buffers)
        whole = ("x", (R,), 0)
        assert lies[("x", ("batch",), 0)] == lies[("x", ("hidden",), 0)] == lies[whole] == whole
        assert lies[("in", (R,), 0)] == ("in", (R,), 0)
        assert list(stored(placed, lies)) == [("in", (R,), 0), whole, ("a", ("batch",), 0), ("b", ("hidden",), 0)]


def test_what_is_received_has_a_buffer_or_lies_with_its_source() -> None:
    placed = two_readers(R, "hidden")
    shard, whole, other = ("x", ("batch",), 0), ("x", (R,), 0), ("x", ("hidden",), 0)
    charged = storage(placed, receive_buffers=True)
    assert (charged[whole], charged[other]) == (whole, other)
    free = storage(placed, receive_buffers=False)
    assert (free[whole], free[other]) == (shard, shard)
    assert len(stored(placed, charged)) == len(stored(placed, free)) + 2


def test_a_slice_of_what_was_received_free_lies_with_the_source() -> None:
    placed = two_readers(R, "batch", made="hidden")
    assert [op.name for op in placed.ops][1] == "x all_gather"
    free = storage(placed, receive_buffers=False)
    assert set(free.values()) == {
        ("in", ("hidden",), 0), ("x", ("hidden",), 0), ("a", (R,), 0), ("b", ("batch",), 0)
    }  # fmt: skip


def test_an_append_takes_no_room_beside_the_cache() -> None:
    graph = decode(1)
    placed = lower(grid_plan(graph, Cluster.of("b300", 8), dp=8, cp=1, pp=1), split_blocks(graph))
    lies = storage(placed, receive_buffers=True)
    assert lies[("after0", ("batch",), 0)] is None
    assert ("after0", ("batch",), 0) not in stored(placed, lies)
    assert lies[("kv0", ("batch",), 0)] == ("kv0", ("batch",), 0)


def test_an_append_to_a_value_lies_in_it() -> None:
    g = GraphBuilder("fresh", batch=8, seq=16, entries=4, width=4)
    made = g.op("made", "pool", [g.input("x", "batch seq width")], "batch entries width")
    new = g.input("new", "batch width")
    graph = g.build(g.op("after", "kv_append", [new, made], "batch entries width"))
    placed = lower(grid_plan(graph, Cluster.of("b300", 4), dp=4, cp=1, pp=1), split_blocks(graph))
    lies = storage(placed, receive_buffers=True)
    assert lies[("after", ("batch",), 0)] == ("made", ("batch",), 0)


def test_what_a_send_delivers_has_a_buffer_on_the_next_stage_or_none() -> None:
    graph = mlp(2)
    placed = lower(grid_plan(graph, Cluster.of("b300", 4), dp=2, cp=1, pp=2), split_blocks(graph))
    sent: Value = ("add0", ("batch",), 1)
    assert storage(placed, receive_buffers=True)[sent] == sent
    assert storage(placed, receive_buffers=False)[sent] is None


def test_what_stays_on_chip_takes_no_room() -> None:
    g = GraphBuilder("fused", batch=8, hidden=16)
    x = g.op("x", "activation", [g.input("in", "batch hidden")], "batch hidden", role=Role.ON_CHIP)
    graph = g.build(g.op("y", "activation", [x], "batch hidden"))
    placed = lower(grid_plan(graph, Cluster.of("b300", 4), dp=4, cp=1, pp=1), split_blocks(graph))
    lies = storage(placed, receive_buffers=True)
    assert lies[("x", ("batch",), 0)] is None
    assert list(stored(placed, lies)) == [("in", ("batch",), 0), ("y", ("batch",), 0)]


def test_of_what_is_read_as_one_slice_only_the_slice_is_kept() -> None:
    placed = two_readers("batch", "batch", made=R)
    whole, part = ("x", (R,), 0), ("x", ("batch",), 0)
    for receive_buffers in (True, False):
        lies = storage(placed, receive_buffers=receive_buffers)
        assert (lies[whole], lies[part]) == (None, part)
        assert whole not in stored(placed, lies)


def test_streamed_rows_and_one_pass_copies() -> None:
    """Rows that are read expert by expert never lie together; copies of the paper's profile lie where their source
    does."""
    g = GraphBuilder("experts", batch=8, hidden=16, gate=2, ffn=4)
    copied = g.op("copied", "to_hbm", [g.input("in", "batch hidden")], "batch hidden", one_pass=True)
    inner = g.op("inner", "gated_matmul", [copied, g.weight("up", "hidden gate ffn")], "batch ffn", streamed=True)
    graph = g.build(g.op("out", "matmul", [inner, g.weight("down", "ffn hidden")], "batch hidden"))
    placed = lower(grid_plan(graph, Cluster.of("b300", 4), dp=4, cp=1, pp=1), split_blocks(graph))
    source, copy, rows = ((name, ("batch",), 0) for name in ("in", "copied", "inner"))
    charged, free = (storage(placed, receive_buffers=buffers) for buffers in (True, False))
    assert (charged[copy], free[copy]) == (copy, source)
    assert charged[rows] is free[rows] is None
