"""Execution traces beside graphs: a recorded profile, an execution trace, and files that are neither."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rooflang.errors import GraphError
from rooflang.importers import compare, graph_work, read_exported, read_trace, to_graph
from rooflang.importers.work import Work, product_work
from rooflang.ir import GraphBuilder
from rooflang.models import Model, Workload, load
from rooflang.models.hf import read

DATA = Path(__file__).parent / "data"


def event(name: str, dims: list[Any], types: list[str]) -> dict[str, Any]:
    return {"ph": "X", "name": name, "args": {"Input Dims": dims, "Input type": types}}


def written(path: Path, *events: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["profile.json", "execution.json"])
def test_a_recorded_run_of_the_program_that_the_graph_is_of(name: str) -> None:
    """The run of the same module by torch 2.13: operators, FLOPs and bytes are equal."""
    graph = to_graph(read_exported(DATA / "two-layers.json"))
    found = compare(graph_work(graph), read_trace(DATA / name))
    assert found.difference == 0
    assert found.products == {}
    for line in found.lines:
        assert line.ops[0] == line.ops[1] > 0
        assert line.flops[0] == line.flops[1] > 0
        assert line.bytes[0] == line.bytes[1] > 0


def test_products_of_a_trace(tmp_path: Path) -> None:
    path = written(
        tmp_path / "trace.json",
        event("aten::linear", [[2, 3, 4], [5, 4], [5]], ["float"] * 3),  # calls the next one
        event("aten::addmm", [[5], [6, 4], [4, 5]], ["c10::BFloat16"] * 3),
        event("aten::bmm", [[7, 2, 3], [7, 3, 4]], ["c10::Half", "c10::Half"]),
        event("cudaLaunchKernel", [[1]], ["float"]),
        {"ph": "M", "name": "process_name", "args": {"name": "python"}},
    )
    first, second = read_trace(path)
    assert (first.shape, first.flops, first.bytes) == ((6, 4, 5), 240, 2 * (24 + 20 + 30))
    assert (second.shape, second.flops) == ((14, 3, 4), 2 * 7 * 24)


def test_attention_of_a_trace_reads_shared_keys_once(tmp_path: Path) -> None:
    dims = [[2, 8, 16, 64], [2, 2, 32, 64], [2, 2, 32, 64]]
    path = written(
        tmp_path / "trace.json",
        event("aten::scaled_dot_product_attention", dims, ["c10::Half"] * 3),
        event("aten::_scaled_dot_product_flash_attention", dims, ["c10::Half"] * 3),
    )
    (work,) = read_trace(path)
    assert work.flops == 4 * 2 * 8 * 16 * 32 * 64
    assert work.bytes == 2 * (2 * 2 * 8 * 16 * 64 + 2 * 2 * 2 * 32 * 64)


def test_compressed_traces(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress((DATA / "profile.json").read_bytes()))
    assert read_trace(path) == read_trace(DATA / "profile.json")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "not JSON"),
        (b"[1]", "no operators of ATen with shapes"),
        (b'{"traceEvents": [{"ph": "X", "name": "aten::mm", "args": {}}]}', "no operators of ATen with shapes"),
        (b'{"traceEvents": [{"name": "aten::mm", "args": {"Input Dims": [[2]]}}]}', "aten::mm with the shapes [[2]]"),
    ],
)
def test_files_that_are_no_trace_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(GraphError) as caught:
        read_trace(path)
    assert says in caught.value.what
    assert caught.value.where == str(path)


def test_a_file_that_is_not_there_or_not_compressed(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="cannot be read"):
        read_trace(tmp_path / "none.json")
    path = tmp_path / "trace.json.gz"
    path.write_bytes(b"{}")
    with pytest.raises(GraphError, match="cannot be read"):
        read_trace(path)


def test_a_product_may_be_split_or_fused() -> None:
    """Gate and up are one product here, two in a trace."""
    g = GraphBuilder("ffn", batch=8, hidden=16, ffn=32, gate=2)
    x = g.input("x", "batch hidden")
    graph = g.build(g.op("up", "gated_matmul", [x, g.weight("w", "hidden gate ffn")], "batch ffn"))
    halves = [product_work("aten::mm", 1, 8, 16, 32, (2, 2, 2)) for _ in range(2)]
    found = compare(graph_work(graph), halves)
    assert (found.difference, found.products) == (0, {})
    assert found.lines[0].ops == (1, 2)


def test_what_is_missing_is_told_by_its_shape() -> None:
    g = GraphBuilder("one", batch=8, hidden=16, out=4)
    graph = g.build(g.op("y", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden out")], "batch out"))
    other = product_work("aten::mm", 1, 8, 16, 5, (2, 2, 2))
    found = compare(graph_work(graph), [other])
    assert found.products == {(8, 16): (4, 5)}
    assert found.difference == pytest.approx(0.2)
    assert found.to_json()["products"] == [{"rows": 8, "summed": 16, "columns": {"graph": 4, "trace": 5}}]


@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3", "qwen3-30b-a3b"])
@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_work_of_a_model_has_the_operations_of_its_products(name: str, stage: str) -> None:
    """Those that the operator table counts; attention is whole here, and half of it in a causal prompt."""
    from rooflang.ir import op_kind

    graph = load(name).build(Workload(stage=stage, context=64, batch=2))  # type: ignore[arg-type]
    by_name = {work.name: work for work in graph_work(graph)}
    for op in graph.ops:
        work: Work | None = by_name.get(op.name)
        if work is not None and work.sort == "product":
            counted = sum(op_kind(op.kind).flops(op, graph.sizes, graph.sizes).values())
            assert work.flops == pytest.approx(counted, rel=1e-12), op.name


def test_the_builder_of_models_does_what_the_recorded_model_has_run() -> None:
    """The recorded module is a Qwen 2 of this size, but that it runs its head on all positions."""
    fields = {
        "model_type": "qwen2",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
        "max_position_embeddings": 64,
    }
    model = Model(name="recorded", config=read(fields, "config.json"))
    graph = model.build(Workload(stage="prefill", context=16, batch=2))
    found = compare(graph_work(graph), read_trace(DATA / "profile.json"))
    ours, theirs = found.products.pop((32, 64))
    assert found.products == {(2, 64): (100, 0)}
    assert theirs - ours == 100
    products, attention = found.lines
    assert products.flops[1] - products.flops[0] == 2 * (32 - 2) * 64 * 100
    assert attention.flops[0] == attention.flops[1]
