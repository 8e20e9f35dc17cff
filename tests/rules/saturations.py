"""Saturations of small graphs, with and without a rule."""

from __future__ import annotations

from collections.abc import Callable

from rooflang.eqsat import FrozenBlock, saturate
from rooflang.eqsat.engine import Engine
from rooflang.eqsat.program import ALL, program
from rooflang.eqsat.snapshot import Snapshot
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.rules.theory import Theory


def saturated(graph: Graph, axes: int = 1, *, without: str = "") -> FrozenBlock:
    """The one block of a graph, saturated."""
    (kind,) = split_blocks(graph).kinds
    return saturate(kind, axes, disabled=frozenset({without} - {""}))


def snapshot(graph: Graph, axes: int = 1) -> tuple[Theory, Snapshot]:
    """The theory of the one block of a graph and its whole e-graph, saturated."""
    (kind,) = split_blocks(graph).kinds
    theory = Theory.of(kind, axes)
    engine = Engine()
    engine.load(program(theory, frozenset()).commands)
    while engine.step(ALL):
        pass
    return theory, engine.freeze()


def enodes_lost(graph: Graph, without: str, axes: int = 1) -> dict[str, int]:
    """By constructor, how many e-nodes fewer there are without the rule."""
    full, less = (saturated(graph, axes, without=name).stats.enodes for name in ("", without))
    return {name: full[name] - less.get(name, 0) for name in full if full[name] != less.get(name, 0)}


def specs(block: FrozenBlock, kernel: str) -> set[tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]]:
    """(operand specs, output spec) of every mode of a kernel."""
    return {(mode.operands, mode.out) for mode in block.modes if mode.op.name == kernel}


def one_op(build: Callable[[GraphBuilder], object]) -> Graph:
    """A graph of a few dims, filled by `build`, whose unread tensors are outputs."""
    g = GraphBuilder("small", batch=8, hidden=12, ffn=16, expert=4)
    build(g)
    return g.build()


def moe() -> Graph:
    """Router, dispatch, two expert products, combine, and a residual add."""
    g = GraphBuilder("moe", batch=8, hidden=12, ffn=16, expert=4)
    x = g.op("x", "activation", [g.input("rows", "batch hidden")], "batch hidden")
    logits = g.op("logits", "matmul", [x, g.weight("router", "hidden expert")], "batch expert")
    gates = g.op("gates", "route", [logits], "batch expert", top_k=1, fill=0.25)
    rows = g.op("dispatch", "dispatch", [x, gates], "batch expert hidden", fill=0.25)
    up = g.op("up", "matmul", [rows, g.weight("w_up", "expert hidden ffn")], "batch expert ffn", fill=0.25)
    down = g.op("down", "matmul", [up, g.weight("w_down", "expert ffn hidden")], "batch expert hidden", fill=0.25)
    out = g.op("combine", "combine", [down, gates], "batch hidden")
    return g.build(g.op("y", "add", [out, x], "batch hidden"))
