"""What does not hold together is refused, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rooflang.errors import PlacementError
from rooflang.hw import Cluster
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import REPLICATED
from rooflang.ir.layout import make_transfer
from rooflang.place.check import check_connected
from rooflang.place.grid import grid_plan
from rooflang.place.plan import BlockPlan, Plan

from .graphs import mlp
from .test_lower import without_copies

R = REPLICATED
BLOCKS = split_blocks(mlp(2))
PLAN = grid_plan(BLOCKS.graph, Cluster.of("b300", 8), dp=8, cp=1, pp=1)
LAYER = PLAN.blocks["layers.0"]
SLICE = make_transfer("first", (R,), ("batch",))
GATHER = make_transfer("first", ("batch",), (R,))


def refused(plan: Plan) -> str:
    with pytest.raises(PlacementError) as caught:
        check_connected(plan, BLOCKS)
    return str(caught.value)


def with_layer(change: Callable[[BlockPlan], BlockPlan]) -> Plan:
    return replace(PLAN, blocks={**PLAN.blocks, "layers.0": change(LAYER)})


def test_a_plan_of_the_grid_is_connected() -> None:
    check_connected(PLAN, BLOCKS)


def test_stages_run_every_block_once_in_order() -> None:
    expected = "embed, layers.0, layers.1, head"
    for stages in (
        (("embed", "layers.0", "head"),),
        (("embed", "layers.1", "layers.0", "head"),),
        (("embed", "layers.0", "layers.1"), ("layers.1", "head")),
        (),
    ):
        text = refused(replace(PLAN, stages=stages))
        assert "the blocks of the stages are" in text and expected in text


def test_kinds_and_port_groups_are_those_of_the_graph() -> None:
    assert "the block kinds are" in refused(replace(PLAN, blocks={"layers.0": LAYER}))
    assert "the port groups are" in refused(replace(PLAN, boundary={}))
    assert "the port groups are" in refused(replace(PLAN, boundary={**PLAN.boundary, 7: (R,)}))


def test_a_boundary_fits_the_mesh_and_the_port() -> None:
    assert "first lies as batch,batch on a mesh of 1 axes" in refused(
        replace(PLAN, boundary={group: (*spec, "batch") for group, spec in PLAN.boundary.items()})
    )
    assert "has no dim ffn to be cut by" in refused(replace(PLAN, boundary=dict.fromkeys(PLAN.boundary, ("ffn",))))


def test_an_operand_is_read_as_it_lies() -> None:
    assert "exit of first: laid batch, read R" in refused(replace(PLAN, boundary=dict.fromkeys(PLAN.boundary, (R,))))
    text = refused(with_layer(lambda b: replace(b, paths={("norm0", 0): (GATHER,)})))
    assert "layers.0: norm0 reads first: laid R, read batch" in text
    text = refused(with_layer(lambda b: replace(b, paths={("norm0", 0): (SLICE,)})))
    assert "a slice from R of a value laid batch" in text
    there_and_back = (GATHER, SLICE)
    check_connected(with_layer(lambda b: replace(b, paths={("norm0", 0): there_and_back})), BLOCKS)


def test_a_path_stays_with_the_dims_of_its_tensor() -> None:
    astray = (make_transfer("first", ("batch",), ("vocab",)), make_transfer("first", ("vocab",), ("batch",)))
    assert "first has no dim vocab to be cut by" in refused(
        with_layer(lambda b: replace(b, paths={("norm0", 0): astray}))
    )


def test_paths_that_nobody_takes_are_refused() -> None:
    for key in (("norm0", 5), ("up0", 1), ("zzz", 0)):
        text = refused(with_layer(lambda b, key=key: replace(b, paths={key: ()})))  # type: ignore[misc]
        assert "a path leads to something that no kernel reads" in text and str(key) in text
    assert "a path leads to no port: up0" in refused(with_layer(lambda b: replace(b, exits={"up0": ()})))


@pytest.mark.parametrize("edge", [("up0", "norm0"), ("up0", "up0"), ("norm1", "up0")])
def test_no_kernel_waits_for_itself_or_for_one_that_is_issued_later(edge: tuple[str, str]) -> None:
    assert f"{edge[1]} is issued before {edge[0]}, and cannot wait for it" in refused(replace(PLAN, control=(edge,)))
    check_connected(replace(PLAN, control=(("norm0", "up1"),)), BLOCKS)


def test_an_operand_has_a_maker() -> None:
    text = refused(with_layer(lambda b: replace(b, modes={k: m for k, m in b.modes.items() if k != "norm0"})))
    assert "layers.0: up0 reads norm0, which no kernel of the plan makes" in text
    text = refused(with_layer(lambda b: replace(b, modes={k: m for k, m in b.modes.items() if k != "add0"})))
    assert "no kernel makes the port add0" in text


def test_a_removed_copy_stands_for_its_operand() -> None:
    plan = without_copies(PLAN, BLOCKS, {"copy0": "up0"})
    check_connected(plan, BLOCKS)
    lost = replace(plan.blocks["layers.0"], aliases={})
    assert "down0 reads copy0, which no kernel" in refused(replace(plan, blocks={**plan.blocks, "layers.0": lost}))
