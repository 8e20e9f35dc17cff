"""Small graphs for sessions: a transformer block or two, a decode step with a cache, experts."""

from __future__ import annotations

from rooflang.ir.graph import Graph, GraphBuilder


def mlp() -> Graph:
    """up, activation, down."""
    g = GraphBuilder("mlp", batch=64, hidden=8192, ffn=32768)
    up = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w1", "hidden ffn")], "batch ffn")
    act = g.op("act", "activation", [up], "batch ffn", function="silu")
    return g.build(g.op("down", "matmul", [act, g.weight("w2", "ffn hidden")], "batch hidden"))


def layers(count: int = 3) -> Graph:
    """Layers of one kind: norm, up, down, residual add."""
    g = GraphBuilder("layers", batch=16, hidden=64, ffn=128)
    x = g.input("x", "batch hidden")
    for n in range(count):
        g.block = f"layers.{n}"
        norm = g.op(f"layers.{n}.norm", "rms_norm", [x], "batch hidden", over="hidden")
        up = g.op(f"layers.{n}.up", "matmul", [norm, g.weight(f"layers.{n}.w1", "hidden ffn")], "batch ffn")
        down = g.op(f"layers.{n}.down", "matmul", [up, g.weight(f"layers.{n}.w2", "ffn hidden")], "batch hidden")
        x = g.op(f"layers.{n}.sum", "add", [x, down], "batch hidden")
    return g.build(x)


def decode() -> Graph:
    """A decode step: projections, an append to the cache, attention over it, a copy of the cache beside it."""
    g = GraphBuilder("decode", batch=8, hidden=32, head=8, width=8, context=16)
    x = g.input("x", "batch hidden")
    q = g.op("q", "matmul", [x, g.weight("w_q", "hidden head width")], "batch head width")
    entry = g.op("entry", "matmul", [x, g.weight("w_k", "hidden width")], "batch width")
    cache = g.op("append", "kv_append", [entry, g.cache("cache", "batch context width")], "batch context width", "fp8")
    out = g.op("attend", "attention", [q, cache], "batch head width", parts=("window",))
    moved = g.op("copy", "to_hbm", [out], "batch head width")
    o = g.op("o", "matmul", [moved, g.weight("w_o", "head width hidden")], "batch hidden")
    return g.build(g.op("sum", "add", [x, o], "batch hidden"), cache)
