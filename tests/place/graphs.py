"""Small graphs and random plans of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import msgspec

from rooflang.assumptions import PHYSICAL, Assumptions
from rooflang.errors import PlacementError
from rooflang.hw import Cluster, Mesh
from rooflang.ir.blocks import Blocks, split_blocks
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Cut
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.layout import Choice, collective_of, make_mode
from rooflang.ir.op import Op, signature
from rooflang.ir.tensor import RESIDENT_ROLES, Role
from rooflang.models import Workload, load
from rooflang.models.deepseek_v4 import Config, build
from rooflang.place.connect import connect
from rooflang.place.grid import balanced, layer_labels, partition
from rooflang.place.plan import Plan


def mlp(layers: int = 3, **sizes: int) -> Graph:
    """Layers of norm, product, copy, product, residual; an embedding block before, a head after them that also reads
    what the embedding made."""
    g = GraphBuilder("mlp", **{"batch": 64, "hidden": 256, "ffn": 512, **sizes})
    g.block = "embed"
    x = first = g.op("first", "activation", [g.input("x", "batch hidden")], "batch hidden")
    for layer in range(layers):
        g.block = f"layers.{layer}"
        norm = g.op(f"norm{layer}", "rms_norm", [x], "batch hidden", over="hidden")
        up = g.op(f"up{layer}", "matmul", [norm, g.weight(f"u{layer}", "hidden ffn")], "batch ffn", group="mlp")
        copy = g.op(f"copy{layer}", "to_hbm", [up], "batch ffn")
        down = g.op(f"down{layer}", "matmul", [copy, g.weight(f"d{layer}", "ffn hidden")], "batch hidden", group="mlp")
        x = g.op(f"add{layer}", "add", [x, down], "batch hidden")
    g.block = "head"
    return g.build(g.op("last", "add", [x, first], "batch hidden"))


def decode(layers: int = 2) -> Graph:
    """Layers with a cache that is appended to, and the new entries as an output of their own."""
    g = GraphBuilder("decode", batch=16, hidden=64, head=4, width=32, window=8, ctx=64)
    x = g.input("x", "batch hidden")
    left = []
    for layer in range(layers):
        g.block = f"layers.{layer}"
        q = g.op(f"q{layer}", "matmul", [x, g.weight(f"wq{layer}", "hidden head width")], "batch head width")
        new = g.op(f"kv{layer}", "matmul", [x, g.weight(f"wkv{layer}", "hidden width")], "batch width")
        cache = g.cache(f"cache{layer}", "batch ctx width")
        after = g.op(f"after{layer}", "kv_append", [new, cache], "batch ctx width", "fp8", role=Role.KV_CACHE)
        window = g.cache(f"window{layer}", "batch window width")
        attrs = {"parts": ("window", "context"), "value_bytes": 64.0}
        mixed = g.op(f"attend{layer}", "attention", [q, window, after], "batch head width", group="attention", **attrs)
        y = g.op(f"out{layer}", "matmul", [mixed, g.weight(f"wo{layer}", "head width hidden")], "batch hidden")
        x = g.op(f"add{layer}", "add", [x, y], "batch hidden")
        left.append(new)
    return g.build(x, *left)


def small_v4(stage: str, assumptions: Assumptions = PHYSICAL, *, context: int = 4096, batch: int = 64) -> Graph:
    """DeepSeek V4 Flash with six layers: every kind of layer that it has."""
    config = load("deepseek-v4-flash").config
    assert isinstance(config, Config)
    workload = Workload(stage=stage, context=context, batch=batch)  # type: ignore[arg-type]
    return build("small", msgspec.structs.replace(config, num_hidden_layers=6), workload, assumptions)


def random_plan(
    rng: Random,
    graph: Graph,
    cluster: Cluster,
    sizes: Sequence[int],
    *,
    stages: int = 1,
    owners: float = 0.05,
    divide: bool = False,
) -> tuple[Plan, Blocks] | None:
    """A plan in which every operator does something along each axis that its operands can be brought to; None where
    the choices so far leave an operator or a port no way.

    `owners` is how often one may be drawn. With `divide`, dims are cut only if all ranks of the mesh divide them.
    """
    mesh = Mesh.lay(cluster, sizes, stages=stages)
    blocks = split_blocks(graph)
    plans = {}
    try:
        axes = [_Axis(rng, blocks, owners, mesh.gpus if divide else 1) for _ in mesh.axes]
        boundary = {g: tuple(axis.border[g] for axis in axes) for g in sorted(set(blocks.port_group.values()))}
        for kind in blocks.kinds:
            modes = {op.output.name: make_mode(op, [axis.choice[op.name] for axis in axes]) for op in kind.ops}
            ports = {p.name: boundary[blocks.port_group[(kind.name, p.name)]] for p in (*kind.inputs, *kind.outputs)}
            plans[kind.name] = connect(kind, modes, ports)
    except PlacementError:
        return None
    parts = partition(blocks, balanced(len(layer_labels(blocks)), stages))
    return Plan(mesh=mesh, stages=parts, blocks=plans, boundary=boundary, origin="random"), blocks


class _Axis:
    """What every operator does along one axis, chosen in program order, and how every port group lies over it."""

    def __init__(self, rng: Random, blocks: Blocks, owners: float, ranks: int) -> None:
        self.owners = owners
        self.whole = {label for label, size in blocks.graph.sizes.items() if size % ranks}
        #: Caches that are read together are appended to in the same way.
        self.caches = rng.choice(["batch", "positions", "replica"])
        self.choice: dict[str, Choice] = {}
        self.border: dict[int, str] = {}
        for kind in blocks.kinds:
            made = {p.name: self.border[blocks.port_group[(kind.name, p.name)]] for p in kind.inputs}
            for op in kind.ops:
                found = [way for way in self._ways(rng, op) if _reachable(op, way, made) and not self._cuts(way)]
                if not found:
                    raise PlacementError(f"{op.name} has no way left")
                way = rng.choice(found)
                self.choice[op.name] = way
                made[op.output.name] = way.out if isinstance(way, Cut) else way
            for port in kind.outputs:
                left = made[port.name]
                whole = [REPLICATED] if left in (PARTIAL, OWNER) else [left, REPLICATED]
                self.border.setdefault(blocks.port_group[(kind.name, port.name)], rng.choice(whole))

    def _cuts(self, way: Choice) -> bool:
        """Does it cut a dim that has to stay whole?"""
        return isinstance(way, Cut) and bool(self.whole & {*way.operands, way.out, *way.loops})

    def _ways(self, rng: Random, op: Op) -> list[Choice]:
        """All that an operator can do along an axis; an owner is rare, as few operators can follow one."""
        if op.kind == "kv_append":
            return [
                cut
                for cut in signature(op)
                if cut.dim == {"positions": op.output.dims[1]}.get(self.caches, self.caches)
            ]
        return [*signature(op), REPLICATED, *([OWNER] if rng.random() < self.owners else [])]


def _reachable(op: Op, way: Choice, made: Mapping[str, str]) -> bool:
    for index, tensor in enumerate(op.operands):
        have, want = made.get(tensor.name), way.operands[index] if isinstance(way, Cut) else way
        if have is None:
            # A leaf lies as its reader wants it; it is not partial.
            if want == PARTIAL:
                return False
        elif have != want and (tensor.role in RESIDENT_ROLES or not collective_of(have, want)):
            return False
    return True
