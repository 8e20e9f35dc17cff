"""Modes and transfers: their specs, their derivations, and which changes of spec are a collective."""

from __future__ import annotations

import pytest

from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, CutKind
from rooflang.ir.layout import PRIMITIVE_OF, collective_of, make_mode, make_transfer
from rooflang.ir.op import Op, signature

from .cases import CASES, the_op


def cut_of(op: Op, dim: str, kind: CutKind) -> int:
    return next(i for i, cut in enumerate(signature(op)) if cut.dim == dim and cut.kind is kind)


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("R", "R", ""), ("R", "b", "slice"), ("R", "O", "slice"), ("R", "P", ""),
        ("b", "R", "all_gather"), ("b", "h", "all_to_all"), ("b", "P", ""), ("b", "O", ""),
        ("P", "R", "all_reduce"), ("P", "b", "reduce_scatter"), ("P", "O", ""),
        ("O", "R", "broadcast"), ("O", "b", ""), ("O", "P", ""),
    ],
)  # fmt: skip
def test_collectives(before: str, after: str, name: str) -> None:
    assert collective_of(before, after) == name


def test_every_collective_comes_from_a_primitive() -> None:
    states = [REPLICATED, PARTIAL, OWNER, "a", "b"]
    assert {collective_of(a, b) for a in states for b in states} - {""} == set(PRIMITIVE_OF)


def test_a_joint_transfer_has_a_step_per_axis() -> None:
    transfer = make_transfer("x", ("P", "a", "P"), ("b", "a", "b"))
    assert transfer.collective == "reduce_scatter"
    assert transfer.axes == (0, 2)
    assert [(s.primitive, s.dim, s.axis) for s in transfer.derivation] == [
        ("merge_reduce_scatter", "P→b", 0),
        ("merge_reduce_scatter", "P→b", 2),
    ]
    assert not transfer.free
    assert make_transfer("x", ("R",), ("b",)).free


@pytest.mark.parametrize(("before", "after"), [("R", "R"), ("R", "P"), (("P", "a"), ("R", "R"))])
def test_no_single_collective_is_refused(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="x: "):
        make_transfer("x", tuple(before), tuple(after))


def test_a_mode_and_where_it_comes_from() -> None:
    op = the_op(CASES["matmul"]())
    rows = signature(op)
    mode = make_mode(op, [rows[cut_of(op, "k", CutKind.SUM)], REPLICATED, rows[cut_of(op, "n", CutKind.PAR)], OWNER])
    assert mode.operands == (("k", "R", "R", "O"), ("k", "R", "n", "O"))
    assert mode.out == ("P", "R", "n", "O")
    assert [(s.primitive, s.dim, s.axis) for s in mode.derivation] == [
        ("split_kernel", "k", 0), ("dup_kernel", "", 1), ("split_kernel", "n", 2), ("dedup_kernel", "", 3),
    ]  # fmt: skip
    assert mode.covers == ("y",)
    assert [mode.cut(axis) is not None for axis in range(4)] == [True, False, True, False]


def test_a_routed_mode_is_a_split_and_a_fusion() -> None:
    op = the_op(CASES["dispatch"]())
    mode = make_mode(op, [signature(op)[cut_of(op, "b", CutKind.ROUTE)]])
    assert mode.out == ("expert",)
    assert [(s.primitive, s.dim) for s in mode.derivation] == [("split_kernel", "b"), ("fuse_kernels", "b→expert")]


def test_a_fused_mode_says_what_it_covers() -> None:
    op = the_op(CASES["matmul_add"]())
    mode = make_mode(op, [REPLICATED], covers=("x", "y"))
    assert mode.derivation[0].primitive == "fuse_kernels"
    assert mode.derivation[0].target == "x+y"
    assert mode.derivation[0].dim == "matmul_add"


def test_a_mode_under_the_names_of_another_block() -> None:
    op = the_op(CASES["matmul"]())
    mode = make_mode(op, [REPLICATED])
    other = mode.renamed({"y": "layers.1.y", "y1": "layers.1.y1"})
    assert [t.name for t in (*other.op.operands, other.op.output)] == ["y0", "layers.1.y1", "layers.1.y"]
    assert other.covers == ("layers.1.y",)
    assert (other.operands, other.out, other.choices) == (mode.operands, mode.out, mode.choices)
