"""The text form reads back as the same graph, and whatever cannot be read says where and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflang.errors import GraphError, RooflangError
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.kinds.fused import FUSIONS
from rooflang.ir.op import Op
from rooflang.ir.tensor import DTYPES, Dim, Role, Tensor
from rooflang.ir.text import dump, parse, read
from rooflang.ir.verify import verify
from tests.counted import calls

from .cases import CASES

#: Cases with a text form: fused operators are made by a fusion, they cannot be declared.
WRITTEN = [name for name in CASES if name not in {fusion.name for fusion in FUSIONS}]

MLP = """\
graph mlp
dim batch 64
dim hidden 1024
dim ffn 4096 "inner width"
input x [batch hidden] bf16
weight w1 [hidden ffn] mxfp4
weight w2 [ffn hidden] bf16
block layers.0
op up = matmul(x, w1) [batch ffn] bf16 group="ffn"
op down = matmul(up, w2) [batch hidden] bf16 fill=0.5 role=output group="ffn" compute=fp8
out down
"""


def test_dump_is_what_one_would_write() -> None:
    g = GraphBuilder("mlp", batch=64, hidden=1024)
    g.dim("ffn", 4096, "inner width")
    x = g.input("x", "batch hidden")
    g.block = "layers.0"
    up = g.op("up", "matmul", [x, g.weight("w1", "hidden ffn", "mxfp4")], "batch ffn", group="ffn")
    w2 = g.weight("w2", "ffn hidden")
    g.op("down", "matmul", [up, w2], "batch hidden", group="ffn", compute="fp8", role=Role.OUTPUT, fill=0.5)
    assert dump(g.build()) == MLP
    assert parse(MLP) == g.build()


@pytest.mark.parametrize("name", WRITTEN)
def test_every_kind_survives(name: str) -> None:
    graph = CASES[name]()
    assert verify(parse(dump(graph))) == graph


def test_a_fused_operator_is_refused() -> None:
    with pytest.raises(GraphError, match="has no text form"):
        dump(CASES["matmul_add"]())


def test_comments_blank_lines_and_order_do_not_matter() -> None:
    lines = MLP.splitlines()
    shuffled = [lines[0], "", "# the end first", lines[10], *lines[1:4], *lines[7:10], "  # leaves", *lines[4:7]]
    assert dump(parse("\r\n".join(f"{line}  # note" for line in shuffled))) == MLP


# -- round trip -------------------------------------------------------------------------------------------------------

NAMES = st.text(min_size=1, max_size=6) | st.sampled_from(["a.b", "layers.0/w", "x y", 'q"uote', "→", "op", "#1", "1"])
NUMBERS = st.integers() | st.floats(allow_nan=False)
VALUES = st.recursive(
    NUMBERS | st.booleans() | st.none() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3).map(tuple)
)
TEXTS = st.text(max_size=4)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs that need not mean anything, with every field in use."""
    labels = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    dims = tuple(Dim(label=d, size=draw(st.integers(1, 2**70)), meaning=draw(TEXTS)) for d in labels)
    names = draw(st.lists(NAMES, min_size=2, max_size=8, unique=True))

    def tensor(name: str, role: Role) -> Tensor:
        shape = tuple(draw(st.lists(st.sampled_from(labels), max_size=3)))
        fill = draw(st.just(1.0) | st.floats(0, 1))
        return Tensor(name=name, dims=shape, dtype=draw(st.sampled_from(sorted(DTYPES))), role=role, fill=fill)

    split = draw(st.integers(1, len(names) - 1))
    leaves = [tensor(name, draw(st.sampled_from(list(Role)))) for name in names[:split]]
    outputs = [tensor(name, draw(st.sampled_from(list(Role)))) for name in names[split:]]
    ops = []
    for index, output in enumerate(outputs):
        known = [*leaves, *outputs] if draw(st.booleans()) else [*leaves, *outputs[:index]]
        own = draw(st.just(output.name) | st.just(f"op {index}"))
        attrs = draw(st.dictionaries(NAMES, VALUES, max_size=3))
        ops.append(
            Op(
                name=own,
                kind=draw(st.sampled_from(["matmul", "attention", "to_hbm"])),
                operands=tuple(draw(st.lists(st.sampled_from(known), max_size=3))),
                output=output,
                attrs=tuple(attrs.items()),
                block=draw(TEXTS),
                group=draw(TEXTS),
                compute=draw(TEXTS),
            )
        )
    outs = tuple(t.name for t in draw(st.lists(st.sampled_from(outputs), unique=True)))
    return Graph(name=draw(NAMES), dims=dims, ops=tuple(ops), outputs=outs)


@settings(max_examples=150)
@given(graph=graphs())
def test_round_trip(graph: Graph) -> None:
    assert parse(dump(graph)) == graph


MARKS = ["(", ")", "[", "]", "{", "}", "=", ",", '"', "#", "\\", "\n", " ", "-", "0", "1e999", "op", "x", "(" * 200]


@settings(max_examples=400)
@given(data=st.data())
def test_damaged_text_raises_errors_of_ours_only(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([None, *WRITTEN]))
    text = MLP if name is None else dump(CASES[name]())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        until = min(len(text), at + data.draw(st.integers(0, 12)))
        text = text[:at] + data.draw(st.sampled_from(MARKS) | st.text(max_size=2)) + text[until:]
    try:
        graph = verify(parse(text))
    except RooflangError:
        return
    assert verify(parse(dump(graph))) == graph


@settings(max_examples=300)
@given(data=st.data())
def test_shuffled_words_raise_errors_of_ours_only(data: st.DataObject) -> None:
    """Words swapped between lines: operands, dims, kinds and attributes in wrong places, syntax mostly intact."""
    name = data.draw(st.sampled_from(WRITTEN))
    text = dump(CASES[name]())
    words = text.replace("[", "[ ").replace("]", " ]").replace("(", "( ").replace(")", " )").split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        i, j = (data.draw(st.integers(0, len(words) - 1)) for _ in range(2))
        words[i] = words[j] if data.draw(st.booleans()) else data.draw(st.sampled_from(["0", "3", "true", '"b"', "()"]))
    try:
        verify(parse(" ".join(words)))
    except RooflangError:
        return


# -- what it says -----------------------------------------------------------------------------------------------------

HEAD = "graph g\ndim b 2\ndim h 3\ninput x [b h] bf16\n"


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("", "f.rl", "no graph"),
        ("dim b 2", "f.rl:1", "dim before any graph"),
        ("graph a\ngraph b", "f.rl:2", "a second graph"),
        ("graph g\ndim b 0", "f.rl:2", "has the size 0"),
        ("graph g\ndim b 2.5", "f.rl:2", "has the size 2.5"),
        ("graph g\ndim b 2\ndim b 2", "f.rl:3", "declared twice"),
        ("graph g\ndmi b 2", "f.rl:2", "did you mean dim"),
        ('graph "g', "f.rl:1", "double quote"),
        (HEAD + "input x [b] bf16", "f.rl:5", "declared here and in f.rl:4"),
        (HEAD + "input y [c] bf16", "f.rl:5", "unknown dim 'c'"),
        (HEAD + "input y [b] bf61", "f.rl:5", "did you mean bf16"),
        (HEAD + "input y [b bf16", "f.rl:5", "the line ends early"),
        (HEAD + "input y [b] bf16 fill=lots", "f.rl:5", "no number"),
        (HEAD + "input y [b] bf16 {}", "f.rl:5", "out of place"),
        (HEAD + "op y = activatoin(x) [b h] bf16", "f.rl:5", "did you mean activation"),
        (HEAD + "op y = activation(xx) [b h] bf16", "f.rl:5", "did you mean x"),
        (HEAD + "op y = activation(x z) [b h] bf16", "f.rl:5", "','"),
        (HEAD + "op y = activation(x) [b h] bf16 grp=a", "f.rl:5", "did you mean group"),
        (HEAD + "op y = activation(x) [b h] bf16 role=outptu", "f.rl:5", "did you mean output"),
        (HEAD + "op y = activation(x) [b h] bf16 {a=b}", "f.rl:5", "b is no attribute value"),
        (HEAD + "op y = activation(x) [b h] bf16 {a=1, a=2}", "f.rl:5", "given twice"),
        (HEAD + "op y = activation(x) [b h] bf16 {a=1} more", "f.rl:5", "too much"),
        (HEAD + "op y = activation(x) [b h] bf16 {a=" + "(" * 99, "f.rl:5", "no attribute value"),
        (HEAD + "op y = activation(x) [b h] bf16\nout z", "f.rl:6", "unknown tensor 'z'"),
        (HEAD + "op y = activation(x) [b h] bf16\nout y y", "f.rl:6", "output twice"),
        (HEAD + "op x = activation(x) [b h] bf16", "f.rl:5", "declared here and in f.rl:4"),
    ],
)
def test_errors_name_the_line_and_what_was_expected(text: str, where: str, says: str) -> None:
    with pytest.raises(GraphError) as caught:
        parse(text, where="f.rl")
    assert str(caught.value).startswith(f"{where}: ")
    assert says in str(caught.value)


def test_long_lists_of_names_are_left_out() -> None:
    text = "graph g\ndim b 2\n" + "".join(f"input x{i} [b] bf16\n" for i in range(100)) + "op y = add(x7, xx8) [b] bf16"
    with pytest.raises(GraphError) as caught:
        parse(text)
    assert caught.value.expected == ""
    assert "x8" in caught.value.hint


def test_a_cycle_is_parsed_and_then_named() -> None:
    graph = parse("graph g\ndim b 2\nop p = activation(q) [b] bf16\nop q = activation(p) [b] bf16\nout q\n")
    with pytest.raises(GraphError, match=r"cycle: (p → q → p|q → p → q)"):
        verify(graph)


def test_a_leaf_that_is_none_dangles() -> None:
    graph = parse("graph g\ndim b 2\nactivation p [b] bf16\nop q = activation(p) [b] bf16\nout q\n")
    with pytest.raises(GraphError, match="q reads 'p', which nothing produces"):
        verify(graph)


def test_read_verifies_and_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mlp.rl"
    path.write_text(MLP)
    assert read(path) == verify(parse(MLP))
    path.write_text(MLP.replace("[batch ffn]", "[batch]"))
    with pytest.raises(GraphError, match=f"^{path}: mlp: up: a product"):
        read(path)
    path.write_text(MLP.replace("matmul(x, w1)", "matmul(x)"))
    with pytest.raises(GraphError, match="takes 2 operands"):
        read(path)
    path.write_bytes(b"graph \xff")
    with pytest.raises(GraphError, match="UTF-8"):
        read(path)
    with pytest.raises(GraphError, match="cannot be read"):
        read(tmp_path / "none.rl")


@pytest.mark.parametrize("value", [float("nan"), [1], {"a": 1}, 1j])
def test_values_without_a_text_form_are_refused(value: Any) -> None:
    graph = CASES["add"]()
    op = replace(graph.ops[0], attrs=(("a", value),))
    with pytest.raises(GraphError, match="has no text form"):
        dump(replace(graph, ops=(op,)))


def test_dump_takes_few_calls() -> None:
    """The content hash of a large model, 61 layers of 30 operators: in one pass."""
    g = GraphBuilder("large", batch=8, hidden=64)
    x = g.input("x", "batch hidden")
    for layer in range(61):
        g.block = f"layers.{layer}"
        for index in range(30):
            gain = g.weight(f"layers.{layer}.gain{index}", "hidden")
            x = g.op(f"layers.{layer}.norm{index}", "rms_norm", [x, gain], "batch hidden", over="hidden")
    graph = g.build(x)
    assert calls(lambda: dump(graph)) < 100 * len(graph.ops)
    assert parse(dump(graph)) == graph
