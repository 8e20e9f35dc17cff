"""A graph under construction: names, dims, weights."""

from __future__ import annotations

import pytest

from rooflang.assumptions import PHYSICAL
from rooflang.ir.tensor import Dim, Role
from rooflang.models import Workload
from rooflang.models.common.scope import Scope

DIMS = {d.label: d for d in (Dim(label="batch", size=4), Dim(label="hidden", size=8), Dim(label="ffn", size=16))}


def scope(stage: str) -> Scope[None]:
    return Scope("test", None, Workload(stage=stage, context=3, batch=4), PHYSICAL, DIMS)  # type: ignore[arg-type]


def test_names_belong_to_the_block_and_dims_are_those_that_are_used() -> None:
    s = scope("decode")
    s.enter("layers.7")
    x = s.graph.input("x", s._declare("batch hidden"))
    y = s.project("up", x, s.weight("w", "hidden ffn", "fp8"), "ffn", group="ffn")
    graph = s.graph.build(y)
    assert (y.name, y.dims, graph.ops[0].block, graph.ops[0].peak) == (
        "layers.7.up",
        ("batch", "ffn"),
        "layers.7",
        "fp8",
    )
    assert graph.sizes == {"batch": 4, "hidden": 8, "ffn": 16}
    assert s.size("ffn") == 16


def test_a_prompt_runs_all_positions() -> None:
    assert (scope("decode").rows, scope("prefill").rows) == ("batch", "batch seq")


def test_a_norm_has_a_gain() -> None:
    s = scope("decode")
    s.enter("head")
    y = s.norm("norm", s.graph.input("x", s._declare("batch hidden")), "hidden")
    op = s.graph.build(y).ops[0]
    assert [t.name for t in op.operands] == ["x", "head.norm_gain"]
    assert op.operands[1].role is Role.WEIGHT


def test_a_dim_that_the_table_lacks_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        scope("decode").weight("w", "hidden vocab")
