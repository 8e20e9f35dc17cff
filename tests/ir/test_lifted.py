"""Whole layouts, run rank by rank: good ones compute what the graph does, broken ones are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from rooflang.errors import PlacementError
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.cut import Cut, CutKind, Spec
from rooflang.ir.digits import Digits
from rooflang.ir.evaluate import evaluate, random_leaves
from rooflang.ir.kinds.fused import FUSIONS, fuse
from rooflang.ir.layout import Choice, Mode, Transfer, make_mode, make_transfer
from rooflang.ir.lifted import Laid, apply_transfer, check_layout, evaluate_layout, place, run_mode
from rooflang.ir.op import Op, signature
from rooflang.ir.values import Value


def block(g: GraphBuilder, name: str, x: object) -> object:
    """Attention over a cache, a product, a residual, experts."""
    q = g.op(f"{name}.q", "matmul", [x, g.weight(f"{name}.wq", "hidden head dim")], "batch head dim")  # type: ignore[list-item]
    kv = g.cache(f"{name}.kv", "batch ctx dim")
    mixed = g.op(f"{name}.mixed", "attention", [q, kv], "batch head dim", parts=("context",))
    out = g.op(f"{name}.o", "matmul", [mixed, g.weight(f"{name}.wo", "head dim hidden")], "batch hidden")
    y = g.op(f"{name}.y", "add", [x, out], "batch hidden")  # type: ignore[list-item]
    normed = g.op(f"{name}.n", "rms_norm", [y], "batch hidden", over="hidden")
    logits = g.op(f"{name}.logits", "matmul", [normed, g.weight(f"{name}.wr", "hidden expert")], "batch expert")
    gates = g.op(f"{name}.gates", "route", [logits], "batch expert", top_k=2)
    rows = g.op(f"{name}.rows", "dispatch", [normed, gates], "batch expert hidden")
    up = g.op(
        f"{name}.up", "gated_matmul", [rows, g.weight(f"{name}.w1", "expert hidden gate ffn")], "batch expert ffn"
    )
    down = g.op(f"{name}.down", "matmul", [up, g.weight(f"{name}.w2", "expert ffn hidden")], "batch expert hidden")
    back = g.op(f"{name}.back", "combine", [down, gates], "batch hidden")
    return g.op(f"{name}.z", "add", [y, back], "batch hidden")


def model() -> Graph:
    g = GraphBuilder("model", batch=4, hidden=4, head=4, dim=4, ctx=8, expert=8, ffn=4, gate=2)
    x: object = g.input("x", "batch hidden")
    for index in range(2):
        g.block = f"layers.{index}"
        x = block(g, g.block, x)
    return g.build()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The arguments of `check_layout`, to be changed one at a time."""

    graph: Graph
    axes: tuple[int, ...]
    modes: Mapping[str, Mode]
    paths: Mapping[tuple[str, int], Sequence[Transfer]]
    exits: Mapping[str, Sequence[Transfer]]
    aliases: Mapping[str, str]

    def check(self, seed: int = 0) -> None:
        leaves = random_leaves(self.graph, seed)
        check_layout(self.graph, self.laid, leaves)

    @property
    def laid(self) -> Laid:
        return Laid(axis_sizes=self.axes, modes=self.modes, paths=self.paths, exits=self.exits, aliases=self.aliases)


def chosen(op: Op, wish: str) -> Choice:
    """`R`, or the row of the signature that is written `dim` or `kind:dim`."""
    if wish in ("R", "O"):
        return wish
    kind, _, dim = wish.rpartition(":")
    return next(c for c in signature(op) if c.dim == dim and (not kind or c.kind == CutKind(kind)))


def way(tensor: str, before: Spec, after: Spec) -> list[Transfer]:
    """From spec to spec, one axis after the other."""
    out, now = [], before
    for axis in range(len(before)):
        then = (*now[:axis], after[axis], *now[axis + 1 :])
        if then != now:
            out.append(make_transfer(tensor, now, then))
            now = then
    return out


def lay(graph: Graph, axes: tuple[int, ...], wishes: Mapping[str, Sequence[str]], boundary: Spec) -> Layout:
    """Modes by the last part of each operator's name, and the ways between them; blocks hand over as `boundary`."""
    modes = {
        op.output.name: make_mode(op, [chosen(op, wish) for wish in wishes[op.name.rpartition(".")[2]]])
        for op in graph.ops
    }
    paths = {}
    for name, mode in modes.items():
        for index, tensor in enumerate(mode.op.operands):
            maker = graph.producer.get(tensor.name)
            if maker is not None:
                inside = maker.block == mode.op.block
                steps = way(tensor.name, modes[tensor.name].out if inside else boundary, mode.operands[index])
                paths[(name, index)] = steps
    exits = {name: way(name, modes[name].out, boundary) for name in modes if name.endswith(".z")}
    return Layout(graph=graph, axes=axes, modes=modes, paths=paths, exits=exits, aliases={})


TENSOR = {
    "q": "head", "mixed": "head", "o": "sum:head", "y": "R", "n": "R", "logits": "expert", "gates": "stat:expert",
    "rows": "expert", "up": "expert", "down": "expert", "back": "sum:expert", "z": "R",
}  # fmt: skip
CONTEXT = {
    "q": "batch", "mixed": "fold:ctx", "o": "R", "y": "hidden", "n": "stat:hidden", "logits": "sum:hidden",
    "gates": "R", "rows": "hidden", "up": "ffn", "down": "sum:ffn", "back": "linear:partial", "z": "batch",
}  # fmt: skip
EXPERT = {
    "q": "batch", "mixed": "batch", "o": "batch", "y": "batch", "n": "batch", "logits": "batch", "gates": "batch",
    "rows": "route:batch", "up": "expert", "down": "expert", "back": "route:batch", "z": "batch",
}  # fmt: skip
ONE = {**dict.fromkeys(TENSOR, "R"), "logits": "O", "gates": "O"}


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize(
    ("wishes", "boundary"), [(TENSOR, "R"), (CONTEXT, "batch"), (CONTEXT, "hidden"), (EXPERT, "batch"), (ONE, "R")]
)
def test_layouts_over_one_axis(wishes: Mapping[str, str], boundary: str, ranks: int) -> None:
    lay(model(), (ranks,), {name: [wish] for name, wish in wishes.items()}, (boundary,)).check()


@pytest.mark.parametrize("first", [TENSOR, CONTEXT, EXPERT, ONE])
@pytest.mark.parametrize("second", [TENSOR, CONTEXT, EXPERT])
def test_layouts_over_two_axes(first: Mapping[str, str], second: Mapping[str, str]) -> None:
    """Every pair of layouts, on the same dim and on different ones."""
    lay(model(), (2, 2), {name: [first[name], second[name]] for name in first}, ("batch", "R")).check()


def good() -> Layout:
    return lay(model(), (2, 2), {name: [EXPERT[name], TENSOR[name]] for name in EXPERT}, ("batch", "R"))


def test_all_that_is_made_comes_back_whole() -> None:
    layout = good()
    leaves = random_leaves(layout.graph, 3)
    found = evaluate_layout(layout.graph, layout.laid, leaves)
    wanted = evaluate(layout.graph, leaves)
    assert set(found) == {op.output.name for op in layout.graph.ops}
    assert all(np.allclose(found[name], wanted[name]) for name in found)


def test_an_unsound_mode_is_found_by_its_numbers() -> None:
    layout = good()
    op = layout.modes["layers.0.up"].op
    partial = Cut(kind=CutKind.SUM, dim="hidden", operands=("hidden", "hidden"), out="P")
    mode = make_mode(op, ["R", partial])
    paths = {
        **layout.paths,
        ("layers.0.up", 0): way("layers.0.rows", layout.modes["layers.0.rows"].out, mode.operands[0]),
        ("layers.0.down", 0): way("layers.0.up", mode.out, layout.modes["layers.0.down"].operands[0]),
    }
    with pytest.raises(PlacementError, match=r"layers\.0\.up differs by up to"):
        replace(layout, modes={**layout.modes, "layers.0.up": mode}, paths=paths).check()


def test_a_residual_that_every_rank_adds_is_found() -> None:
    layout = lay(model(), (2,), {name: ["R" if w == "O" else w] for name, w in TENSOR.items()}, ("R",))
    op = layout.modes["layers.1.y"].op
    twice = Cut(kind=CutKind.LINEAR, dim="partial", operands=("R", "P"), out="P")
    mode = make_mode(op, [twice])
    paths = {
        **layout.paths,
        ("layers.1.y", 1): [],
        ("layers.1.n", 0): way("layers.1.y", ("P",), ("R",)),
        ("layers.1.z", 0): way("layers.1.y", ("P",), ("R",)),
    }
    with pytest.raises(PlacementError, match=r"layers\.1\.y differs"):
        replace(layout, modes={**layout.modes, "layers.1.y": mode}, paths=paths).check()


@pytest.mark.parametrize(
    ("where", "says"),
    [
        (("layers.0.y", 1), "layers.0.y reads layers.0.o"),
        (("layers.0.up", 0), "layers.0.up reads layers.0.rows"),
        (("layers.1.gates", 0), "layers.1.gates reads layers.1.logits"),
    ],
)
def test_a_missing_transfer_is_refused(where: tuple[str, int], says: str) -> None:
    wishes = {name: [EXPERT[name], TENSOR[name]] for name in EXPERT} | {
        "gates": ["batch", "R"],
        "up": ["expert", "ffn"],
    }
    layout = lay(model(), (2, 2), wishes, ("batch", "R"))
    layout.check()
    with pytest.raises(PlacementError, match=says):
        replace(layout, paths={**layout.paths, where: []}).check()


def test_a_missing_exit_is_refused() -> None:
    layout = good()
    with pytest.raises(PlacementError, match=r"all_gather of|reads layers\.0\.z|of layers\.0\.z from"):
        wishes = {name: [EXPERT[name], TENSOR[name]] for name in EXPERT} | {"z": ["batch", "hidden"]}
        cut = lay(model(), (2, 2), wishes, ("batch", "R"))
        replace(cut, exits={**layout.exits, "layers.0.z": []}).check()


def test_a_kernel_that_nobody_runs_is_missed() -> None:
    layout = good()
    modes = {name: mode for name, mode in layout.modes.items() if name != "layers.1.n"}
    with pytest.raises(PlacementError, match=r"no kernel of the layout makes layers\.1\.n before it is read"):
        replace(layout, modes=modes).check()
    modes = {name: mode for name, mode in layout.modes.items() if name != "layers.1.z"}
    with pytest.raises(PlacementError, match=r"no kernel of the layout makes"):
        replace(layout, modes=modes, exits={}).check()


def test_a_collective_that_does_something_else_is_refused() -> None:
    sizes = {"a": 4, "b": 4}
    digits = Digits.nested((2,), sizes, {"a": (0,), "b": (0,)})
    tensor = replace(model().leaves[0], dims=("a", "b"))
    value = place(tensor, np.arange(16.0).reshape(4, 4), ("a",), digits)
    wrong = Transfer(tensor="x", collective="all_reduce", before=("a",), after=("R",), axes=(0,))
    with pytest.raises(PlacementError, match="all_reduce from a to R"):
        apply_transfer(value, wrong, digits)
    with pytest.raises(PlacementError, match="all_gather of x from b"):
        apply_transfer(value, make_transfer("x", ("b",), ("R",)), digits)
    with pytest.raises(PlacementError, match="partial before any operator"):
        place(tensor, np.zeros((4, 4)), ("P",), digits)


def test_states_of_a_softmax_are_no_summands() -> None:
    """Attention leaves log-sum-exp states; an add that passes summands through must not take them."""
    g = GraphBuilder("g", batch=2, dim=4, ctx=4)
    q = g.input("q", "batch dim")
    mixed = g.op("mixed", "attention", [q, g.cache("kv", "batch ctx dim")], "batch dim", parts=("context",))
    other = g.op("other", "matmul", [q, g.weight("w", "dim ctx")], "batch ctx")
    summand = g.op("summand", "matmul", [other, g.weight("v", "ctx dim")], "batch dim")
    graph = g.build(g.op("y", "add", [mixed, summand], "batch dim"))
    wishes = {"mixed": ["fold:ctx"], "other": ["ctx"], "summand": ["sum:ctx"], "y": ["linear:partial"]}
    with pytest.raises(PlacementError, match="y reads mixed P"):
        lay(graph, (2,), wishes, ("R",)).check()


def test_a_joint_transfer_is_its_axes_in_turn() -> None:
    digits = Digits.nested((2, 3), {"a": 12, "b": 2}, {"a": (0, 1), "b": ()})
    tensor = replace(model().leaves[0], dims=("a", "b"))
    array = np.arange(24.0).reshape(12, 2)
    both = place(tensor, array, ("a", "a"), digits)
    whole = apply_transfer(both, make_transfer("x", ("a", "a"), ("R", "R")), digits)
    assert whole.spec == ("R", "R")
    assert all(np.array_equal(piece.arrays[0], array) for piece in whole.pieces.values())


def test_fused_operators_and_removed_identities() -> None:
    g = GraphBuilder("g", batch=4, hidden=4, n=4)
    x = g.input("x", "batch hidden")
    moved = g.op("moved", "to_hbm", [x], "batch hidden")
    normed = g.op("normed", "rms_norm", [moved], "batch hidden", over="hidden")
    g.block = "next"
    y = g.op("y", "matmul", [normed, g.weight("w", "hidden n")], "batch n")
    again = g.op("again", "to_dram", [y], "batch n")
    graph = g.build(again)
    fusion = next(f for f in FUSIONS if f.name == "norm_matmul")
    fused = fuse(fusion, graph.op_by_name["y"], graph.op_by_name["normed"])
    mode = make_mode(fused, [chosen(fused, "n")], covers=("normed", "y"))
    layout = Layout(graph=graph, axes=(2,), modes={"y": mode}, paths={}, exits={}, aliases={"moved": "x", "again": "y"})
    layout.check()
    with pytest.raises(PlacementError, match="no kernel of the layout makes moved"):
        replace(layout, aliases={"again": "y"}).check()
    with pytest.raises(PlacementError, match="no kernel of the layout makes the output again"):
        replace(layout, aliases={"moved": "x"}).check()


def test_run_mode_checks_what_it_reads() -> None:
    graph = model()
    op = graph.op_by_name["layers.0.q"]
    digits = Digits.nested((2,), graph.sizes, {"batch": (0,), "hidden": (0,)})
    leaves = random_leaves(graph)
    mode = make_mode(op, [chosen(op, "batch")])
    values: list[Value] = [place(t, leaves[t.name], ("R",), digits) for t in op.operands]
    with pytest.raises(PlacementError, match=r"layers\.0\.q reads x batch"):
        run_mode(mode, values, digits)
