"""Saturation on trial: whatever plan the e-graph of a small graph holds, it computes what the graph computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from rooflang.eqsat import FrozenBlock
from rooflang.errors import PlacementError
from rooflang.ir.blocks import BlockKind, split_blocks
from rooflang.ir.cut import Spec, show_spec
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.lifted import Laid, check_layout
from rooflang.ir.op import Op
from rooflang.rules.examples import attention_then_add, decode_step, mlp
from rooflang.rules.theory import Theory
from rooflang.soundness import draw
from rooflang.soundness.cases import example
from rooflang.soundness.joints import shared
from rooflang.soundness.source import Source

#: Changes the egglog program of a theory: its commands become others.
Change = Callable[[Theory, Sequence[str]], Sequence[str]]

Path = tuple[Transfer, ...]


def _moe() -> Graph:
    """Router, dispatch, an expert product, combine, a residual add."""
    g = GraphBuilder("moe", batch=2, hidden=2, ffn=2, expert=2)
    x = g.op("x", "activation", [g.input("rows", "batch hidden")], "batch hidden")
    logits = g.op("logits", "matmul", [x, g.weight("router", "hidden expert")], "batch expert")
    gates = g.op("gates", "route", [logits], "batch expert", top_k=1)
    rows = g.op("dispatch", "dispatch", [x, gates], "batch expert hidden")
    up = g.op("up", "matmul", [rows, g.weight("w", "expert hidden ffn")], "batch expert ffn")
    down = g.op("down", "matmul", [up, g.weight("v", "expert ffn hidden")], "batch expert hidden")
    out = g.op("combine", "combine", [down, gates], "batch hidden")
    return g.build(g.op("y", "add", [out, x], "batch hidden"))


def _gated() -> Graph:
    """A norm, the projections of gate and up, their product, the projection back."""
    g = GraphBuilder("gated", batch=2, hidden=2, ffn=2, back=2)
    x = g.op(
        "x", "rms_norm", [g.input("raw", "batch hidden"), g.weight("gain", "hidden")], "batch hidden", over="hidden"
    )
    gate = g.op("gate", "matmul", [x, g.weight("w1", "hidden ffn")], "batch ffn")
    up = g.op("up", "matmul", [x, g.weight("w3", "hidden ffn")], "batch ffn")
    act = g.op("act", "gated_activation", [gate, up], "batch ffn")
    return g.build(g.op("y", "matmul", [act, g.weight("w2", "ffn back")], "batch back"))


def _copied() -> Graph:
    """A product, copied, a norm of the copy, an activation."""
    g = GraphBuilder("copied", batch=2, hidden=2, ffn=2)
    up = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden ffn")], "batch ffn")
    copy = g.op("copy", "to_hbm", [up], "batch ffn")
    norm = g.op("norm", "rms_norm", [copy], "batch ffn", over="ffn")
    return g.build(g.op("y", "activation", [norm], "batch ffn", function="relu"))


GRAPHS: dict[str, Callable[[], Graph]] = {
    "mlp": mlp,
    "moe": _moe,
    "gated": _gated,
    "copied": _copied,
    "shared": shared,
    "decode": decode_step,
    "attention": attention_then_add,
}


def unchanged(theory: Theory, commands: Sequence[str]) -> Sequence[str]:
    """The program as it is."""
    return commands


@cache
def _block(name: str, axes: int, change: Change, gathered: bool) -> FrozenBlock:
    """All layouts of a graph that a program reaches."""
    (kind,) = split_blocks(_graph(name)).kinds
    return frozen(kind, axes, change, gathered=gathered)


def _graph(name: str) -> Graph:
    """One of `GRAPHS`, or the graph of a case."""
    return GRAPHS[name]() if name in GRAPHS else example(name)


def frozen(kind: BlockKind, axes: int, change: Change = unchanged, *, gathered: bool = False) -> FrozenBlock:
    """All layouts of a block that its program, changed, reaches."""
    from rooflang.eqsat.decode import decode
    from rooflang.eqsat.frozen import Limits
    from rooflang.eqsat.program import program
    from rooflang.eqsat.saturate import saturated

    theory = Theory.of(kind, axes, gathered=gathered)
    text = program(theory, frozenset())
    changed = replace(text, commands=tuple(change(theory, text.commands)))
    return decode(theory, *saturated(changed, axes, Limits(nodes=200_000)))


def refuted(block: FrozenBlock, graph: Graph, axes: int, source: Source) -> str | None:
    """What is wrong with a random plan out of a block, on the extents of this graph and random ranks."""
    plan = _Drawn(block, source)
    ranks = tuple(source.ranks(3) for _ in range(axes))
    leaves = draw.leaves(graph, source)
    laid = Laid(axis_sizes=ranks, modes=plan.modes, paths=plan.paths, exits=plan.exits, aliases=plan.aliases)
    try:
        check_layout(graph, laid, leaves)
    except PlacementError as error:
        return f"{error}\n{plan.told()}\n  ranks {ranks}, extents {graph.sizes}"
    return None


@dataclass(frozen=True, kw_only=True)
class Saturations:
    """A claim: a random plan out of the e-graph of a graph or case, on random extents and ranks, is right; with
    `gathered` also where weights rest cut and are gathered for their readers."""

    names: Sequence[str] = tuple(GRAPHS)
    change: Change = unchanged
    gathered: bool = False

    def __call__(self, source: Source) -> str | None:
        name, axes = source.choice(self.names), source.integer(1, 2)
        block = _block(name, axes, self.change, self.gathered)
        return refuted(block, draw.extents(_graph(name), source, most=4), axes, source)


class _Drawn:
    """A plan out of a frozen block: a mode for every tensor, paths between them, some identities left out."""

    def __init__(self, block: FrozenBlock, source: Source) -> None:
        self.block, self.source = block, source
        self.modes: dict[str, Mode] = {}
        self.paths: dict[tuple[str, int], Path] = {}
        self.exits: dict[str, Path] = {}
        self.aliases: dict[str, str] = {}
        self.held = {(hold.leaf, hold.spec) for hold in block.holds}
        for op in block.kind.ops:
            self._make(op)
        for port in block.kind.outputs:
            self._leave(port.name)

    def _make(self, op: Op) -> None:
        name = op.output.name
        # A copy of a leaf that comes out has to be made: the leaf itself is made by nobody.
        given = name in self.block.exits and op.operands[0].name in {t.name for t in self.block.kind.leaves}
        alike = self.block.aliases[name] != name and not given
        if alike and self.source.below(2):
            self.aliases[name] = op.operands[0].name
            return
        candidates = [mode for mode in self.block.modes if mode.op.output.name == name]
        while candidates:
            mode = candidates.pop(self.source.below(len(candidates)))
            paths = [self._reach(t.name, spec) for t, spec in zip(mode.op.operands, mode.operands, strict=True)]
            if all(path is not None for path in paths):
                self.modes[name] = mode
                self.paths |= {(name, i): path for i, path in enumerate(paths) if path}
                return
        self.source.suits(False)

    def _leave(self, name: str) -> None:
        ways = [path for spec in self.block.exits[name] if (path := self._reach(name, spec)) is not None]
        self.source.suits(bool(ways))
        self.exits[name] = self.source.choice(ways)

    def _reach(self, tensor: str, spec: Spec) -> Path | None:
        """Transfers that bring a tensor to a spec; None where there are none."""
        while tensor in self.aliases:
            tensor = self.aliases[tensor]
        if tensor not in self.modes:
            return self._at_rest(tensor, spec)
        paths: dict[Spec, Path] = {self.modes[tensor].out: ()}
        stack = list(paths)
        while stack and spec not in paths:
            here = stack.pop(0)
            for step in self._steps().get((self.block.aliases[tensor], here), ()):
                if step.after not in paths:
                    paths[step.after] = (*paths[here], step)
                    stack.append(step.after)
        return paths.get(spec)

    def _at_rest(self, leaf: str, spec: Spec) -> Path | None:
        """How a leaf comes to lie so: it rests so, or it is gathered from how it rests; None where neither is there."""
        ways: list[Path] = [()] if (leaf, spec) in self.held else []
        ways += [(step,) for step in self.block.transfers
                 if step.tensor == leaf and step.after == spec and (leaf, step.before) in self.held]  # fmt: skip
        return self.source.choice(ways) if len(ways) > 1 else next(iter(ways), None)

    def _steps(self) -> Mapping[tuple[str, Spec], Sequence[Transfer]]:
        found: dict[tuple[str, Spec], list[Transfer]] = {}
        for step in self.block.transfers:
            found.setdefault((step.tensor, step.before), []).append(step)
        return found

    def told(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for name, mode in self.modes.items():
            reads = " ".join(map(show_spec, mode.operands))
            yield f"  {name}: {mode.op.name} reads {reads}, makes {show_spec(mode.out)}"
        for (name, index), path in self.paths.items():
            yield f"  {name}, operand {index}: {', '.join(step.collective for step in path)}"
