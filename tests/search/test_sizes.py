"""Which batch sizes, pipeline degrees and shapes are looked at."""

from __future__ import annotations

import pytest

from rooflang.errors import ValueRangeError
from rooflang.hw import load_platform
from rooflang.search.problem import LARGEST_BATCH, Problem
from rooflang.search.sizes import batch_sizes, between, clusters, grid_shapes, pipeline_degrees

from .toys import perceptron, small_flash, stencil


def flash(gpus: int, *, hardware: str = "gb300", stage: str = "decode", context: int = 65536) -> Problem:
    return Problem.of("deepseek-v4-flash", hardware=hardware, gpus=gpus, stage=stage, context=context)


def test_batch_sizes() -> None:
    problem = Problem.of(perceptron(), hardware="b300", gpus=8)
    assert batch_sizes(problem, None) == tuple(2**k for k in range(25))
    assert batch_sizes(problem, None)[-1] == LARGEST_BATCH
    assert batch_sizes(problem, [64, 8, 64, 3]) == (3, 8, 64)
    with pytest.raises(ValueRangeError, match="batch 0"):
        batch_sizes(problem, [8, 0])


def test_a_graph_without_a_batch_has_one_batch_size() -> None:
    problem = Problem.of(stencil(), hardware="b300", gpus=8)
    assert batch_sizes(problem, None) == batch_sizes(problem, [1]) == (1,)
    with pytest.raises(ValueRangeError, match="no dim 'batch'"):
        batch_sizes(problem, [1, 8])


def test_pipeline_degrees_divide_the_gpus_and_have_layers() -> None:
    assert pipeline_degrees(flash(64), None) == (1, 2, 4, 8, 16, 32)  # 43 layers
    assert pipeline_degrees(flash(8), None) == (1, 2, 4, 8)
    assert pipeline_degrees(Problem.of(perceptron(), hardware="b300", gpus=8), None) == (1,)


def test_stages_lie_well_on_domains() -> None:
    """GB300 in domains of 60: a stage of 40 GPUs would cross one unevenly."""
    problem = flash(120)
    assert problem.cluster.domain == 60
    assert pipeline_degrees(problem, None) == tuple(
        pp for pp in range(1, 44) if 120 % pp == 0 and (60 % (120 // pp) == 0 or (120 // pp) % 60 == 0)
    )
    assert 3 not in pipeline_degrees(problem, None)


def test_a_degree_asked_for_is_the_only_one() -> None:
    assert pipeline_degrees(flash(64), 4) == (4,)
    six = Problem.of(small_flash(), hardware="b300", gpus=6, context=65536)
    assert pipeline_degrees(six, 6) == (6,)  # a layer a stage
    for asked in (0, 3, 64, 128):
        with pytest.raises(ValueRangeError, match=f"{asked} pipeline stages on 64 GPUs for 43 layers"):
            pipeline_degrees(flash(64), asked)


def test_shapes_of_the_grid() -> None:
    shapes = list(grid_shapes(flash(64), (1, 2)))
    assert shapes == [(64 // cp, cp, 1) for cp in (1, 2, 4, 8, 16, 32, 64)] + [
        (32 // cp, cp, 2) for cp in (1, 2, 4, 8, 16, 32)
    ]


def test_experts_have_to_divide_over_the_ranks_of_a_stage() -> None:
    pro = Problem.of("deepseek-v4-pro", hardware="b300", gpus=256, context=65536)  # 384 experts
    assert {pp for _, _, pp in grid_shapes(pro, (1, 2, 4))} == {2, 4}


def test_context_ranks_divide_window_context_and_prompt() -> None:
    # 128 positions of the window allow 64 ranks; the 16 compressed entries of 2,048 tokens do not.
    assert max(cp for _, cp, _ in grid_shapes(flash(64, context=2048), (1,))) == 16
    assert max(cp for _, cp, _ in grid_shapes(flash(64, stage="prefill", context=8192), (1,))) == 64


def test_without_a_context_there_is_nothing_for_cp_to_divide() -> None:
    assert list(grid_shapes(Problem.of(perceptron(), hardware="b300", gpus=8), (1,))) == [(8, 1, 1)]
    assert list(grid_shapes(Problem.of(stencil(), hardware="b300", gpus=8), (1,))) == [(8, 1, 1)]


def test_clusters_are_those_that_the_platform_allows() -> None:
    assert [c.gpus for c in clusters(load_platform("b300"), 40)] == [*range(1, 9), 16, 24, 32, 40]
    assert [c.gpus for c in clusters(load_platform("gb300"), 20)] == [4, 8, 12, 16, 20]
    with pytest.raises(ValueRangeError, match="at most 3 GPUs"):
        clusters(load_platform("gb300"), 3)


def test_batch_sizes_between_one_and_twice_that() -> None:
    assert between(64) == (72, 80, 88, 96, 104, 112, 120)
    assert between(4) == (5, 6, 7)
    assert between(2) == (3,)
    assert between(1) == ()
