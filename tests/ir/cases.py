"""One small graph of a single operator for every kind and shape of it that matters, and random layouts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rooflang.ir.cut import PARTIAL, REPLICATED, Spec
from rooflang.ir.digits import Digits
from rooflang.ir.evaluate import random_leaves
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.kinds.fused import FUSIONS, fuse
from rooflang.ir.op import Op, signature
from rooflang.ir.reference import reference
from rooflang.ir.reference.base import Array
from rooflang.ir.tensor import Tensor
from rooflang.ir.values import Value, place

from .dense_cases import fit_dense
from .latent_cases import fit_parts
from .registry import CASES as CASES
from .registry import Make, case


@case("b m k n")
def matmul(g: GraphBuilder) -> Tensor:
    return g.op("y", "matmul", [g.input("x", "b m k"), g.weight("w", "k n")], "n b m")


@case("b e k j n")
def matmul_per_expert(g: GraphBuilder) -> Tensor:
    return g.op("y", "matmul", [g.input("x", "b e k j"), g.weight("w", "e j n k")], "b e n")


@case("b e k gate n")
def gated_matmul(g: GraphBuilder) -> Tensor:
    return g.op("y", "gated_matmul", [g.input("x", "b e k"), g.weight("w", "e k gate n")], "b e n")


@case("b h")
def add(g: GraphBuilder) -> Tensor:
    return g.op("y", "add", [g.input("x", "b h"), g.input("z", "h b")], "b h")


@case("b h")
def activation(g: GraphBuilder) -> Tensor:
    return g.op("y", "activation", [g.input("x", "b h")], "h b", function="gelu")


@case("b h")
def to_hbm(g: GraphBuilder) -> Tensor:
    return g.op("y", "to_hbm", [g.input("x", "b h")], "b h")


@case("b h")
def to_dram(g: GraphBuilder) -> Tensor:
    return g.op("y", "to_dram", [g.input("x", "b h")], "b h")


@case("b h")
def to_nvme(g: GraphBuilder) -> Tensor:
    return g.op("y", "to_nvme", [g.input("x", "b h")], "b h")


@case("b t h")
def rms_norm(g: GraphBuilder) -> Tensor:
    return g.op("y", "rms_norm", [g.input("x", "b h t")], "b t h", over="h")


@case("b h")
def rms_norm_gain(g: GraphBuilder) -> Tensor:
    return g.op("y", "rms_norm", [g.input("x", "b h"), g.weight("w", "h")], "b h", over="h")


@case("batch seq head dim window kv")
def attention_window(g: GraphBuilder) -> Tensor:
    operands = [g.input("q", "batch seq head dim"), g.cache("near", "batch window kv")]
    return g.op("y", "attention", operands, "batch head seq dim", parts=("window",))


@case("batch seq head dim window ctx")
def attention_dense(g: GraphBuilder) -> Tensor:
    operands = [
        g.input("q", "batch seq head dim"),
        g.cache("far", "batch ctx dim"),
        g.cache("near", "batch window dim"),
    ]
    return g.op("y", "attention", operands, "batch seq head dim", parts=("context", "window"))


@case("batch seq head dim window ctx chosen")
def attention_chosen(g: GraphBuilder) -> Tensor:
    operands = [
        g.input("q", "batch seq head dim"),
        g.cache("near", "batch window dim"),
        g.cache("far", "batch ctx dim"),
        g.input("ids", "batch seq chosen", "int32"),
    ]
    return g.op("y", "attention", operands, "batch seq head dim", parts=("window", "context", "selection"), select=2)


@case("batch head dim ctx width")
def attention_indexed(g: GraphBuilder) -> Tensor:
    operands = [g.input("q", "batch head dim"), g.cache("far", "batch ctx dim"), g.cache("keys", "batch ctx width")]
    return g.op("y", "attention", operands, "batch head dim", parts=("context", "index"), select=2, index_heads=4)


@case("batch seq head width ctx chosen")
def index_select(g: GraphBuilder) -> Tensor:
    operands = [g.input("q", "batch seq head width"), g.input("w", "batch seq head"), g.cache("k", "batch ctx width")]
    return g.op("y", "index_select", operands, "batch seq chosen", "int32")


@case("b t expert")
def route(g: GraphBuilder) -> Tensor:
    return g.op("y", "route", [g.input("x", "b expert t")], "b t expert", top_k=2)


@case("b t expert vocab k")
def hash_route(g: GraphBuilder) -> Tensor:
    operands = [g.input("x", "b t expert"), g.input("ids", "b t", "int32"), g.weight("table", "vocab k", "int64")]
    return g.op("y", "hash_route", operands, "b t expert")


@case("b expert vocab")
def hash_route_one(g: GraphBuilder) -> Tensor:
    operands = [g.input("x", "b expert"), g.input("ids", "b", "int32"), g.weight("table", "vocab", "int64")]
    return g.op("y", "hash_route", operands, "b expert")


@case("b t expert h")
def dispatch(g: GraphBuilder) -> Tensor:
    return g.op("y", "dispatch", [g.input("x", "b t h"), g.input("gates", "b t expert")], "b expert t h")


@case("b t expert h")
def combine(g: GraphBuilder) -> Tensor:
    return g.op("y", "combine", [g.input("x", "b t expert h"), g.input("gates", "b t expert")], "b t h")


@case("b t vocab h")
def embed(g: GraphBuilder) -> Tensor:
    return g.op("y", "embed", [g.input("ids", "b t", "int32"), g.weight("table", "vocab h")], "b h t")


@case("b seq h")
def last_token(g: GraphBuilder) -> Tensor:
    return g.op("y", "last_token", [g.input("x", "b seq h")], "h b")


@case("b seq image h")
def fill_in(g: GraphBuilder) -> Tensor:
    return g.op("y", "fill_in", [g.input("x", "b seq h"), g.input("z", "b image h")], "h b seq")


@case("b t vocab")
def argmax(g: GraphBuilder) -> Tensor:
    return g.op("y", "argmax", [g.input("x", "b t vocab")], "t b", "int32")


@case("b seq ctx part h wide")
def pool(g: GraphBuilder) -> Tensor:
    return g.op("y", "pool", [g.input("x", "b seq part h")], "b ctx h wide")


@case("b seq window h")
def last_window(g: GraphBuilder) -> Tensor:
    return g.op("y", "last_window", [g.input("x", "b seq h")], "b window h")


@case("b window h part")
def kv_append(g: GraphBuilder) -> Tensor:
    return g.op("y", "kv_append", [g.input("new", "part b h"), g.cache("old", "b window h")], "b window h")


@case("b window:4 several h part")
def kv_append_several(g: GraphBuilder) -> Tensor:
    operands = [g.input("new", "b several part h"), g.cache("old", "b window h")]
    return g.op("y", "kv_append", operands, "b window h", positions="several")


@case("b copy h")
def hyper_expand(g: GraphBuilder) -> Tensor:
    return g.op("y", "hyper_expand", [g.input("x", "b h")], "b copy h")


@case("b t copy h mix")
def hyper_read(g: GraphBuilder) -> Tensor:
    return g.op("y", "hyper_read", [g.input("x", "b t copy h"), g.input("c", "b t mix")], "b t h")


@case("b copy h mix")
def hyper_write(g: GraphBuilder) -> Tensor:
    return g.op("y", "hyper_write", [g.input("x", "b copy h"), g.input("c", "mix b"), g.input("z", "b h")], "b copy h")


def _fused(name: str, graph: Graph) -> Graph:
    """The graph whose one operator is the fusion of this graph's two."""
    inner, outer = graph.ops
    fusion = next(f for f in FUSIONS if f.name == name)
    return replace(graph, ops=(fuse(fusion, outer, inner),))


def _pair(name: str, dims: str, make: Make) -> None:
    def build() -> Graph:
        builder = GraphBuilder(name, **dict.fromkeys(dims.split(), 2))
        return _fused(name, builder.build(make(builder)))

    CASES[name] = build


def _norm_matmul(g: GraphBuilder) -> Tensor:
    x = g.op("x", "rms_norm", [g.input("raw", "b t h"), g.weight("gain", "h")], "b t h", over="h")
    return g.op("y", "matmul", [x, g.weight("w", "t h n")], "b n")


def _norm_gated(g: GraphBuilder) -> Tensor:
    x = g.op("x", "rms_norm", [g.input("raw", "b h")], "b h", over="h")
    return g.op("y", "gated_matmul", [x, g.weight("w", "h gate n")], "b n")


def _matmul_add(g: GraphBuilder) -> Tensor:
    x = g.op("x", "matmul", [g.input("a", "b k j"), g.weight("w", "k j n")], "b n")
    return g.op("y", "add", [g.input("z", "b n"), x], "b n")


def _combine_add(g: GraphBuilder) -> Tensor:
    x = g.op("x", "combine", [g.input("rows", "b expert h"), g.input("gates", "b expert")], "b h")
    return g.op("y", "add", [x, g.input("z", "b h")], "b h")


def _add_norm(g: GraphBuilder) -> Tensor:
    x = g.op("x", "add", [g.input("a", "b h"), g.input("z", "h b")], "b h")
    return g.op("y", "rms_norm", [x, g.weight("gain", "h")], "b h", over="h")


def _norm_rope(g: GraphBuilder) -> Tensor:
    x = g.op("x", "rms_norm", [g.input("raw", "b t even"), g.weight("gain", "even")], "b t even", over="even")
    return g.op("y", "rope", [x, g.input("at", "b t", "int32")], "t b even")


def _matmul_activation(g: GraphBuilder) -> Tensor:
    x = g.op("x", "matmul", [g.input("a", "b k"), g.weight("w", "k n")], "b n")
    return g.op("y", "activation", [x], "b n", function="gelu")


def _route_dispatch(g: GraphBuilder) -> Tensor:
    x = g.op("x", "route", [g.input("logits", "b expert")], "b expert", top_k=2)
    return g.op("y", "dispatch", [g.input("rows", "b h"), x], "b expert h")


_pair("norm_matmul", "b t h n", _norm_matmul)
_pair("norm_gated", "b h gate n", _norm_gated)
_pair("matmul_add", "b k j n", _matmul_add)
_pair("combine_add", "b expert h", _combine_add)
_pair("add_norm", "b h", _add_norm)
_pair("norm_rope", "b t even", _norm_rope)
_pair("matmul_activation", "b k n", _matmul_activation)
_pair("route_dispatch", "b expert h", _route_dispatch)


def the_op(graph: Graph) -> Op:
    (op,) = graph.ops
    return op


# -- random extents, arrays, layouts ----------------------------------------------------------------------------------


def extents(graph: Graph, rng: np.random.Generator, *, least: int, most: int = 5) -> Graph:
    """The graph with random extents in [least, most]; what must agree does."""
    sizes = {label: int(rng.integers(least, most + 1)) for label in graph.sizes}
    op = the_op(graph)
    if "gate" in sizes:
        sizes["gate"] = 2
    if op.kind == "attention" and "kv" in sizes:
        sizes["kv"] = sizes["dim"]
    fit_parts(sizes, rng)
    fit_dense(sizes, rng)
    return graph.resized(**sizes)


def arrays(graph: Graph, rng: np.random.Generator, *, ties: bool) -> dict[str, Array]:
    """Arrays for the leaves; with `ties` few different numbers, of which sums and products are exact."""
    leaves = random_leaves(graph, int(rng.integers(2**32)))
    if ties:
        leaves = {
            name: rng.integers(-2, 3, a.shape) / 2 if np.issubdtype(a.dtype, np.floating) else a
            for name, a in leaves.items()
        }
    return leaves


def expected(graph: Graph, leaves: Mapping[str, Array]) -> Array:
    """What the graph's operator computes unsharded."""
    op = the_op(graph)
    return reference(op.kind).full(op, graph.sizes, *(leaves[t.name] for t in op.operands))


def random_digits(graph: Graph, axis_sizes: Sequence[int], rng: np.random.Generator) -> Digits:
    """Owners of every label along every axis: nested, uneven runs (empty ones too), or scattered at random."""
    op = the_op(graph)
    pooled = [(op.operands[0].dims[1], op.output.dims[1])] if op.kind == "pool" else []
    pooled += [(row.grouped[0], row.grouped[1]) for row in signature(op) if row.grouped]
    aligned = {row.dim: row.multiple_of for row in signature(op)}
    axes = range(len(axis_sizes))
    style = rng.integers(3)
    if style == 0:
        return Digits.nested(axis_sizes, graph.sizes, dict.fromkeys(graph.sizes, axes), pooled, aligned)
    owner = {}
    for label, size in graph.sizes.items():
        for axis in axes:
            block = aligned.get(label, 1)
            draws = np.repeat(rng.integers(0, axis_sizes[axis], size // block), block)
            owner[(label, axis)] = np.sort(draws) if style == 1 else draws
    for positions, entries in pooled:
        ratio = -(-graph.sizes[positions] // graph.sizes[entries])
        for axis in axes:
            owner[(positions, axis)] = owner[(entries, axis)][np.arange(graph.sizes[positions]) // ratio]
    return Digits(axis_sizes=tuple(axis_sizes), sizes=graph.sizes, owner=owner)


def laid(tensor: Tensor, array: Array, spec: Spec, digits: Digits, rng: np.random.Generator) -> Value:
    """An array laid over the mesh; a partial one as random summands."""
    partial = [axis for axis, entry in enumerate(spec) if entry == PARTIAL]
    calm = tuple(REPLICATED if entry == PARTIAL else entry for entry in spec)
    if not partial:
        return place(tensor, array, spec, digits)
    rest, pieces = array, {}
    shares = list(np.ndindex(*(digits.axis_sizes[axis] for axis in partial)))
    for at in shares:
        summand = rest if at == shares[-1] else rng.integers(-4, 5, array.shape) / 4
        rest = rest - summand
        for rank, piece in place(tensor, summand, calm, digits).pieces.items():
            if all(rank[axis] == coordinate for axis, coordinate in zip(partial, at)):
                pieces[rank] = piece
    return Value(tensor=tensor, spec=spec, pieces=pieces)


def same(found: Array, wanted: Array) -> bool:
    """Equal shapes, and equal numbers up to rounding (ids exactly)."""
    if found.shape != wanted.shape:
        return False
    if np.issubdtype(wanted.dtype, np.integer):
        return bool(np.array_equal(found, wanted))
    return bool(np.allclose(found, wanted, rtol=1e-9, atol=1e-9))
