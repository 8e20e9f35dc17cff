"""Blocks to saturate: DeepSeek V4 Pro's layers, and a small model of two equal layers."""

from __future__ import annotations

from functools import lru_cache

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.blocks import BlockKind, Blocks, split_blocks
from rooflang.models import STAGES, Workload, load

PROFILES = {"physical": PHYSICAL, "paper": PAPER}
CASES = [(stage, profile) for stage in STAGES for profile in PROFILES]


@lru_cache(maxsize=8)
def v4_pro(stage: str, profile: str) -> Blocks:
    workload = Workload(stage=stage, context=65536, batch=512)  # type: ignore[arg-type]
    return split_blocks(load("deepseek-v4-pro").build(workload, PROFILES[profile]))


def largest(blocks: Blocks) -> BlockKind:
    """The kind with the most operators."""
    return max(blocks.kinds, key=lambda kind: len(kind.ops))


def mlps(layers: int, *, batch: int = 8, prefix: str = "layers.") -> Graph:
    """Equal layers of norm, up, down and residual add, between an activation and a norm."""
    g = GraphBuilder("mlps", batch=batch, hidden=4, ffn=6)
    g.block = "first"
    x = g.op("x", "activation", [g.input("rows", "batch hidden")], "batch hidden")
    for layer in range(layers):
        g.block = name = f"{prefix}{layer}"
        norm = g.op(f"{name}.norm", "rms_norm", [x], "batch hidden", over="hidden")
        up = g.op(f"{name}.up", "matmul", [norm, g.weight(f"{name}.w1", "hidden ffn")], "batch ffn")
        down = g.op(f"{name}.down", "matmul", [up, g.weight(f"{name}.w2", "ffn hidden")], "batch hidden")
        x = g.op(f"{name}.y", "add", [x, down], "batch hidden")
    g.block = "last"
    return g.build(g.op("out", "rms_norm", [x], "batch hidden", over="hidden"))


def layer(graph: Graph) -> BlockKind:
    """The kind of the repeated layer of `mlps`."""
    return split_blocks(graph).kinds[1]
