"""Weights that rest cut and are gathered where they are used: what moves, what room they take, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.errors import PlacementError
from rooflang.hw import Cluster
from rooflang.ir.cut import REPLICATED
from rooflang.ir.layout import Transfer, make_transfer
from rooflang.ir.tensor import Role, Tensor
from rooflang.place.certificate import certificate, replay
from rooflang.place.lower import lower
from rooflang.place.plan import BlockPlan
from rooflang.search.validate import evaluated, validate
from rooflang.sim.simulate import simulate
from rooflang.sim.verdict import verdict

from .plans import Placed, placed_model, random_layout
from .test_serial import check


def gathered(placed: Placed, wanted: Callable[[str], bool]) -> Placed:
    """The same plan with those weights, where every coordinate of an axis reads them whole, cut at rest."""
    graph, cost = placed
    kinds = {name: _with_gathers(block, wanted) for name, block in graph.plan.blocks.items()}
    return lower(replace(graph.plan, blocks=kinds), graph.blocks), cost


def _with_gathers(block: BlockPlan, wanted: Callable[[str], bool]) -> BlockPlan:
    paths = {
        (kernel, index): (step,)
        for kernel, mode in block.modes.items()
        for index, (tensor, spec) in enumerate(zip(mode.op.operands, mode.operands, strict=True))
        if tensor.role is Role.WEIGHT and wanted(tensor.name)
        for step in _gathers(tensor, spec)
    }
    return replace(block, paths={**block.paths, **paths})


def _gathers(tensor: Tensor, spec: tuple[str, ...]) -> list[Transfer]:
    """An all-gather over the axes on which the tensor is whole, along its first dim that no axis cuts."""
    free = [dim for dim in tensor.dims if dim not in spec]
    if REPLICATED not in spec or not free:
        return []
    before = tuple(free[0] if entry == REPLICATED else entry for entry in spec)
    return [make_transfer(tensor.name, before, spec)]


def attention_weights(name: str) -> bool:
    return name.endswith((".wq_b", ".wo_a", ".wo_b"))


@pytest.mark.parametrize("assumptions", [PHYSICAL, PAPER], ids=["physical", "paper"])
def test_a_gathered_weight_rests_cut_and_is_whole_while_its_kernel_runs(assumptions: Assumptions) -> None:
    near = placed_model(assumptions=assumptions)
    far = gathered(near, attention_weights)
    one, other = (simulate(*placed, tokens=1, overlap="none") for placed in (near, far))
    steps = [op for op in far[0].ops if op.transfer is not None and op.tensor.role is Role.WEIGHT]
    assert len(steps) > 43  # some in every layer
    freed = sum(far[1].bytes(op.tensor, op.write[1]) * (1 - 1 / 8) for op in steps)
    largest = max(far[1].bytes(op.tensor, op.write[1]) for op in steps)
    assert one.peak_bytes - freed <= other.peak_bytes + len(steps)
    assert other.peak_bytes <= one.peak_bytes - freed + largest + len(steps)
    moved_s = sum(float(far[1].transfer(op.tensor, op.transfer).exposed_s) for op in steps if op.transfer)
    assert other.step_s == pytest.approx(one.step_s + moved_s, rel=1e-9)
    assert check(far, [64, 256], "none") and check(far, [64, 256], "perfect")


def test_only_the_buffer_is_alive_beside_what_rests() -> None:
    """The gathered copies of different layers are not there at the same time."""
    near = placed_model()
    few, many = (gathered(near, wanted) for wanted in (lambda name: ".wo_a" in name, attention_weights))
    peaks = [simulate(*placed, tokens=1).peak_bytes for placed in (near, few, many)]
    assert peaks[0] > peaks[1] > peaks[2]


def test_drawn_plans_agree_with_the_closed_form_compute_the_same_and_keep_to_their_bounds() -> None:
    rng, used = Random(5), 0
    for _ in range(40):
        placed = random_layout(rng, Cluster.of("b300", rng.choice([4, 8])))
        if placed is None:
            continue
        chosen = set(rng.sample(sorted(placed[0].blocks.graph.tensors), 6))
        graph, cost = gathered(placed, chosen.__contains__)
        if graph.ops == placed[0].ops:
            continue
        check((graph, cost), [64, 4096], "none")
        evaluated(graph.plan, graph.blocks)
        found = simulate(graph, replace(cost, sizes={**cost.sizes, "batch": 64}), tokens=1, check_memory=False)
        told = verdict(graph.plan, graph.blocks, replace(cost, sizes={**cost.sizes, "batch": np.array([64.0])}))
        assert float(told.least_step_s[0]) <= found.step_s * (1 + 1e-9)
        assert float(told.least_bytes[0]) <= found.peak_bytes + len(graph.ops)
        used += 1
    assert used > 5


def test_a_certificate_carries_gathers_and_refuses_others() -> None:
    graph, cost = gathered(placed_model(), attention_weights)
    script = certificate(graph.plan, graph.blocks)
    assert certificate(replay(script, graph.blocks, cost.cluster), graph.blocks) == script
    assert validate(graph.plan, graph.blocks, cost.cluster).mesh == (2,)
    kernel, read = next(
        (kernel, read)
        for kind in script["kinds"]
        for kernel in kind["kernels"]
        for read in kernel["reads"]
        if read["steps"][0]["tensor"].endswith(".wo_a")
    )
    step = read["steps"][0]
    assert [each["primitive"] for each in step["steps"]] == ["merge_gather_broadcast"]
    step["before"] = ["no_such_dim"]
    with pytest.raises(PlacementError):
        replay(script, graph.blocks, cost.cluster)
    kernel["reads"].remove(read)
    whole = replay(script, graph.blocks, cost.cluster)  # it rests as it is read then
    assert len(lower(whole, graph.blocks).ops) < len(graph.ops)


def test_caches_are_not_gathered() -> None:
    graph, cost = placed_model()
    block = graph.plan.blocks
    name, kernel, index, tensor = next(
        (kind, kernel, index, tensor)
        for kind, plan in block.items()
        for kernel, mode in plan.modes.items()
        for index, tensor in enumerate(mode.op.operands)
        if tensor.role is Role.KV_CACHE
    )
    step = make_transfer(tensor.name, (tensor.dims[-1],), (REPLICATED,))
    bad = replace(block[name], paths={**block[name].paths, (kernel, index): (step,)})
    script = certificate(replace(graph.plan, blocks={**block, name: bad}), graph.blocks)
    with pytest.raises(PlacementError):
        replay(script, graph.blocks, cost.cluster)
