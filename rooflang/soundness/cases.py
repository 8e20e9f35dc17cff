"""Small graphs to try rules on: one operator of every kind, in every shape that matters, and pairs that fuse.

A case is a line of a table (`line`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.kinds.fused import FUSIONS, fuse
from rooflang.ir.op import Op, op_kinds
from rooflang.ir.tensor import Tensor
from rooflang.soundness.case import MARKS, Case, line
from rooflang.soundness.dense_cases import DENSE_CASES

_SEQUENCE = ("b seq h k", "b seq h v", "b seq h k", "b seq h", "*h", "*h k")

#: Cases by name.
CASES: dict[str, Case] = {
    "matmul": line("matmul", "b m k", "*k n", out="n b m"),
    "matmul_per_expert": line("matmul", "b e k j", "*e j n k", out="b e n"),
    "gated_matmul": line("gated_matmul", "b e k", "*e k gate n", out="b e n", sizes={"gate": 2}),
    "joint_matmul": line("joint_matmul", "b k", "*k m", "*k n", out="joint b", sizes={"joint": 4}),
    "add": line("add", "b h", "h b", out="b h"),
    "activation": line("activation", "b h", out="h b", function="gelu"),
    "activation_relu": line("activation", "b h", out="b h", function="relu"),
    "sigmoid_mul": line("sigmoid_mul", "b h t", "t b h", out="b t h"),
    "to_hbm": line("to_hbm", "b h", out="b h"),
    "to_dram": line("to_dram", "b h", out="b h"),
    "to_nvme": line("to_nvme", "b h", out="h b"),
    "recall": line("recall", "b ctx h", "=b ctx h", out="b h ctx"),
    "rms_norm": line("rms_norm", "b h t", out="b t h", over="h"),
    "rms_norm_gain": line("rms_norm", "b h", "*h", out="b h", over="h"),
    "layer_norm": line("layer_norm", "b h t", "*h", "*h", out="b t h", over="h"),
    "softmax": line("softmax", "b h t", out="b t h", over="h"),
    "depth_mix": line("depth_mix", "*h", "*h", "b t h", "h b t", "b t h", out="b t h"),
    "attention_window": line(
        "attention", "batch seq head dim", "=batch window dim", out="batch head seq dim", parts=("window",)
    ),
    "attention_dense": line(
        "attention",
        "batch seq head dim",
        "=batch ctx dim",
        "=batch window dim",
        out="batch seq head dim",
        parts=("context", "window"),
    ),
    "attention_chosen": line(
        "attention",
        "batch seq head dim",
        "=batch window dim",
        "=batch ctx dim",
        "#batch seq chosen",
        out="batch seq head dim",
        parts=("window", "context", "selection"),
        select=2,
    ),
    "attention_indexed": line(
        "attention",
        "batch head dim",
        "=batch ctx dim",
        "=batch ctx width",
        out="batch head dim",
        parts=("context", "index"),
        select=2,
        index_heads=4,
    ),
    "grouped_causal": line(
        "grouped_attention",
        "batch seq head dim",
        "=batch ctx kv dim",
        "=batch ctx kv val",
        out="batch head seq val",
        causal=True,
    ),
    "grouped_window": line(
        "grouped_attention",
        "batch seq head dim",
        "=batch ctx kv dim",
        "=batch ctx kv val",
        out="batch seq head val",
        window=2,
    ),
    "grouped_decode": line(
        "grouped_attention", "batch head dim", "=batch ctx kv dim", "=batch ctx kv val", out="batch head val"
    ),
    "index_select": line(
        "index_select",
        "batch seq head width",
        "batch seq head",
        "=batch ctx width",
        out="batch seq chosen",
        ids=True,
    ),
    "latent_norm": line("latent_norm", "b t width", "*rank", out="t b width"),
    "absorb_query": line("absorb_query", "b head query", "*head nope rank", out="head b rank"),
    "expand_keys": line("expand_latent", "b t width", "*head part rank", out="b t head made"),
    "expand_values": line("expand_latent", "b t width", "*head part rank", out="b head t part"),
    "latent_causal": line(
        "latent_attention",
        "batch seq head rank",
        "seq batch head query",
        "batch ctx width",
        out="batch seq head rank",
        causal=True,
    ),
    "latent_chosen": line(
        "latent_attention",
        "batch seq head rank",
        "batch seq head query",
        "=batch ctx width",
        "#batch seq chosen",
        out="seq batch head rank",
        select=2,
    ),
    "rope": line("rope", "b t even", "#t b", out="b t even"),
    "rope_interleaved": line("rope", "t b even", "#b t", out="b t even", interleaved=True),
    "short_conv": line("short_conv", "b seq c", "*c tap", out="b seq c", sizes={"tap": 3}, taps=3),
    "conv_push": line("conv_push", "b c h", "~b tap h c", out="b tap h c"),
    "conv_step": line("conv_step", "b tap h c", "*h c tap", out="b h c", fused=True),
    "delta_update": line("delta_update", "b h k", "b h v", "b h k", "b h", "*h", "*h k", "~b h k v", out="b h k v"),
    "delta_read": line("delta_read", "b h k", "b h k v", out="b h v"),
    "delta_scan": line("delta_scan", "b seq h k", *_SEQUENCE, out="b seq h v"),
    "delta_final": line("delta_final", *_SEQUENCE, out="b h k v"),
    "route": line("route", "b expert t", out="b t expert", top_k=2),
    "hash_route": line("hash_route", "b t expert", "#b t", "*vocab k", out="b t expert"),
    "capped_gates": line("capped_gates", "b expert t", out="b t expert", capacity=1),
    "dispatch": line("dispatch", "b t h", "b t expert", out="b expert t h"),
    "combine": line("combine", "b t expert h", "b t expert", out="b t h"),
    "embed": line("embed", "#b t", "*vocab h", out="b h t"),
    "last_token": line("last_token", "b seq h", out="h b"),
    "fill_in": line("fill_in", "b seq h", "b image h", out="h b seq"),
    "argmax": line("argmax", "b t vocab", out="t b", ids=True),
    "sample": line("sample", "b t vocab", "#t b", out="t b", ids=True),
    "stateful_sample": line("stateful_sample", "b t vocab", out="b t", ids=True),
    "pool": line("pool", "b seq part h", out="b ctx h wide"),
    "last_window": line("last_window", "b seq h", out="b window h"),
    "kv_append": line("kv_append", "part b h", "=b window h", out="b window h"),
    "kv_append_several": line(
        "kv_append", "b several part h", "=b window h", out="b window h", sizes={"window": 4}, positions="several"
    ),
    "segment": line("segment", "b qkv t", out="b t part", sizes={"first": 1, "qkv": 4}, after=("first",)),
    "part": line("part", "b qkv t", out="b t part", sizes={"first": 1, "qkv": 4}, after=("first",)),
    "view": line("view", "b whole t", out="b t outer inner", sizes={"whole": 4}),
    "rename": line("rename", "b old t", out="t new b"),
    "block_matmul": line("block_matmul", "b t blocks", "*blocks even", out="t b even", block=2),
    "hyper_expand": line("hyper_expand", "b h", out="b copy h"),
    "hyper_read": line("hyper_read", "b t copy h", "b t mix", out="b t h"),
    "hyper_write": line("hyper_write", "b copy h", "mix b", "b h", out="b copy h"),
    **DENSE_CASES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An operator and the one that computes it inside: operand `at` of `outer` is what `inner` makes.

    An outer operator that is fused itself is named by its own pair; operands of `inner` in `same` are its operands.
    """

    inner: Case
    outer: Case | str
    at: int
    same: Mapping[int, int] = field(default_factory=dict)


#: Pairs by the name of their fusion.
PAIRS: dict[str, Pair] = {
    "norm_matmul": Pair(
        inner=line("rms_norm", "b t h", "*h", out="b t h", over="h"),
        outer=line("matmul", "b t h", "*t h n", out="b n"),
        at=0,
    ),
    "norm_gated": Pair(
        inner=line("rms_norm", "b h", out="b h", over="h"),
        outer=line("gated_matmul", "b h", "*h gate n", out="b n", sizes={"gate": 2}),
        at=0,
    ),
    "matmul_add": Pair(
        inner=line("matmul", "b k j", "*k j n", out="b n"),
        outer=line("add", "b n", "b n", out="b n"),
        at=1,
    ),
    "combine_add": Pair(
        inner=line("combine", "b expert h", "b expert", out="b h"),
        outer=line("add", "b h", "b h", out="b h"),
        at=0,
    ),
    "add_norm": Pair(
        inner=line("add", "b h", "h b", out="b h"),
        outer=line("rms_norm", "b h", "*h", out="b h", over="h"),
        at=0,
    ),
    "norm_rope": Pair(
        inner=line("rms_norm", "b t even", "*even", out="b t even", over="even"),
        outer=line("rope", "b t even", "#b t", out="t b even"),
        at=0,
    ),
    "matmul_activation": Pair(
        inner=line("matmul", "b k", "*k n", out="b n"),
        outer=line("activation", "b n", out="n b", function="gelu"),
        at=0,
    ),
    "matmul_gate": Pair(
        inner=line("matmul", "b k", "*k n", out="b n"),
        outer=line("gated_activation", "b n", "b n", out="n b"),
        at=0,
    ),
    "gated_projections": Pair(
        inner=line("matmul", "b k", "*k n", out="b n"),
        outer="matmul_gate",
        at=2,
        same={0: 0},
    ),
    "norm_projections": Pair(
        inner=line("rms_norm", "b k", "*k", out="b k", over="k"),
        outer="gated_projections",
        at=0,
    ),
    "norm_joint": Pair(
        inner=line("rms_norm", "b k", "*k", out="b k", over="k"),
        outer=line("joint_matmul", "b k", "*k m", "*k n", out="b joint", sizes={"joint": 4}),
        at=0,
    ),
    "route_dispatch": Pair(
        inner=line("route", "b expert", out="b expert", top_k=2),
        outer=line("dispatch", "b h", "b expert", out="b expert h"),
        at=1,
    ),
}


def case_names() -> tuple[str, ...]:
    """Names of all cases, those of fused operators last."""
    return (*CASES, *PAIRS)


def example(case: str | Graph) -> Graph:
    """The graph of a case: one operator, every dim of extent 2 where it may be. A graph is a case of its own."""
    return case if isinstance(case, Graph) else _example(case)


@cache
def _example(name: str) -> Graph:
    if name in PAIRS:
        unfused = pair(name)
        inner, outer = unfused.ops
        fusion = next(f for f in FUSIONS if f.name == name)
        return replace(unfused, name=name, ops=(fuse(fusion, outer, inner),), outputs=("y",))
    case = CASES[name]
    builder = _builder(name, case)
    return builder.build(_add(builder, "y", case))


@cache
def pair(name: str) -> Graph:
    """The two operators of a fusion, apart: the first feeds the second, `y`, and both come out."""
    both = PAIRS[name]
    if isinstance(both.outer, Case):
        builder = _builder(name, both.inner, both.outer)
        x = _add(builder, "x", both.inner)
        return builder.build(x, _add(builder, "y", both.outer, {both.at: x}))
    fused = example(both.outer)
    outer = the_op(fused)
    builder = _builder(name, both.inner)
    shared = {index: outer.operands[at] for index, at in both.same.items()}
    middle = _add(builder, outer.operands[both.at].name, both.inner, shared)
    inner = the_op(builder.build(middle))
    sizes = {dim.label: dim for dim in (*fused.dims, *builder.build(middle).dims)}
    return Graph(name=name, dims=tuple(sizes.values()), ops=(inner, outer), outputs=(middle.name, "y"))


def the_op(graph: Graph) -> Op:
    """The operator of a graph of one."""
    (op,) = graph.ops
    return op


def cases_of(kind: str) -> tuple[str, ...]:
    """Names of the cases of one operator kind."""
    return tuple(name for name in case_names() if the_op(example(name)).kind == kind)


def uncovered() -> frozenset[str]:
    """Operator kinds that have no case."""
    return frozenset(op_kinds()) - {the_op(example(name)).kind for name in case_names()}


def _builder(name: str, *cases: Case) -> GraphBuilder:
    sizes: dict[str, int] = {}
    for case in cases:
        labels = " ".join([*case.operands, case.out]).translate(dict.fromkeys(map(ord, MARKS), " "))
        sizes |= dict.fromkeys(labels.split(), 2) | dict(case.sizes)
    return GraphBuilder(name, **sizes)


def _add(g: GraphBuilder, name: str, case: Case, made: Mapping[int, Tensor] | None = None) -> Tensor:
    operands = [(made or {}).get(index) or _leaf(g, f"{name}{index}", text) for index, text in enumerate(case.operands)]
    dtype = "int32" if case.ids else "bf16"
    return g.op(name, case.kind, operands, case.out, dtype, **case.attrs)


def _leaf(g: GraphBuilder, name: str, text: str) -> Tensor:
    mark, dims = (text[0], text[1:]) if text[0] in MARKS else ("", text)
    if mark == "*":
        return g.weight(name, dims)
    if mark == "=":
        return g.cache(name, dims, "bf16")
    if mark == "~":
        return g.state(name, dims)
    return g.input(name, dims, "int32" if mark == "#" else "bf16")
