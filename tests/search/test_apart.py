"""What is taken apart is evaluated beside what it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rooflang.errors import PlacementError
from rooflang.hw import Cluster
from rooflang.ir.apart import Apart, taken_apart
from rooflang.ir.graph import Graph
from rooflang.models import Workload, load
from rooflang.search import apart as module
from rooflang.search.apart import check_apart
from rooflang.search.problem import Problem


def problem() -> Problem:
    """Some experts of two layers are taken apart, then those of one once more."""
    graph = load("deepseek-v4-pro").build(Workload(stage="decode", context=4096, batch=1))
    first = Apart(targets=("layers.3.combine", "layers.5.combine"), dim="expert", counts=(8, 376))
    again = Apart(targets=("layers.3.combine.expert.8-384",), dim="expert.8-384", counts=(100, 100, 176))
    return replace(Problem.of(graph, hardware=Cluster.of("b300", 8)), apart=(first, again))


def test_experts_of_a_model_are_taken_apart_twice() -> None:
    check_apart(problem())


def test_parts_that_do_not_add_up_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice_the_first(graph: Graph, target: str, dim: str, counts: Sequence[int]) -> Graph:
        apart = taken_apart(graph, target, dim, counts)
        ops = [replace(op, operands=op.operands[:1] * 2) if op.name == target else op for op in apart.ops]
        return replace(apart, ops=tuple(ops))

    monkeypatch.setattr(module, "taken_apart", twice_the_first)
    with pytest.raises(PlacementError, match=r"the parts of layers\.3\.combine do not add up to it"):
        check_apart(problem())
