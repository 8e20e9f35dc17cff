"""Small graphs on which the rule records show one application that fires and one that is refused."""

from __future__ import annotations

from functools import lru_cache

from rooflang.ir.graph import Graph, GraphBuilder


@lru_cache(maxsize=1)
def mlp() -> Graph:
    """norm, up, down, residual add."""
    g = GraphBuilder("mlp", batch=8, hidden=4, ffn=6)
    x = g.input("x", "batch hidden")
    n = g.op("norm", "rms_norm", [x], "batch hidden", over="hidden")
    up = g.op("up", "matmul", [n, g.weight("w_up", "hidden ffn")], "batch ffn")
    down = g.op("down", "matmul", [up, g.weight("w_down", "ffn hidden")], "batch hidden")
    return g.build(g.op("y", "add", [x, down], "batch hidden"))


@lru_cache(maxsize=1)
def decode_step() -> Graph:
    """A cache is saved as it was, appended to in place, and read by attention; a copy moves the result."""
    g = GraphBuilder("decode", batch=8, head=4, width=16, context=64)
    q = g.input("q", "batch head width")
    entry = g.input("entry", "batch width")
    old = g.cache("cache", "batch context width")
    saved = g.op("save", "to_dram", [old], "batch context width", "fp8")
    new = g.op("append", "kv_append", [entry, old], "batch context width", "fp8")
    out = g.op("attend", "attention", [q, new], "batch head width", parts=("window",))
    return g.build(saved, g.op("copy", "to_hbm", [out], "batch head width"))


@lru_cache(maxsize=1)
def attention_then_add() -> Graph:
    """Attention whose output is added to itself: a partial attention output is a log-sum-exp state, no summand."""
    g = GraphBuilder("attention", batch=8, head=4, width=16, context=64)
    q = g.input("q", "batch head width")
    out = g.op(
        "attend", "attention", [q, g.cache("cache", "batch context width")], "batch head width", parts=("window",)
    )
    return g.build(g.op("y", "add", [out, out], "batch head width"))
