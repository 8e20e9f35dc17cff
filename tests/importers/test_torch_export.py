"""Programs that torch exports; skipped where there is no torch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooflang.errors import GraphError
from rooflang.importers import Exported, graph_work, to_graph
from rooflang.importers.torch_export import recorded
from rooflang.ir.op import signature

MODULE = """
import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.o = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32, bias=False)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (p.view(b, t, 4, 8).transpose(1, 2) for p in self.qkv(self.norm(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(mixed.transpose(1, 2).reshape(b, t, -1))
        return x + self.down(F.gelu(self.up(x)))


def turned(x, angle):
    a, b = x.chunk(2, -1)
    return x * angle.cos() + torch.cat((-b, a), -1) * angle.sin()


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x):
        b, t, _ = x.shape
        places = torch.arange(t).float()[:, None] * (10000.0 ** (-torch.arange(0, 4).float() / 4))
        angle = torch.cat((places, places), -1)[None, None]
        q, k, v = (m(x).view(b, t, 4, 8).transpose(1, 2) for m in (self.q, self.k, self.v))
        return F.scaled_dot_product_attention(turned(q, angle), turned(k, angle), v, is_causal=True)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.softmax(-1)


def make():
    return Model(), (torch.zeros(2, 8, 32),)


def make_rotary():
    return Rotary(), (torch.zeros(2, 8, 32),)


number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module in the current folder."""
    (tmp_path / "mine_to_import.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield "mine_to_import"
    sys.modules.pop("mine_to_import", None)


def check(program: Exported) -> None:
    """FLOPs of the products of the graph are those that PyTorch counts."""
    graph = to_graph(program)
    works = graph_work(graph)
    products = sum(w.flops for w in works if w.sort == "product")
    counted = sum(flops for name, flops in program.flops.items() if "attention" not in name)
    assert products == counted > 0
    assert (graph.sizes["batch"], graph.sizes["seq"]) == (2, 8)


def test_a_module_of_ones_own(module: str) -> None:
    pytest.importorskip("torch")
    program = recorded(f"{module}:make")
    check(program)
    assert {node.label for node in program.nodes if node.target == "parameter"} >= {"layers.1.qkv.weight"}


def test_rotation_written_out_is_cut_by_heads(module: str) -> None:
    pytest.importorskip("torch")
    program = recorded(f"{module}:make_rotary")
    check(program)
    graph = to_graph(program)
    assert "opaque" not in {op.kind for op in graph.ops}
    turns = [op for op in graph.ops if op.kind in ("pointwise", "rowwise") and len(op.output.dims) == 4]
    assert len(turns) > 3
    assert all(4 in {graph.sizes[cut.dim] for cut in signature(op)} for op in turns)


def test_a_saved_program(module: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    sys.path.insert(0, "")
    try:
        model, args = __import__(module).make()
    finally:
        sys.path.remove("")
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(model.eval(), args), path)
    check(recorded(str(path)))


@pytest.mark.parametrize("name", ["nothing", "number", "Model.x"])
def test_names_that_are_no_program_are_refused(module: str, name: str) -> None:
    pytest.importorskip("torch")
    with pytest.raises(GraphError):
        recorded(f"{module}:{name}")


@pytest.mark.parametrize("source", ["no_such_module_here:make", "model.onnx", "missing.pt2"])
def test_sources_that_are_none_are_refused(source: str) -> None:
    pytest.importorskip("torch")
    with pytest.raises(GraphError):
        recorded(source)


def test_a_file_that_torch_cannot_load(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "broken.pt2"
    path.write_bytes(b"no zip")
    with pytest.raises(GraphError, match="torch cannot load it"):
        recorded(str(path))


def test_without_torch_the_hint_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(GraphError) as caught:
        recorded("model.pt2")
    assert "rooflang[torch]" in caught.value.hint
