"""Plans that are quick to look at: a small network cut in two ways, a pipeline, and a page with hostile names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rooflang import Cluster, GraphBuilder, Layout, prepare
from rooflang.report.html.look import look
from rooflang.report.html.page import Origin, page
from rooflang.report.html.record import CloseUp
from rooflang.report.inputs import point_inputs
from rooflang.search.prepared import Prepared
from rooflang.search.problem import Problem

#: A name that does harm wherever it is taken for markup.
HOSTILE = "</script><img src=x onerror=alert(1)>&amp;\"'<!--"


def network() -> Layout:
    """Two products with an activation between, on four ranks, whole."""
    g = GraphBuilder("mlp", batch=64, hidden=1024, ffn=4096)
    x = g.input("x", "batch hidden")
    up = g.op("up", "matmul", [x, g.weight("w1", "hidden ffn")], "batch ffn")
    act = g.op("act", "activation", [up], "batch ffn", function="silu")
    down = g.op("down", "matmul", [act, g.weight("w2", "ffn hidden")], "batch hidden")
    return Layout.start(g.build(down), Cluster.of("b300", gpus=4), mesh=[4])


def prepared_layout(layout: Layout) -> Prepared:
    """A plan by hand, ready to be looked at."""
    problem = Problem.of(layout.graph, hardware=layout.cluster)
    return Prepared(problem=problem, plan=layout.plan(), batch=problem.own_batch)


@pytest.fixture(scope="session")
def tensor_parallel() -> Prepared:
    whole = network()
    return prepared_layout(whole.split_kernel("up", "ffn").split_kernel("act", "ffn").split_kernel("down", "ffn"))


@pytest.fixture(scope="session")
def pipeline() -> Prepared:
    return prepare("llama-3.1-8b", hardware="h100", gpus=4, context=4096, batch=8, dp=2, pp=2)


@pytest.fixture(scope="session")
def close(tensor_parallel: Prepared) -> CloseUp:
    return look(tensor_parallel, overlap="perfect")


@pytest.fixture(scope="session")
def pipeline_close(pipeline: Prepared) -> CloseUp:
    return look(pipeline, overlap="perfect")


@pytest.fixture(scope="session")
def points(tensor_parallel: Prepared, pipeline: Prepared) -> list[dict[str, Any]]:
    """Three points as a frontier has them: the network, the same one faster, and the pipeline. Names are hostile."""
    first = tensor_parallel.point().to_json() | {"plan": f"{HOSTILE}: {HOSTILE}→4; pipeline 1", "bottleneck": HOSTILE}
    faster = first | {"tok_s_gpu": first["tok_s_gpu"] / 2, "tok_s_user": first["tok_s_user"] * 2, "batch": 32}
    bound = {"bound_s": first["step_s"] / 1.01, "bound_scope": HOSTILE, "gap": 0.01}
    return [faster, first | bound, pipeline.point().to_json()]


@pytest.fixture(scope="session")
def inputs(tensor_parallel: Prepared) -> dict[str, Any]:
    made = point_inputs(tensor_parallel.point(), tensor_parallel.problem, layout={}, overlap="perfect")
    return made | {"model": HOSTILE}


@pytest.fixture(scope="session")
def html(inputs: Mapping[str, Any], points: list[dict[str, Any]], close: CloseUp, pipeline_close: CloseUp) -> str:
    """A page of the three points."""
    origin = Origin(command=f"rooflang optimize '{HOSTILE}'", facts=(("seed", "0"), (HOSTILE, HOSTILE)))
    return page(inputs, points, {0: close, 1: close, 2: pipeline_close}, origin)
