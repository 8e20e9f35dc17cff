"""Paths between specs: what moves, in which order, and where there is no way."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import PlacementError
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Cut, Spec
from rooflang.ir.layout import collective_of, make_mode
from rooflang.ir.op import Op, signature
from rooflang.place.connect import connect, path

from .graphs import decode, mlp

R, P, O = REPLICATED, PARTIAL, OWNER  # noqa: E741
STATES = (R, P, O, "a", "b")
#: From what makes a value smaller to what makes it larger.
ORDER = ("slice", "reduce_scatter", "all_to_all", "all_reduce", "all_gather", "broadcast")


def steps(before: Spec, after: Spec) -> list[tuple[str, tuple[int, ...]]]:
    return [(step.collective, step.axes) for step in path("x", before, after)]


def test_equal_specs_need_no_path() -> None:
    assert path("x", (R, "a"), (R, "a")) == ()


def test_what_makes_a_value_smaller_comes_first() -> None:
    assert steps((R, P, "a"), ("a", R, R)) == [("slice", (0,)), ("all_reduce", (1,)), ("all_gather", (2,))]
    assert steps(("a", P, "b"), (R, "b", "a")) == [
        ("reduce_scatter", (1,)),
        ("all_to_all", (2,)),
        ("all_gather", (0,)),
    ]
    assert steps((O, P), (R, R)) == [("all_reduce", (1,)), ("broadcast", (0,))]


def test_axes_that_change_alike_move_together() -> None:
    assert steps(("a", "a"), (R, R)) == [("all_gather", (0, 1))]
    assert steps(("a", R, "a"), (R, R, R)) == [("all_gather", (0, 2))]
    assert steps((P, P), ("a", "a")) == [("reduce_scatter", (0, 1))]
    # Not alike: other labels, or another aim.
    assert steps(("a", "b"), (R, R)) == [("all_gather", (0,)), ("all_gather", (1,))]
    assert steps((P, P), ("a", R)) == [("reduce_scatter", (0,)), ("all_reduce", (1,))]


@pytest.mark.parametrize(("before", "after"), [(R, P), ("a", P), (O, "a"), (O, P), ("a", O), (P, O)])
def test_there_is_no_way_to_a_partial_value_nor_from_one_owner_to_shares(before: str, after: str) -> None:
    with pytest.raises(PlacementError, match=rf"x cannot go from a,{before} to R,{after}"):
        path("x", ("a", before), (R, after))


@given(pairs=st.lists(st.tuples(st.sampled_from(STATES), st.sampled_from(STATES)), max_size=4))
def test_a_path_leads_where_it_should_in_order(pairs: list[tuple[str, str]]) -> None:
    before, after = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    if any(a != b and not collective_of(a, b) for a, b in pairs):
        with pytest.raises(PlacementError):
            path("x", before, after)
        return
    now, moved, names = before, [], []
    for step in path("x", before, after):
        assert step.before == now and step.tensor == "x"
        assert {collective_of(now[axis], step.after[axis]) for axis in step.axes} == {step.collective}
        moved += step.axes
        names.append(step.collective)
        now = step.after
    assert now == after
    assert sorted(moved) == [axis for axis, (a, b) in enumerate(pairs) if a != b]
    assert names == sorted(names, key=ORDER.index)
    changes = {(a, b) for a, b in pairs if a != b}
    assert len(names) == len(changes)


def test_every_collective_has_a_place_in_the_order() -> None:
    assert {collective_of(a, b) for a, b in product(STATES, STATES)} - {""} == set(ORDER)


def test_a_block_is_completed_with_paths() -> None:
    """Tensor parallelism in four cuts: what enters is gathered once, partial sums are scattered once."""
    kind = split_blocks(mlp(2)).by_name["layers.0"]
    dims = ("batch", "ffn", "ffn", "ffn", "batch")
    modes = {op.output.name: make_mode(op, [_row(op, dim)]) for op, dim in zip(kind.ops, dims, strict=True)}
    plan = connect(kind, modes, {t.name: ("batch",) for t in (*kind.inputs, *kind.outputs)})
    assert {key: [step.collective for step in steps] for key, steps in plan.paths.items()} == {
        ("up0", 0): ["all_gather"],
        ("add0", 1): ["reduce_scatter"],
    }
    assert plan.exits == {}


def test_a_block_whose_ports_lie_as_its_operators_want_needs_no_path() -> None:
    graph = mlp(2)
    kind = split_blocks(graph).by_name["layers.0"]
    modes = {op.output.name: make_mode(op, [_row(op, "batch")]) for op in kind.ops}
    ports = {t.name: ("batch",) for t in (*kind.inputs, *kind.outputs)}
    plan = connect(kind, modes, ports)
    assert (dict(plan.paths), dict(plan.exits)) == ({}, {})
    assert plan.modes == modes
    whole = connect(kind, modes, dict.fromkeys(ports, (R,)))
    assert {key: [s.collective for s in steps] for key, steps in whole.paths.items()} == {
        ("norm0", 0): ["slice"],
        ("add0", 0): ["slice"],
    }
    assert {name: [s.collective for s in steps] for name, steps in whole.exits.items()} == {"add0": ["all_gather"]}


def _row(op: Op, dim: str) -> Cut:
    return next(cut for cut in signature(op) if cut.dim == dim)


def test_a_cache_is_read_where_it_was_written() -> None:
    kind = split_blocks(decode(1)).kinds[0]
    ops = {op.name: op for op in kind.ops}
    modes = {op.output.name: make_mode(op, [_row(op, "batch")]) for op in kind.ops}
    ports = {t.name: ("batch",) for t in (*kind.inputs, *kind.outputs)}
    assert connect(kind, modes, ports).paths == {}
    modes["after0"] = make_mode(ops["after0"], [_row(ops["after0"], "ctx")])
    with pytest.raises(PlacementError, match="attend0 reads the kv_cache after0 in another spec"):
        connect(kind, modes, ports)
