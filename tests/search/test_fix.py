"""Given parts of a plan: how they are read, that plans keep to them, and that bounds are about what is left."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from rooflang.errors import RooflangError, UnknownNameError, ValueRangeError
from rooflang.place.certificate import replay
from rooflang.place.words import cut_word
from rooflang.search.api import optimize
from rooflang.search.effort import Effort
from rooflang.search.fix import FREE, Fixed
from rooflang.search.point import Point
from rooflang.search.problem import Problem
from rooflang.search.space import OpRule

from .toys import perceptron, small_flash, stencil

PROBLEM = Problem.of(small_flash(), hardware="b300", gpus=8, context=65536, assumptions="paper")


def best(fix: list[str], **changes: Any) -> Point:
    given: dict[str, Any] = {"hardware": "b300", "gpus": 8, "context": 65536, "assumptions": "paper", "batch": [64]}
    return optimize(small_flash(), fix=fix, **{**given, **changes}).frontier[-1]


def cuts(point: Point) -> dict[str, set[tuple[tuple[str, int], ...]]]:
    """For each operator of the graph, by its last name, how the kernels that cover it are cut: parts by word."""
    laid = PROBLEM.for_script(point.certificate)
    plan = replay(point.certificate, laid.blocks, laid.cluster)
    found: dict[str, set[tuple[tuple[str, int], ...]]] = {}
    for block in plan.blocks.values():
        for mode in block.modes.values():
            parts: dict[str, int] = {}
            for axis, choice in zip(plan.mesh.axes, mode.choices):
                word = cut_word(choice, laid.graph.words)
                if word:
                    parts[word] = parts.get(word, 1) * axis.size
            for name in mode.covers:
                found.setdefault(name.split(".")[-1], set()).add(tuple(sorted(parts.items())))
    return found


# -- reading ----------------------------------------------------------------------------------------------------------


def test_items_are_read() -> None:
    texts = ["experts=expert:8, Shared-Expert = replicated", "partition=1,2x2,1,mesh=2x1*4", "dp=4,cp=2,ep=8,pp=1"]
    fixed = Fixed.read(texts, PROBLEM)
    assert fixed == Fixed(
        groups={"experts": {"expert": 8}, "shared expert": {}},
        partition=(1, 2, 2, 1),
        mesh=(2, 4),
        dp=4,
        cp=2,
        ep=8,
        pp=1,
    )
    assert Fixed.read([], PROBLEM) == FREE


def test_dims_may_be_named_by_word_or_label() -> None:
    for text in ("attention=head group:8", "attention=head-group→8", "attention=group:8"):
        assert Fixed.read([text], PROBLEM).groups == {"attention": {"head group": 8}}
    assert Fixed.read(["attention=batch:4,context:2"], PROBLEM).groups == {"attention": {"batch": 4, "context": 2}}


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("expert=expert:8", UnknownNameError, "did you mean experts"),
        ("experts=exprt:8", UnknownNameError, "did you mean expert"),
        ("experts", ValueRangeError, "name=value"),
        ("experts=", ValueRangeError, "name=value"),
        ("experts=8", ValueRangeError, "dim:parts"),
        ("experts=expert:0", ValueRangeError, "above 0"),
        ("experts=expert:x", ValueRangeError, "above 0"),
        ("experts=expert:2,expert:4", ValueRangeError, "named twice"),
        ("dp=2,dp=4", ValueRangeError, "fixed twice"),
        ("experts=expert:2,Experts=expert:2", ValueRangeError, "fixed twice"),
        ("mesh=2xx", ValueRangeError, "above 0"),
        ("partition=3,,4", ValueRangeError, "cannot read the partition"),
        ("pp=-2", ValueRangeError, "above 0"),
        ("experts=expert:5", ValueRangeError, "do not divide into 5 equal parts"),
    ],
)
def test_what_cannot_be_read(text: str, error: type[RooflangError], told: str) -> None:
    with pytest.raises(error) as caught:
        Fixed.read([text], PROBLEM)
    assert told in str(caught.value)
    assert caught.value.where.startswith("--fix")


@pytest.mark.parametrize(
    ("text", "pp", "told"),
    [
        ("mesh=3", None, "product is the number of GPUs"),
        ("dp=8,ep=4", None, "product is the number of GPUs"),
        ("dp=3", None, "product is the number of GPUs"),
        ("partition=3,4", None, "sum to 6"),
        ("partition=3,3", 4, "given twice"),
        ("pp=2", 4, "given twice"),
        ("pp=3", None, "a divisor of 8"),
        ("experts=expert:3", None, "one of 1, 2, 4, 8"),
        ("experts=expert:16", None, "one of 1, 2, 4, 8"),
        ("mesh=2x4,experts=expert:16", None, "one of 1, 2, 4, 8"),
        ("mesh=8,experts=expert:4", None, "one of 1, 8"),
    ],
)
def test_what_cannot_be(text: str, pp: int | None, told: str) -> None:
    with pytest.raises(ValueRangeError) as caught:
        Fixed.read([text], PROBLEM).degrees(PROBLEM, pp)
    assert told in str(caught.value)


def test_degrees_that_are_left() -> None:
    assert FREE.degrees(PROBLEM, None) == (1, 2, 4)
    assert Fixed.read(["mesh=2x2"], PROBLEM).degrees(PROBLEM, None) == (2,)
    assert Fixed.read(["dp=2"], PROBLEM).degrees(PROBLEM, None) == (1, 2, 4)
    assert Fixed.read(["ep=4"], PROBLEM).degrees(PROBLEM, None) == (2,)
    assert Fixed.read(["partition=1,2,2,1"], PROBLEM).degrees(PROBLEM, None) == (4,)
    assert Fixed.read(["partition=3,3"], PROBLEM).degrees(PROBLEM, 2) == (2,)


def test_meshes_of_three_axes_are_searched_when_asked_for() -> None:
    three = replace(FREE, axes=3)
    assert [space.sizes for space in FREE.spaces(PROBLEM, 1)] == [(8,), (2, 4)]
    assert [space.sizes for space in three.spaces(PROBLEM, 1)] == [(8,), (2, 4), (2, 2, 2)]
    assert three.free
    assert "at most 3 axes, " in three.scope("perfect")
    assert "fixed" not in three.scope("perfect")
    assert three.degrees(PROBLEM, None) == (1, 2, 4)


@pytest.mark.parametrize("axes", [0, 4])
def test_axes_that_no_search_has(axes: int) -> None:
    with pytest.raises(ValueRangeError, match=r"(?s)--axes.*1 to 3.*--fix mesh"):
        Effort(axes=axes)
    assert Effort(axes=3).inputs() == {"axes": 3}


def test_rules_of_one_operator() -> None:
    assert OpRule(parts={"batch": 8}).allows(("batch", "batch"), (2, 4))
    assert not OpRule(parts={"batch": 8}).allows(("batch", ""), (2, 4))
    assert OpRule(parts={"batch": 1}).allows(("expert", ""), (2, 4))
    assert not OpRule(whole=True).allows(("batch", ""), (2, 4))
    assert OpRule(axes=("batch", "")).allows(("batch", ""), (2, 4))
    assert not OpRule(axes=("batch", "")).allows(("", "batch"), (4, 4))


# -- searching --------------------------------------------------------------------------------------------------------


def test_plans_keep_to_what_is_given() -> None:
    point = best(["mesh=2x4", "attention=batch:4,context:2", "experts=expert:2", "head=replicated"], pp=1)
    found = cuts(point)
    # A layer that attends to a window only has no context to cut: there the second axis is free.
    assert all(dict(parts)["batch"] == 4 for parts in found["attention"])
    assert (("batch", 4), ("context", 2)) in found["attention"]
    for name in ("expert_up", "expert_down"):
        assert all(dict(parts).get("expert") == 2 for parts in found[name])
    assert found["logits"] >= {()}  # the head's; the router's, of the same name, is free
    assert "head: replicated" in point.plan
    assert (
        "with attention: batch→4, context→2; experts: expert→2; head: replicated; mesh 2×4 fixed" in point.bound_scope
    )
    assert point.gap is not None and 0.0 <= point.gap < 0.02


def test_what_is_given_can_only_cost() -> None:
    """The best plan of a mesh, part of it given back, is found again; any other restriction is no faster."""
    free = best(["mesh=2x4"], pp=1)
    given = best(["mesh=2x4,experts=expert:4"], pp=1)
    assert given.bound_s is not None and free.bound_s is not None
    assert given.bound_s >= free.bound_s * (1 - 1e-9)
    assert given.sim.step_s >= free.sim.step_s * (1 - 2e-2)  # plans of the same gap may differ by as much
    assert "experts: expert→8" in free.plan
    again = best(["mesh=2x4,experts=expert:8"], pp=1)
    assert again.sim.step_s == pytest.approx(free.sim.step_s, rel=1e-2)


@pytest.mark.parametrize(("shape", "dp", "cp"), [("dp=2,cp=4", 2, 4), ("dp=4,pp=2", 4, 1)])
def test_the_shape_of_the_grid(shape: str, dp: int, cp: int) -> None:
    """Without fusions only the grid's own layouts are left; what remains free are transfers and the partition."""
    point = best([shape], disable_rules=["fuse_kernels"])
    grid = optimize(
        small_flash(),
        hardware="b300",
        gpus=8,
        context=65536,
        assumptions="paper",
        batch=[64],
        search="grid",
        fix=[shape],
    ).frontier[-1]
    assert f"dp{dp} cp{cp} " in grid.origin
    assert (point.pp, math.prod(point.mesh)) == (grid.pp, dp * cp)
    assert point.plan.split("; pipeline")[0] == grid.plan.split("; pipeline")[0]
    assert point.sim.step_s <= grid.sim.step_s * (1 + 1e-2)


def test_the_partition_is_given() -> None:
    for search in ("egraph", "grid"):
        point = best(["partition=1,2,2,1"], search=search)
        assert (point.pp, point.pp_partition) == (4, (1, 2, 2, 1))
    free = best([], pp=4)
    given = best(["partition=" + ",".join(map(str, free.pp_partition))])
    assert given.sim.step_s == pytest.approx(free.sim.step_s, rel=1e-2)
    assert "the partition given" in given.bound_scope


def test_fused_kernels_keep_to_the_rules_of_all_they_cover() -> None:
    """Norms that are cut by requests cannot be fused into projections that are cut otherwise."""
    point = best(["norms=batch:8"], pp=1)
    for name, found in cuts(point).items():
        if name.endswith("norm"):
            assert found == {(("batch", 8),)}, name


def test_no_plan_keeps_to_it() -> None:
    with pytest.raises(ValueRangeError, match="may keep to what is fixed: experts"):
        best(["experts=expert:8,batch:8"], pp=1)


def test_the_grid_has_no_groups() -> None:
    with pytest.raises(ValueRangeError, match="lays all groups"):
        best(["experts=expert:8"], search="grid")


def test_any_graph() -> None:
    found = optimize(perceptron(), hardware="b300", gpus=8, fix=["matmul=ffn:4", "activation=ffn:4"], batch=[64])
    assert "matmul: " in found.frontier[0].plan and "ffn→4" in found.frontier[0].plan
    flat = optimize(stencil(), hardware="b300", gpus=4, fix=["mesh=2x2", "matmul=row:2"])
    assert flat.frontier[0].mesh == (2, 2)
    with pytest.raises(UnknownNameError, match="unknown part of a plan 'attention'"):
        optimize(perceptron(), hardware="b300", gpus=8, fix=["attention=batch:8"])


def test_what_is_fixed_is_an_input() -> None:
    one, other = (
        optimize(perceptron(), hardware="b300", gpus=2, batch=[64], fix=fix, search="grid").inputs
        for fix in ([], ["dp=2"])
    )
    assert one["hash"] != other["hash"] and other["fix"] == ["dp=2"] and "fix" not in one
