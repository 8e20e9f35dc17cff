"""Small graphs of operators of dense models and of sampling, entered beside those of `cases`."""

from __future__ import annotations

import numpy as np

from rooflang.ir.graph import GraphBuilder
from rooflang.ir.tensor import Tensor

from .registry import case


@case("b t h")
def softmax(g: GraphBuilder) -> Tensor:
    return g.op("y", "softmax", [g.input("x", "b h t")], "b t h", over="h")


@case("b t h")
def bias(g: GraphBuilder) -> Tensor:
    return g.op("y", "bias", [g.input("x", "b t h"), g.weight("w", "h")], "t b h")


@case("b t kv member")
def repeat(g: GraphBuilder) -> Tensor:
    return g.op("y", "repeat", [g.input("x", "b kv t")], "b t member")


@case("b whole:4 outer inner")
def flatten(g: GraphBuilder) -> Tensor:
    return g.op("y", "flatten", [g.input("x", "outer b inner")], "b whole")


@case("b h")
def scale(g: GraphBuilder) -> Tensor:
    return g.op("y", "scale", [g.input("x", "b h")], "h b", factor=-1.5)


@case("b t h")
def gated_activation(g: GraphBuilder) -> Tensor:
    return g.op("y", "gated_activation", [g.input("x", "b h t"), g.input("z", "t b h")], "b t h", function="gelu")


@case("batch seq heads kv past even vals")
def grouped_causal(g: GraphBuilder) -> Tensor:
    q = g.input("q", "batch seq heads even")
    keys = [g.cache("k", "batch past kv even"), g.cache("v", "batch past kv vals")]
    return g.op("y", "grouped_attention", [q, *keys], "batch heads seq vals", causal=True)


@case("batch heads kv past even vals")
def grouped_window(g: GraphBuilder) -> Tensor:
    q = g.input("q", "batch heads even")
    keys = [g.cache("k", "batch past kv even"), g.cache("v", "batch past kv vals")]
    return g.op("y", "grouped_attention", [q, *keys], "batch heads vals", window=2)


@case("b t even")
def rope(g: GraphBuilder) -> Tensor:
    return g.op("y", "rope", [g.input("x", "b t even"), g.input("at", "t b", "int32")], "b t even")


@case("b t even")
def rope_interleaved(g: GraphBuilder) -> Tensor:
    operands = [g.input("x", "t b even"), g.input("at", "b t", "int32")]
    return g.op("y", "rope", operands, "b t even", interleaved=True)


@case("b t qkv:4 first part")
def segment(g: GraphBuilder) -> Tensor:
    return g.op("y", "segment", [g.input("x", "b qkv t")], "b t part", after=("first",))


@case("b t whole:4 outer inner")
def view(g: GraphBuilder) -> Tensor:
    return g.op("y", "view", [g.input("x", "b whole t")], "b t outer inner")


@case("b t once again")
def rename(g: GraphBuilder) -> Tensor:
    return g.op("y", "rename", [g.input("x", "b once t")], "t again b")


@case("b t blocks n4")
def block_matmul(g: GraphBuilder) -> Tensor:
    return g.op("y", "block_matmul", [g.input("x", "b t blocks"), g.weight("w", "blocks n4")], "t b n4", block=2)


@case("b t expert")
def capped_gates(g: GraphBuilder) -> Tensor:
    return g.op("y", "capped_gates", [g.input("x", "b expert t")], "b t expert", capacity=1)


@case("b t vocab")
def sample(g: GraphBuilder) -> Tensor:
    return g.op("y", "sample", [g.input("x", "b t vocab"), g.input("key", "t b", "int32")], "t b", "int32")


@case("b t vocab chosen")
def top_k(g: GraphBuilder) -> Tensor:
    return g.op("y", "top_k", [g.input("x", "b t vocab")], "t b chosen", "int32")


@case("b vocab")
def stateful_sample(g: GraphBuilder) -> Tensor:
    return g.op("y", "stateful_sample", [g.input("x", "b vocab")], "b", "int32")


def fit_dense(sizes: dict[str, int], rng: np.random.Generator) -> None:
    """Make even what is paired, multiples what is in blocks, and nothing longer than what it is taken from."""
    for label in ("even", "blocks", "n4"):
        if label in sizes:
            sizes[label] += sizes[label] % 2
    if "whole" in sizes:
        sizes["whole"] = sizes["outer"] * sizes["inner"]
    if "again" in sizes:
        sizes["again"] = sizes["once"]
    if "qkv" in sizes:
        sizes["qkv"] = sizes["first"] + sizes["part"] + int(rng.integers(0, 3))
    if "member" in sizes:
        sizes["kv"] = min(sizes["kv"], sizes["member"])
    if "past" in sizes:
        sizes["kv"] = min(sizes["kv"], sizes["heads"])
        sizes["past"] += sizes.get("seq", 0)


@case("b ctx kv h")
def append_by_head(g: GraphBuilder) -> Tensor:
    operands = [g.input("new", "b kv h"), g.cache("old", "b ctx kv h")]
    return g.op("y", "kv_append", operands, "b ctx kv h")


@case("b seq window kv h")
def window_by_head(g: GraphBuilder) -> Tensor:
    return g.op("y", "last_window", [g.input("x", "b seq kv h")], "b window kv h")
