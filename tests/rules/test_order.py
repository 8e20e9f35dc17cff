"""Paths over data and control edges, and operators that share memory."""

from __future__ import annotations

from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.order import memory_conflicts, path


def test_a_path_is_a_chain_of_edges() -> None:
    assert path(mlp(), (), "norm", "y") == ("norm", "up", "down", "y")
    assert path(mlp(), (), "y", "norm") == ()
    assert path(mlp(), (), "up", "up") == ()
    assert path(mlp(), [("y", "norm")], "up", "up") == ("up", "down", "y", "norm", "up")


def test_control_edges_make_paths() -> None:
    assert path(decode_step(), (), "save", "attend") == ()
    assert path(decode_step(), [("save", "append")], "save", "attend") == ("save", "append", "attend")


def test_a_write_in_place_conflicts_with_readers_of_the_old_value() -> None:
    pairs = [(writer.name, reader.name) for writer, reader in memory_conflicts(decode_step())]
    assert pairs == [("append", "save")]
    assert list(memory_conflicts(mlp())) == []
