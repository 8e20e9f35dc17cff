"""The numbering of a block, and what it says about partial and movable values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import GraphError, ValueRangeError
from rooflang.ir import GraphBuilder, Spec, signature
from rooflang.ir.blocks import split_blocks
from rooflang.rules.examples import attention_then_add, decode_step, mlp
from rooflang.rules.theory import MAX_AXES, Theory, partial_combines

from .saturations import moe

(MLP,) = split_blocks(mlp()).kinds
(DECODE,) = split_blocks(decode_step()).kinds
ENTRIES = ("R", "P", "O", "batch", "hidden", "ffn")


@given(st.lists(st.sampled_from(ENTRIES), min_size=MAX_AXES, max_size=MAX_AXES).map(tuple))
def test_a_spec_is_a_number_of_63_bits(spec: Spec) -> None:
    theory = Theory.of(MLP, MAX_AXES)
    code = theory.encode(spec)
    assert 0 <= code < 2**63
    assert theory.decode(code) == spec


def test_limits() -> None:
    with pytest.raises(ValueRangeError):
        Theory.of(MLP, MAX_AXES + 1)
    wide = GraphBuilder("wide", **{f"d{n}": 2 for n in range(62)})
    dims = " ".join(f"d{n}" for n in range(62))
    graph = wide.build(wide.op("y", "activation", [wide.input("x", dims)], dims))
    with pytest.raises(GraphError, match="62 dim labels"):
        Theory.of(split_blocks(graph).kinds[0], 1)


def test_tensors_are_numbered_leaves_first() -> None:
    theory = Theory.of(MLP, 1)
    assert [tensor.name for tensor in theory.tensors] == ["x", "w_up", "w_down", "norm", "up", "down", "y"]
    assert [op.name for op in theory.kernels] == ["norm", "up", "down", "y", "norm+up", "down+y"]
    assert [op.name for op in Theory.of(MLP, 1, fused=False).kernels] == ["norm", "up", "down", "y"]


def test_partial_values_are_known_by_their_combine() -> None:
    assert partial_combines(mlp().ops) == {
        "norm": frozenset(),
        "up": {"sum"},
        "down": {"sum"},
        "y": frozenset(),  # x is no sum
    }
    assert partial_combines(attention_then_add().ops) == {"attend": {"lse"}, "y": frozenset()}
    assert partial_combines(moe().ops)["combine"] == {"sum"}


def test_caches_and_their_copies_do_not_move() -> None:
    theory = Theory.of(DECODE, 1)
    movable = {tensor.name for tensor in theory.tensors if theory.movable(tensor)}
    assert movable == {"attend", "copy"}


def test_of_rows_with_equal_specs_the_first_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    up = mlp().op_by_name["up"]
    batch, ffn, hidden = signature(up)
    rows = {up: (batch, replace(ffn, operands=batch.operands, out=batch.out), ffn, hidden, ffn)}
    monkeypatch.setattr("rooflang.rules.theory.signature", lambda op: rows.get(op, ()))
    assert Theory.of(MLP, 1, fused=False).rows(up) == ((0, batch), (2, ffn), (3, hidden))
