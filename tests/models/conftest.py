"""Helpers of the model tests: graphs of small and full models, FLOPs of a graph by peak rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from rooflang.assumptions import PHYSICAL, Assumptions
from rooflang.ir import Graph, op_kind
from rooflang.ir.text import dump, parse
from rooflang.ir.verify import verify
from rooflang.models import Workload, load
from rooflang.models.deepseek_v4 import Config, build

Build = Callable[..., Graph]


@pytest.fixture(scope="session")
def flash_config() -> Config:
    """Flash cut to its first six layers: two of window only, then ratio 4 and 128 twice; hash routing in three."""
    config = load("deepseek-v4-flash").config
    assert isinstance(config, Config)
    return msgspec.structs.replace(config, num_hidden_layers=6)


@pytest.fixture(scope="session")
def maker() -> Callable[..., Build]:
    """`maker(build, config)(stage, assumptions, context=…, batch=…, **fields to change)` is a graph."""

    def of(build: Callable[..., Graph], config: Any) -> Build:
        def graph(
            stage: str, assumptions: Assumptions = PHYSICAL, *, context: int = 65536, batch: int = 8, **fields: object
        ) -> Graph:
            workload = Workload(stage=stage, context=context, batch=batch)  # type: ignore[arg-type]
            return build("small", msgspec.structs.replace(config, **fields), workload, assumptions)

        return graph

    return of


@pytest.fixture(scope="session")
def small(maker: Callable[..., Build], flash_config: Config) -> Build:
    """Graphs of the six-layer model."""
    return maker(build, flash_config)


@pytest.fixture(scope="session")
def well_formed() -> Callable[[Graph, set[str], str], None]:
    """Asserts of a graph: it verifies, reads back from its text, has no other groups and uses all of its dims."""

    def check(graph: Graph, groups: set[str], stage: str) -> None:
        assert verify(graph) == graph
        assert parse(dump(graph)) == graph
        assert {op.group for op in graph.ops} <= groups
        assert all(op.name.startswith(f"{op.block}.") for op in graph.ops)
        used = {label for op in graph.ops for label in op.labels}
        assert used == set(graph.sizes)
        assert ("seq" in used) == (stage == "prefill")

    return check


@pytest.fixture(scope="session")
def flops() -> Callable[[Graph], dict[str, float]]:
    """FLOPs of an unsplit graph by peak rate."""

    def count(graph: Graph) -> dict[str, float]:
        total: dict[str, float] = {}
        for op in graph.ops:
            for peak, amount in op_kind(op.kind).flops(op, graph.sizes, graph.sizes).items():
                total[peak] = total.get(peak, 0.0) + amount
        return total

    return count
