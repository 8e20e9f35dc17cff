"""Saturation: growth, limits, what is shared between blocks, and that the same input gives the same answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rooflang.eqsat import Limits, StopReason, saturate, saturate_all
from rooflang.eqsat.program import program
from rooflang.errors import UnknownNameError, ValueRangeError
from rooflang.ir.blocks import split_blocks
from rooflang.rules.theory import Theory

from .blocks import CASES, largest, layer, mlps, v4_pro


def test_one_gpu_has_one_layout() -> None:
    block = saturate(layer(mlps(2)), 0)
    assert block.stats.stop is StopReason.SATURATED
    assert not block.transfers
    assert {mode.out for mode in block.modes} == {()}
    assert [mode.op.name for mode in block.modes][:4] == [f"layers.0.{op}" for op in ("norm", "up", "down", "y")]
    assert block.exits == {"layers.0.y": ((),)}


#: Choices an axis of norm, up, down, y (x is whole: no sum passes through), norm+up (no cut of the norm's dim), down+y.
CHOICES = (4, 5, 5, 4, 4, 4)


@pytest.mark.parametrize(("axes", "enodes"), [(0, 33), (1, 142), (2, 820), (3, 4966)])
def test_growth_with_the_axes(axes: int, enodes: int) -> None:
    """Modes are a product over the axes. E-nodes change only when rules do: a change of this count has to be meant."""
    block = saturate(layer(mlps(2)), axes)
    assert len(block.modes) == sum(count**axes for count in CHOICES)
    assert block.stats.total_enodes == enodes


@pytest.mark.parametrize(("stage", "profile"), CASES)
def test_a_v4_layer_stays_small(stage: str, profile: str) -> None:
    """About 1,300 e-nodes at one axis, 6 to 14 thousand at two."""
    kind = largest(v4_pro(stage, profile))
    one, two = saturate(kind, 1), saturate(kind, 2)
    assert one.stats.stop is two.stats.stop is StopReason.SATURATED
    assert one.stats.total_enodes < 2_000
    assert 4 < two.stats.total_enodes / one.stats.total_enodes < 10
    assert len(two.modes) < 2_000
    assert len(two.stats.iterations) < 20


def test_layers_do_not_count() -> None:
    few, many = split_blocks(mlps(2)), split_blocks(mlps(40))
    assert [len(kind.blocks) for kind in many.kinds] == [1, 40, 1]
    assert len(saturate_all(few, 1)) == len(saturate_all(many, 1)) == 3
    one, other = (Theory.of(blocks.kinds[1], 2) for blocks in (few, many))
    assert program(one, frozenset()) == program(other, frozenset())


def test_names_sizes_and_attributes_play_no_part() -> None:
    """Another model of the same structure has the same program, and its own names in the answer."""
    one, other = layer(mlps(2)), layer(mlps(3, batch=64, prefix="blocks."))
    assert program(Theory.of(one, 2), frozenset()) == program(Theory.of(other, 2), frozenset())
    first, second = saturate(one, 2), saturate(other, 2)
    assert first.stats is second.stats
    assert [mode.op.name.replace("blocks.", "layers.") for mode in second.modes] == [m.op.name for m in first.modes]


def test_a_node_limit_stops_between_iterations() -> None:
    kind = layer(mlps(2))
    block = saturate(kind, 3, limits=Limits(nodes=1000))
    assert block.stats.stop is StopReason.NODE_LIMIT
    last = block.stats.iterations[-1]
    assert last.enodes + last.facts > 1000
    assert all(each.enodes + each.facts <= 1000 for each in block.stats.iterations[:-1])
    full = saturate(kind, 3)
    assert full.contains(block.modes, block.transfers)
    assert not block.contains(full.modes, full.transfers)


def test_no_time_stops_after_one_iteration() -> None:
    block = saturate(layer(mlps(2)), 2, limits=Limits(seconds=0.0))
    assert block.stats.stop is StopReason.TIME_LIMIT
    assert len(block.stats.iterations) == 1
    assert block.modes == ()
    assert block.exits == {"layers.0.y": ()}


def test_iterations_only_add_until_nothing_changes() -> None:
    stats = saturate(layer(mlps(2)), 2).stats
    sizes = [each.enodes + each.facts for each in stats.iterations]
    assert sizes == sorted(sizes)
    assert sizes[-1] == sizes[-2]
    assert stats.iterations[-1].enodes == stats.total_enodes == sum(stats.enodes.values())


def test_bad_input_is_named() -> None:
    kind = layer(mlps(2))
    with pytest.raises(UnknownNameError, match="dup_kernel"):
        saturate(kind, 1, disabled=frozenset({"dup_kernels"}))
    for axes in (-1, 11):
        with pytest.raises(ValueRangeError, match="0 to 10"):
            saturate(kind, axes)


def test_a_disabled_rule_takes_no_part() -> None:
    kind = layer(mlps(2))
    assert "fuse_kernels" in saturate(kind, 1).stats.rules
    assert "fuse_kernels" not in saturate(kind, 1, disabled=frozenset({"fuse_kernels"})).stats.rules


def test_the_answer_does_not_depend_on_the_process() -> None:
    """egglog's tables and Python's sets are hashed: in another process their order is another."""
    code = (
        "import hashlib; from rooflang.eqsat import saturate; from rooflang.ir.blocks import split_blocks;"
        "from rooflang.models import Workload, load;"
        "g = load('deepseek-v4-pro').build(Workload(stage='decode', context=65536, batch=512));"
        "b = saturate(split_blocks(g).kinds[1], 1);"
        "answer = repr((b.modes, b.transfers, b.holds, b.arrivals, b.exits, b.aliases));"
        "print(hashlib.sha256(answer.encode()).hexdigest())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] != ""


def test_saturating_is_the_first_to_import_egglog() -> None:
    code = "import sys, rooflang.eqsat; print([m for m in ('egglog', 'numpy', 'networkx') if m in sys.modules])"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"
