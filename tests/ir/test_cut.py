"""Cuts: which are exact, and how specs read."""

from __future__ import annotations

import pytest

from rooflang.ir.cut import Cut, CutKind, show_spec
from rooflang.ir.op import op_kinds, signature
from rooflang.ir.reference import references

from .cases import CASES, the_op


@pytest.mark.parametrize("kind", list(CutKind))
def test_only_cuts_that_keep_every_operation_are_exact(kind: CutKind) -> None:
    cut = Cut(kind=kind, dim="b", operands=("b",), out="b")
    assert cut.exact == (kind in (CutKind.PAR, CutKind.ROUTE))


def test_specs_as_text() -> None:
    assert show_spec(("batch", "R")) == "batch,R"
    assert show_spec(()) == "-"


@pytest.mark.parametrize("name", CASES)
def test_rows_mention_labels_that_exist(name: str) -> None:
    op = the_op(CASES[name]())
    for cut in signature(op):
        assert len(cut.operands) == len(op.operands)
        for tensor, entry in zip((*op.operands, op.output), (*cut.operands, cut.out)):
            assert entry in ("R", "P") or entry in tensor.dims
        assert set(cut.loops) <= set(op.labels)
        assert set(cut.stat_rows) <= set(op.labels)


def test_what_writes_a_cache_or_state_may_not_be_duplicated() -> None:
    writers = {name: kind.in_place for name, kind in op_kinds().items() if not kind.pure}
    assert writers == {"kv_append": 1, "conv_push": 1, "delta_update": 6, "linear_update": 3, "stateful_sample": None}


def test_every_kind_has_a_reference_and_a_case() -> None:
    assert set(references()) == set(op_kinds())
    assert {the_op(build()).kind for build in CASES.values()} == set(op_kinds())


@pytest.mark.parametrize("name", CASES)
def test_rows_of_a_signature_are_told_apart_by_their_dim(name: str) -> None:
    """A step of a derivation names a row by its dim, and a routed one by where it leads."""
    cuts = signature(the_op(CASES[name]()))
    named = [(cut.dim, cut.kind is CutKind.ROUTE, cut.out if cut.kind is CutKind.ROUTE else "") for cut in cuts]
    assert len(set(named)) == len(named)
