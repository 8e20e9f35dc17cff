"""What is no well-formed graph is refused, and the message names what is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflang.errors import GraphError, RooflangError, UnknownNameError
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.op import Op
from rooflang.ir.tensor import Dim, Role, Tensor
from rooflang.ir.text import parse
from rooflang.ir.verify import verify

from .cases import CASES


def tensor(name: str, dims: str = "b", **fields: object) -> Tensor:
    return Tensor(**{"name": name, "dims": tuple(dims.split()), "dtype": "bf16", **fields})  # type: ignore[arg-type]


def op(name: str, *operands: Tensor, kind: str = "activation", **fields: object) -> Op:
    return Op(**{"name": name, "kind": kind, "operands": operands, "output": tensor(name), **fields})  # type: ignore[arg-type]


def graph(*ops: Op, outputs: tuple[str, ...] = ()) -> Graph:
    return Graph(name="g", dims=(Dim(label="b", size=4), Dim(label="h", size=2)), ops=ops, outputs=outputs)


X = tensor("x", role=Role.INPUT)


def test_a_good_graph_comes_back_as_it_is() -> None:
    good = graph(op("p", X), op("q", tensor("p")), outputs=("q",))
    assert verify(good) == good


def test_operators_are_put_in_order() -> None:
    late, early = op("q", tensor("p")), op("p", X)
    assert [o.name for o in verify(graph(late, early)).ops] == ["p", "q"]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (graph(op("p", X), op("p", X, output=tensor("r"))), "two operators are called 'p'"),
        (graph(op("p", X), op("q", X, output=tensor("p"))), "tensor 'p' has two writers: p and q"),
        (graph(op("p", tensor("none"))), "p reads 'none', which nothing produces"),
        (graph(op("p", X), outputs=("x",)), "output 'x' is not produced by any operator"),
        (graph(op("p", X), outputs=("p", "p")), "an output is named twice"),
        (graph(op("p", tensor("p"))), "the graph has a cycle: p → p"),
        (graph(op("p", replace(X, dtype="bf15"))), "unknown dtype 'bf15'"),
        (graph(op("p", replace(X, dims=("b", "b")), output=tensor("p", "b b"))), "has a dim twice"),
        (graph(op("p", replace(X, dims=("z",)), output=tensor("p", "z"))), "has the dim 'z', which has no size"),
        (graph(op("p", replace(X, fill=0.0))), "has fill=0.0"),
        (graph(op("p", replace(X, fill=float("inf")))), "has fill=inf"),
        (graph(op("p", X), op("q", replace(X, dtype="fp8"))), "but another operator reads [b] bf16 (input)"),
        (graph(op("p", X), op("q", tensor("p", dtype="fp8"))), "but p makes [b] bf16"),
        (graph(op("p", X), op("q", tensor("p", fill=0.5))), "fill 0.5"),
        (graph(op("p", X, attrs=(("functoin", "silu"),))), "did you mean function?"),
        (graph(op("p", X, attrs=(("function", 3),))), "attribute function is 3"),
        (graph(op("p", X, kind="to_hbm", attrs=(("one_pass", 1),))), "expected: bool"),
        (graph(op("p", X, kind="route", attrs=(("top_k", True),))), "attribute top_k is True"),
        (graph(op("p", X, attrs=(("function", "softplus"),))), "unknown activation function 'softplus'"),
        (graph(op("p", X, kind="actvation")), "did you mean activation"),
    ],
)
def test_refused(bad: Graph, says: str) -> None:
    with pytest.raises(RooflangError) as caught:
        verify(bad)
    assert says in str(caught.value)
    assert str(caught.value).startswith("g: ")


def test_labels_are_lower_case() -> None:
    bad = Graph(name="g", dims=(Dim(label="B", size=2),), ops=(), outputs=())
    shaped = replace(X, dims=("B",))
    with pytest.raises(GraphError, match="'B' is not lower case"):
        verify(replace(bad, ops=(op("p", shaped, output=tensor("p", "B")),)))


def test_a_long_cycle_is_named_whole_and_nothing_else() -> None:
    ring = [op(f"r{i}", tensor(f"r{(i + 1) % 3}")) for i in range(3)]
    with pytest.raises(GraphError) as caught:
        verify(graph(op("before", X), *ring, op("after", tensor("r0"))))
    path = caught.value.what.removeprefix("the graph has a cycle: ").split(" → ")
    assert sorted(path[:-1]) == ["r0", "r1", "r2"]
    assert path[0] == path[-1]


def test_an_unhashable_attribute_is_refused() -> None:
    near = tensor("near", "b w h", role=Role.KV_CACHE)
    q = tensor("q", "b h", role=Role.INPUT)
    bad = op("p", q, near, kind="attention", output=tensor("p", "b h"), attrs=(("parts", (["window"],)),))
    dims = (Dim(label="b", size=4), Dim(label="h", size=2), Dim(label="w", size=2))
    with pytest.raises(GraphError, match="expected: an immutable value"):
        verify(Graph(name="g", dims=dims, ops=(bad,), outputs=()))


# -- kinds ------------------------------------------------------------------------------------------------------------

DIMS = (
    "dim b 2; dim s 3; dim h 4; dim k 4; dim n 2; dim e 3; dim gate 2; dim w 3; dim c 4; dim v 5; dim z 1; dim hd 4;"
    "dim wide 6; dim j 2;"
).replace(";", "\n")
LEAVES = """\
input x [b h] bf16
input y [b h] bf16
input xs [b s h] bf16
input bare [] bf16
input ids [b] int32
weight w [h n] bf16
weight wg [h gate n] bf16
weight gain [h] bf16
weight table [v h] bf16
weight hash [v j] int64
input gates [b e] fp32
input rows [b e h] bf16
input q [b j hd] bf16
input logits [b e] fp32
kv_cache near [b w hd] fp8
kv_cache far [b c hd] fp8
kv_cache broad [b c wide] fp8
input chosen [b k] int32
input stream [b n h] bf16
input mix [b z] bf16
"""


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("matmul(x) [b n]", "takes 2 operands, not 1"),
        ("matmul(x, w) [b h]", "cannot have the dims b h"),
        ("matmul(ids, w) [b h n]", "share no dim to sum over"),
        ("gated_matmul(x, w) [b n]", "has the dim 'gate'"),
        ("add(x, gates) [b h]", "gates has the dims b e"),
        ("add(x, y) [b]", "x has the dims b h"),
        ("activation(x, y) [b h]", "takes 1 operands"),
        ("rms_norm(x) [b h]", "needs over=<label>"),
        ('rms_norm(x) [b h] {over="z"}', "needs over=<label>"),
        ('rms_norm(x, w) [b h] {over="h"}', "w has the dims h n"),
        ('rms_norm(x, gain, gain) [b h] {over="h"}', "takes 2 operands"),
        ("attention(q) [b j hd]", "parts=()"),
        ('attention(q, near) [b j hd] {parts=("windwo",)}', "parts=('windwo',)"),
        ('attention(q, near) [b j] {parts=("window",)}', "q has the dims"),
        ('attention(q) [b j hd] {parts=("window",)}', "takes 2 operands"),
        ('attention(q, x) [b j hd] {parts=("window",)}', "3 dims: batch, positions, width"),
        ('attention(q, broad) [b j hd] {parts=("context",)}', "have the width 6"),
        ('attention(q, far) [b j hd] {parts=("context",), select=2}', "chosen by nothing"),
        ('attention(q, far, chosen) [b j hd] {parts=("context", "selection")}', "attends to 0 context entries"),
        ('attention(q, near, chosen) [b j hd] {parts=("window", "selection"), select=2}', "no context to choose from"),
        ('attention(q, far, broad) [b j hd] {parts=("context", "index"), select=2}', "index_heads"),
        ('attention(q, far, ids) [b j hd] {parts=("context", "selection"), select=2}', "dims of q, then the chosen"),
        ("index_select(q, x, far) [b k]", "x has the dims b h"),
        ("index_select(ids, ids, far) [b k]", "batch … heads width"),
        ("route(ids) [b]", "lacks the expert dim"),
        ('route(logits) [b e] {expert="e", top_k=0}', "top_k=0"),
        ('hash_route(logits, ids, hash) [b e] {expert="b"}', "ids has the dims b"),
        ('hash_route(logits, ids, near) [b e] {expert="e"}', "near has the dims"),
        ('dispatch(x, gates) [b h] {expert="e"}', "lacks the expert dim"),
        ('dispatch(ids, gates) [b e] {expert="e"}', "and one that the gates lack"),
        ('combine(rows, x) [b h] {expert="e"}', "x lacks the expert dim"),
        ("embed(ids, near) [b h]", "2 dims: vocabulary, hidden"),
        ("embed(ids, table) [b]", "the output has the dims b"),
        ("last_token(xs) [b s h]", "the same without the positions"),
        ("argmax(bare) []", "no dim to choose from"),
        ("argmax(x) [h]", "the output has the dims h"),
        ("pool(x) [b h]", "batch positions …, and batch entries …"),
        ("last_window(xs) [b w]", "the window has the dims"),
        ("kv_append(x, near) [b w]", "keeps the dims of the cache"),
        ("kv_append(gain, near) [b w hd]", "appends h to b w hd"),
        ('kv_append(x, near) [b w hd] {positions="w"}', "x has no positions 'w'"),
        ('hyper_expand(x) [b h] {copies="n"}', "the stream has the dims"),
        ('hyper_read(stream, ids) [b h] {copies="n"}', "no dim of coefficients"),
        ('hyper_write(stream, mix, gates) [b n h] {copies="n"}', "the stream has the dims"),
        ("matmul_add(x, y) [b h]", "made from two operators by a fusion"),
    ],
)
def test_a_kind_refuses_what_it_cannot_mean(statement: str, says: str) -> None:
    head, _, attrs = statement.partition("] ")
    text = f"graph g\n{DIMS}{LEAVES}op p = {head.rstrip(']')}] bf16 {attrs}\n"
    with pytest.raises(RooflangError) as caught:
        verify(parse(text))
    assert says in str(caught.value)
    assert caught.value.where.startswith("g")


def test_a_gate_is_two() -> None:
    text = f"graph g\n{DIMS}{LEAVES}op p = gated_matmul(x, wg) [b n] bf16\n"
    assert verify(parse(text))
    with pytest.raises(GraphError, match="expected: 2: gate and up"):
        verify(parse(text.replace("dim gate 2", "dim gate 3")))


def test_a_dim_under_another_label_is_as_long() -> None:
    g = GraphBuilder("g", b=2, h=3, i=4)
    g.op("p", "rename", [g.input("x", "b h")], "b i")
    with pytest.raises(GraphError, match="3 elements as 4"):
        g.build()


@pytest.mark.parametrize("name", CASES)
def test_a_kind_accepts_its_cases(name: str) -> None:
    built = CASES[name]()
    assert verify(built) == built


def test_unknown_kinds_come_with_the_nearest() -> None:
    g = GraphBuilder("g", b=2)
    g.op("p", "matmull", [g.input("x", "b")], "b")
    with pytest.raises(UnknownNameError, match="did you mean matmul"):
        g.build()
