"""Every cut of every kind computes what the unsharded operator computes, on any number of ranks, however uneven."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, STATES, CutKind
from rooflang.ir.layout import Choice, collective_of, make_mode, make_transfer
from rooflang.ir.lifted import apply_transfer, assemble, run_mode
from rooflang.ir.op import op_kinds, signature
from rooflang.ir.reference import references

from .cases import CASES, arrays, expected, extents, laid, random_digits, same, the_op

ROWS = [
    pytest.param(name, row, id=f"{name}-{cut.kind}-{cut.dim}-{','.join(cut.operands)}→{cut.out}")
    for name, build in CASES.items()
    for row, cut in enumerate(signature(the_op(build())))
]

SEEDS = st.integers(0, 2**32 - 1)


def test_every_kind_has_a_reference_and_a_case() -> None:
    assert set(references()) == set(op_kinds())
    assert {the_op(build()).kind for build in CASES.values()} == set(op_kinds())


@pytest.mark.parametrize(("name", "row"), ROWS)
@settings(max_examples=30)
@given(seed=SEEDS, ranks=st.integers(1, 4), least=st.integers(1, 2), ties=st.booleans())
def test_one_axis(name: str, row: int, seed: int, ranks: int, least: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    graph = extents(CASES[name](), rng, least=least)
    op, leaves = the_op(graph), arrays(graph, rng, ties=ties)
    digits = random_digits(graph, (ranks,), rng)
    mode = make_mode(op, [signature(op)[row]])
    operands = [laid(t, leaves[t.name], s, digits, rng) for t, s in zip(op.operands, mode.operands)]
    value = run_mode(mode, operands, digits)
    assert value.spec == mode.out
    assert same(assemble(value, digits), expected(graph, leaves))


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=60)
@given(seed=SEEDS, axes=st.tuples(st.integers(1, 3), st.integers(1, 3)), ties=st.booleans())
def test_two_axes_and_the_way_on(name: str, seed: int, axes: tuple[int, int], ties: bool) -> None:
    """Any two rows of the signature together, on one dim or on two, and any transfers after that."""
    rng = np.random.default_rng(seed)
    graph = extents(CASES[name](), rng, least=int(rng.integers(1, 3)), most=4)
    op, leaves = the_op(graph), arrays(graph, rng, ties=ties)
    digits = random_digits(graph, axes, rng)
    choices: list[Choice] = [*signature(op), *signature(op), REPLICATED, OWNER]
    mode = make_mode(op, [choices[i] for i in rng.integers(0, len(choices), 2)])
    operands = [laid(t, leaves[t.name], s, digits, rng) for t, s in zip(op.operands, mode.operands)]
    value = run_mode(mode, operands, digits)
    wanted = expected(graph, leaves)
    assert same(assemble(value, digits), wanted)
    for _ in range(3):
        axis = int(rng.integers(2))
        states = [s for s in (REPLICATED, OWNER, *op.output.dims) if collective_of(value.spec[axis], s)]
        if value.fold is not None and PARTIAL in (*value.spec[:axis], *value.spec[axis + 1 :]):
            # Candidates that are not complete yet cannot be cut along their own dim.
            states = [s for s in states if s in STATES or all(s in p.ids for p in value.pieces.values())]
        after = list(value.spec)
        if not states:
            continue
        after[axis] = states[int(rng.integers(len(states)))]
        value = apply_transfer(value, make_transfer(op.output.name, value.spec, tuple(after)), digits)
        assert value.spec == tuple(after)
        assert same(assemble(value, digits), wanted)


@pytest.mark.parametrize("name", CASES)
def test_rows_of_a_signature_are_told_apart_by_their_dim(name: str) -> None:
    """A step of a derivation names a row by its dim, and a routed one by where it leads."""
    cuts = signature(the_op(CASES[name]()))
    named = [(cut.dim, cut.kind is CutKind.ROUTE, cut.out if cut.kind is CutKind.ROUTE else "") for cut in cuts]
    assert len(set(named)) == len(named)
