"""Graphs that are no transformers, and points with made-up numbers."""

from __future__ import annotations

import msgspec

from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.models import Model, load
from rooflang.models.deepseek_v4 import Config
from rooflang.search.point import Point
from rooflang.sim.result import SimResult


def stencil(steps: int = 2, *, size: int = 512, blocks: bool = False) -> Graph:
    """A field that is mixed along its rows and then its columns, step by step: no batch, no layers, no weights but the
    two mixing matrices."""
    g = GraphBuilder("stencil", row=size, col=size, row2=size, col2=size)
    across, down = g.weight("across", "col col2", "fp32"), g.weight("down", "row row2", "fp32")
    back_across, back_down = g.weight("back_across", "col2 col", "fp32"), g.weight("back_down", "row2 row", "fp32")
    x = g.input("field", "row col", "fp32")
    for step in range(steps):
        g.block = f"layers.{step}" if blocks else ""
        h = g.op(f"across{step}", "matmul", [x, across], "row col2", "fp32")
        v = g.op(f"down{step}", "matmul", [h, down], "row2 col2", "fp32")
        w = g.op(f"up{step}", "matmul", [v, back_down], "row col2", "fp32")
        mixed = g.op(f"back{step}", "matmul", [w, back_across], "row col", "fp32")
        x = g.op(f"field{step}", "add", [x, mixed], "row col", "fp32")
    return g.build(x)


def small_flash() -> Model:
    """DeepSeek V4 Flash with its first six layers."""
    config = load("deepseek-v4-flash").config
    assert isinstance(config, Config)
    return Model(name="small flash", config=msgspec.structs.replace(config, num_hidden_layers=6))


def perceptron() -> Graph:
    """Two products and an activation, written for a batch of 64; no blocks."""
    g = GraphBuilder("perceptron", batch=64, hidden=1024, ffn=4096)
    x = g.input("x", "batch hidden")
    h = g.op("up", "matmul", [x, g.weight("w1", "hidden ffn")], "batch ffn")
    a = g.op("act", "activation", [h], "batch ffn")
    return g.build(g.op("down", "matmul", [a, g.weight("w2", "ffn hidden")], "batch hidden"))


def point(user: float, gpu: float, *, batch: int = 1, step_s: float = 1.0, bound_s: float | None = None) -> Point:
    sim = SimResult(
        overlap="perfect",
        step_s=step_s,
        tok_s_gpu=gpu,
        tok_s_user=user,
        stages=(),
        peak_bytes=10,
        capacity_bytes=20,
        largest=(("w", 7), ("x", 3)),
        groups_s={"experts": 0.5},
        bottleneck="memory",
        events=1,
        operators=1,
    )
    return Point(
        batch=batch,
        pp=1,
        pp_partition=(3,),
        mesh=(8,),
        sim=sim,
        plan="experts: expert→8; pipeline 1",
        certificate={"schema": "rooflang.certificate/1"},
        origin="made up",
        bound_s=bound_s,
        bound_scope="everything",
    )
