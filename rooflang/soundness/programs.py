"""Saturation on trial beyond the graphs that somebody thought of: random programs of a few operators, each reading what
those before it made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rooflang.ir.blocks import split_blocks
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.joint import shared_inputs
from rooflang.ir.kinds.elementwise import FUNCTIONS
from rooflang.ir.tensor import Tensor
from rooflang.soundness import draw
from rooflang.soundness.egraphs import Change, frozen, refuted, unchanged
from rooflang.soundness.source import Source

#: The longest program.
_OPS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """Where an operator is appended: `x` is what it reads, `pool` is all that there is, `name` its own name."""

    g: GraphBuilder
    source: Source
    pool: Sequence[Tensor]
    x: Tensor
    name: str

    @property
    def dims(self) -> str:
        return " ".join(self.x.dims)

    @property
    def last(self) -> str:
        return self.x.dims[-1]

    def other(self) -> Tensor:
        """A tensor of the same dims, perhaps the same one."""
        return self.source.choice([t for t in self.pool if set(t.dims) == set(self.x.dims)])

    def weight(self, dims: str) -> Tensor:
        return self.g.weight(f"{self.name}.w{dims.count(' ')}", dims)

    def op(self, kind: str, *operands: Tensor, **attrs: object) -> Tensor:
        return self.g.op(self.name, kind, [self.x, *operands], self.dims, **attrs)  # type: ignore[arg-type]


def _product(s: _Site) -> Tensor:
    new = s.source.choice([label for label in "hfk" if label not in s.x.dims])
    return s.g.op(s.name, "matmul", [s.x, s.weight(f"{s.last} {new}")], " ".join((*s.x.dims[:-1], new)))


def _gated(s: _Site) -> Tensor:
    """gate, up and their product, of one input."""
    new = s.source.choice([label for label in "hfk" if label not in s.x.dims])
    dims = " ".join((*s.x.dims[:-1], new))
    halves = [
        s.g.op(f"{s.name}.{half}", "matmul", [s.x, s.g.weight(f"{s.name}.{half}.w", f"{s.last} {new}")], dims)
        for half in ("gate", "up")
    ]
    return s.g.op(s.name, "gated_activation", halves, dims)


def _experts(s: _Site) -> Tensor:
    """Router, dispatch, combine."""
    tokens = " ".join(s.x.dims[:-1])
    logits = s.g.op(f"{s.name}.logits", "matmul", [s.x, s.weight(f"{s.last} expert")], f"{tokens} expert")
    scores = s.source.choice(("chosen", "softmax", "sigmoid"))
    gates = s.g.op(f"{s.name}.gates", "route", [logits], f"{tokens} expert", top_k=1, scores=scores)
    rows = s.g.op(f"{s.name}.rows", "dispatch", [s.x, gates], f"{tokens} expert {s.last}")
    return s.g.op(s.name, "combine", [rows, gates], s.dims)


_STEPS: tuple[Callable[[_Site], Tensor], ...] = (
    _product,
    _gated,
    _experts,
    lambda s: s.op("add", s.other()),
    lambda s: s.op("sigmoid_mul", s.other()),
    lambda s: s.op("rms_norm", s.weight(s.last), over=s.last),
    lambda s: s.op("layer_norm", s.weight(s.last), s.g.weight(f"{s.name}.bias", s.last), over=s.last),
    lambda s: s.op("softmax", over=s.last),
    lambda s: s.op("bias", s.weight(s.last)),
    lambda s: s.op("scale", factor=0.5),
    lambda s: s.op("activation", function=s.source.choice(FUNCTIONS)),
    lambda s: s.op("to_hbm"),
)


def program(source: Source) -> Graph:
    """A random program, with the joint products that it may have; what nothing reads comes out."""
    g = GraphBuilder("program", **dict.fromkeys(("b", "h", "f", "k", "expert"), 2))
    # Inputs pass an operator before any move: a copy of an input that comes out would be the input.
    pool = [g.op("x", "activation", [g.input("raw", "b h")], "b h"), g.op("z", "scale", [g.input("old", "b f")], "b f")]
    for number in range(source.integer(2, _OPS)):
        x = source.choice(pool[-4:])
        pool.append(source.choice(_STEPS)(_Site(g=g, source=source, pool=pool, x=x, name=f"op{number}")))
    graph = g.build()
    for joint in shared_inputs(split_blocks(graph)):
        graph = joint.of(graph)
    return graph


@dataclass(frozen=True, kw_only=True)
class Programs:
    """A claim: a random plan out of the e-graph of a random program, on random extents and ranks, is right."""

    change: Change = unchanged

    def __call__(self, source: Source) -> str | None:
        graph, axes = program(source), source.integer(1, 2)
        (kind,) = split_blocks(graph).kinds
        block = frozen(kind, axes, self.change)
        told = refuted(block, draw.extents(graph, source, most=4), axes, source)
        return told and "\n".join([told, *(f"  {op.name} = {op.kind}" for op in graph.ops)])
