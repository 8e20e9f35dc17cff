"""Small graphs in blocks, clusters to lay them on, and what an extraction starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooflang.assumptions import PHYSICAL, Assumptions
from rooflang.cost import CostModel
from rooflang.eqsat import FrozenBlock, saturate_all
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.task import Task
from rooflang.hw import Cluster, Mesh
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.blocks import Blocks, split_blocks

from .oracle import Oracle, enumerated


def two_layers(batch: int = 8, hidden: int = 256, ffn: int = 512, *, layers: int = 2) -> Graph:
    """An embedding-like start, equal layers of two products, and a narrow end: three kinds of block."""
    g = GraphBuilder("two layers", batch=batch, hidden=hidden, ffn=ffn, vocab=4 * hidden)
    g.block = "start"
    x = g.op("x", "matmul", [g.input("rows", "batch vocab"), g.weight("table", "vocab hidden")], "batch hidden")
    for layer in range(layers):
        g.block = name = f"layers.{layer}"
        up = g.op(f"{name}.up", "matmul", [x, g.weight(f"{name}.w1", "hidden ffn")], "batch ffn")
        x = g.op(f"{name}.down", "matmul", [up, g.weight(f"{name}.w2", "ffn hidden")], "batch hidden")
    g.block = "end"
    return g.build(g.op("out", "rms_norm", [x], "batch hidden", over="hidden"))


def residual(batch: int = 8, hidden: int = 256, ffn: int = 512, *, layers: int = 1) -> Graph:
    """Layers whose input has two readers, so that transfers are shared."""
    g = GraphBuilder("residual", batch=batch, hidden=hidden, ffn=ffn)
    g.block = "start"
    x = g.op("x", "activation", [g.input("rows", "batch hidden")], "batch hidden")
    for layer in range(layers):
        g.block = name = f"layers.{layer}"
        up = g.op(f"{name}.up", "matmul", [x, g.weight(f"{name}.w1", "hidden ffn")], "batch ffn")
        down = g.op(f"{name}.down", "matmul", [up, g.weight(f"{name}.w2", "ffn hidden")], "batch hidden")
        x = g.op(f"{name}.y", "add", [x, down], "batch hidden")
    return g.build(x)


def fan(batch: int = 8, hidden: int = 128, wide: int = 256) -> Graph:
    """One value with three readers that want it in different layouts."""
    g = GraphBuilder("fan", batch=batch, hidden=hidden, wide=wide)
    x = g.op("x", "activation", [g.input("rows", "batch hidden")], "batch hidden")
    for name in ("a", "b", "c"):
        g.op(name, "matmul", [x, g.weight(f"w{name}", "hidden wide")], "batch wide")
    return g.build()


def fusable(batch: int = 8, hidden: int = 128, ffn: int = 256, *, copy: bool = False) -> Graph:
    """A norm that may be computed inside either of the products that read it, a residual add that may be fused, and a
    copy that may be left out."""
    g = GraphBuilder("fusable", batch=batch, hidden=hidden, ffn=ffn)
    x = g.op("x", "activation", [g.input("rows", "batch hidden")], "batch hidden")
    norm = g.op("norm", "rms_norm", [x], "batch hidden", over="hidden")
    up = g.op("up", "matmul", [norm, g.weight("w1", "hidden ffn")], "batch ffn")
    side = g.op("side", "matmul", [norm, g.weight("w3", "hidden ffn")], "batch ffn")
    if copy:
        up = g.op("copy", "to_hbm", [up], "batch ffn")
    down = g.op("down", "matmul", [up, g.weight("w2", "ffn hidden")], "batch hidden")
    return g.build(g.op("y", "add", [x, down], "batch hidden"), side)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A graph on a mesh, its layouts, and tasks and an oracle for it."""

    graph: Graph
    blocks: Blocks
    frozen: dict[str, FrozenBlock]
    cost: CostModel
    costed: CostedGraph

    @classmethod
    def of(
        cls,
        graph: Graph,
        *,
        mesh: Sequence[int] = (4,),
        hardware: str = "b300",
        domain: int | None = None,
        stages: int = 1,
        assumptions: Assumptions = PHYSICAL,
        saturate: bool = False,
        owners: bool = False,
    ) -> Case:
        """Layouts enumerated by the oracle, or saturated by the e-graph."""
        gpus = stages
        for size in mesh:
            gpus *= size
        cluster = Cluster.of(hardware, gpus, domain=domain)
        blocks = split_blocks(graph)
        laid = Mesh.lay(cluster, mesh, stages=stages)
        if saturate:
            frozen = saturate_all(blocks, len(mesh))
        else:
            frozen = {kind.name: enumerated(kind, len(mesh), owners=owners) for kind in blocks.kinds}
        cost = CostModel.of(graph, cluster, laid, assumptions)
        return cls(graph=graph, blocks=blocks, frozen=frozen, cost=cost, costed=CostedGraph.of(blocks, frozen, cost))

    def task(self, **fields: object) -> Task:
        """A task for one stage, unless `stages` says otherwise."""
        return Task(**{"costed": self.costed, "at": 0, "stages": (self.blocks.sequence,), **fields})  # type: ignore[arg-type]

    def oracle(self) -> Oracle:
        return Oracle(self.blocks, self.frozen, self.cost)
