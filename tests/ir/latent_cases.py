"""Small graphs of the operators that latent and linear attention need, entered beside those of `cases`."""

from __future__ import annotations

import numpy as np

from rooflang.ir.graph import GraphBuilder
from rooflang.ir.tensor import Tensor

from .registry import case


@case("b t h")
def sigmoid_mul(g: GraphBuilder) -> Tensor:
    return g.op("y", "sigmoid_mul", [g.input("x", "b h t"), g.input("gate", "t b h")], "b t h")


@case("b t h")
def layer_norm(g: GraphBuilder) -> Tensor:
    operands = [g.input("x", "b h t"), g.weight("gain", "h"), g.weight("bias", "h")]
    return g.op("y", "layer_norm", operands, "b t h", over="h")


@case("b t h")
def depth_mix(g: GraphBuilder) -> Tensor:
    vectors = [g.input("v0", "b t h"), g.input("v1", "h b t"), g.input("v2", "b t h")]
    return g.op("y", "depth_mix", [g.weight("gain", "h"), g.weight("query", "h"), *vectors], "b h t")


@case("b t rank width")
def latent_norm(g: GraphBuilder) -> Tensor:
    return g.op("y", "latent_norm", [g.input("x", "b t width"), g.weight("gain", "rank")], "t b width")


@case("b head nope rank query")
def absorb_query(g: GraphBuilder) -> Tensor:
    return g.op("y", "absorb_query", [g.input("x", "b head query"), g.weight("w", "head nope rank")], "head b rank")


@case("b t width rank head part made")
def expand_keys(g: GraphBuilder) -> Tensor:
    return g.op("y", "expand_latent", [g.input("x", "b t width"), g.weight("w", "head part rank")], "b t head made")


@case("b t width rank head part")
def expand_values(g: GraphBuilder) -> Tensor:
    return g.op("y", "expand_latent", [g.input("x", "b t width"), g.weight("w", "head part rank")], "b head t part")


@case("batch seq head rank query ctx width")
def latent_attention_causal(g: GraphBuilder) -> Tensor:
    queries = [g.input("absorbed", "batch seq head rank"), g.input("q", "seq batch head query")]
    entries = g.input("entries", "batch ctx width")
    return g.op("y", "latent_attention", [*queries, entries], "batch seq head rank", causal=True)


@case("batch seq head rank query ctx width chosen")
def latent_attention_chosen(g: GraphBuilder) -> Tensor:
    queries = [g.input("absorbed", "batch seq head rank"), g.input("q", "batch seq head query")]
    choice = [g.cache("entries", "batch ctx width"), g.input("ids", "batch seq chosen", "int32")]
    return g.op("y", "latent_attention", [*queries, *choice], "seq batch head rank", select=2)


@case("b seq h c tap")
def short_conv(g: GraphBuilder) -> Tensor:
    return g.op("y", "short_conv", [g.input("x", "b seq h c"), g.weight("w", "h c tap")], "b h seq c", taps=2)


@case("b tap h c")
def conv_push(g: GraphBuilder) -> Tensor:
    return g.op("y", "conv_push", [g.input("x", "b c h"), g.state("s", "b tap h c")], "b tap h c")


@case("b tap h c")
def conv_step(g: GraphBuilder) -> Tensor:
    return g.op("y", "conv_step", [g.input("s", "b tap h c"), g.weight("w", "h c tap")], "b h c", fused=True)


@case("b seq c tap")
def short_conv_bias(g: GraphBuilder) -> Tensor:
    operands = [g.input("x", "b seq c"), g.weight("w", "c tap"), g.weight("bias", "c")]
    return g.op("y", "short_conv", operands, "b seq c", taps=2)


@case("b tap h c")
def conv_step_bias(g: GraphBuilder) -> Tensor:
    operands = [g.input("s", "b tap h c"), g.weight("w", "h c tap"), g.weight("bias", "c h")]
    return g.op("y", "conv_step", operands, "b h c")


@case("b h c")
def rms_norm_gains(g: GraphBuilder) -> Tensor:
    return g.op("y", "rms_norm", [g.input("x", "b h c"), g.weight("gain", "h c")], "b h c", over="c")


def _decay(g: GraphBuilder) -> list[Tensor]:
    return [g.weight("rate", "h"), g.weight("shift", "h k")]


@case("b h k v")
def delta_update(g: GraphBuilder) -> Tensor:
    rows = [g.input("k", "b h k"), g.input("v", "b h v"), g.input("f", "b h k"), g.input("beta", "b h")]
    return g.op("y", "delta_update", [*rows, *_decay(g), g.state("s", "b h k v")], "b h k v")


@case("b h k v")
def delta_read(g: GraphBuilder) -> Tensor:
    return g.op("y", "delta_read", [g.input("q", "b h k"), g.input("s", "b h k v")], "b h v")


def _sequence(g: GraphBuilder) -> list[Tensor]:
    dims = {"k": "b seq h k", "v": "b seq h v", "f": "b seq h k", "beta": "b seq h"}
    return [g.input(name, each) for name, each in dims.items()] + _decay(g)


@case("b seq h k v")
def delta_scan(g: GraphBuilder) -> Tensor:
    return g.op("y", "delta_scan", [g.input("q", "b seq h k"), *_sequence(g)], "b seq h v")


@case("b seq h k v")
def delta_final(g: GraphBuilder) -> Tensor:
    return g.op("y", "delta_final", _sequence(g), "b h k v")


def fit_parts(sizes: dict[str, int], rng: np.random.Generator) -> None:
    """Make vectors as long as the parts that operators take of them: of an entry the rank and a rotary rest, of a query
    the part without rotation, or that rest."""
    if "width" in sizes and "rank" in sizes:
        sizes["width"] += sizes["rank"]
    if "query" in sizes:
        sizes["query"] += sizes.get("width", 0)
    if "nope" in sizes:
        sizes["nope"] = int(rng.integers(1, sizes["query"] + 1))
    if "made" in sizes:
        sizes["made"] = sizes["part"] + sizes["width"] - sizes["rank"]


@case("b h k v")
def linear_update(g: GraphBuilder) -> Tensor:
    operands = [g.input("k", "b h k"), g.input("v", "b h v"), g.weight("slope", "h"), g.state("s", "b h k v")]
    return g.op("y", "linear_update", operands, "b h k v")


@case("b h k v")
def linear_read(g: GraphBuilder) -> Tensor:
    return g.op("y", "linear_read", [g.input("q", "b h k"), g.input("s", "b h k v")], "b h v")


def _keyed(g: GraphBuilder) -> list[Tensor]:
    return [g.input("k", "b seq h k"), g.input("v", "b seq h v"), g.weight("slope", "h")]


@case("b seq h k v")
def linear_scan(g: GraphBuilder) -> Tensor:
    return g.op("y", "linear_scan", [g.input("q", "b seq h k"), *_keyed(g)], "b seq h v")


@case("b seq h k v")
def linear_final(g: GraphBuilder) -> Tensor:
    return g.op("y", "linear_final", _keyed(g), "b h k v")
