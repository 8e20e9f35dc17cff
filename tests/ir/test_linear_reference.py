"""Linear attention and the delta rule with one decay a head, against plain loops."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir import GraphBuilder
from rooflang.ir.graph import Graph
from rooflang.ir.op import op_kind, signature
from rooflang.ir.reference import reference
from rooflang.ir.reference.base import Array
from rooflang.soundness.cases import example, the_op

T, K, V = 5, 3, 2
RNG = np.random.default_rng(0)
Q, KEYS, VALUES = RNG.normal(size=(1, T, 1, K)), RNG.normal(size=(1, T, 1, K)), RNG.normal(size=(1, T, 1, V))


def run(name: str, *operands: Array) -> Array:
    op = the_op(example(name))
    sizes = {d: n for t, a in zip(op.operands, operands, strict=True) for d, n in zip(t.dims, a.shape, strict=True)}
    return reference(op.kind).full(op, sizes, *operands)


def test_linear_attention_is_a_decayed_sum_of_products() -> None:
    slope = np.array([0.3])
    out = run("linear_scan", Q, KEYS, VALUES, slope)
    last = run("linear_final", KEYS, VALUES, slope)
    state = np.zeros((K, V))
    for t in range(T):
        state = exp(-0.3) * state + np.outer(KEYS[0, t, 0], VALUES[0, t, 0])
        assert out[0, t, 0] == pytest.approx(Q[0, t, 0] @ state)
    assert last[0, 0] == pytest.approx(state)
    before = run("linear_final", KEYS[:, :-1], VALUES[:, :-1], slope)
    after = run("linear_update", KEYS[:, -1], VALUES[:, -1], slope, before)
    assert after == pytest.approx(last)
    assert run("linear_read", Q[:, -1], after) == pytest.approx(out[:, -1])


def test_the_delta_rule_with_one_decay_a_head() -> None:
    a, b = RNG.normal(size=(1, T, 1)), RNG.normal(size=(1, T, 1))
    rate, shift = np.array([0.2]), np.array([-0.4])
    out = run("delta_scan_by_head", Q, KEYS, VALUES, a, b, rate, shift)
    state = np.zeros((K, V))
    for t in range(T):
        key, query = (x[0, t, 0] / np.linalg.norm(x[0, t, 0]) for x in (KEYS, Q))
        alpha = exp(-exp(0.2) * log(1 + exp(a[0, t, 0] - 0.4)))
        beta = 1 / (1 + exp(-b[0, t, 0]))
        state = alpha * state
        state = state + beta * np.outer(key, VALUES[0, t, 0] - key @ state)
        assert out[0, t, 0] == pytest.approx(query / K**0.5 @ state, abs=1e-5)
    last = run("delta_final_by_head", KEYS, VALUES, a, b, rate, shift)
    assert last[0, 0] == pytest.approx(state, abs=1e-5)
    first = run("delta_update_by_head", KEYS[:, 0], VALUES[:, 0], a[:, 0], b[:, 0], rate, shift, np.zeros((1, 1, K, V)))
    assert first == pytest.approx(run("delta_final_by_head", *(x[:, :1] for x in (KEYS, VALUES, a, b)), rate, shift))


def scan(**attrs: object) -> Graph:
    g = GraphBuilder("g", b=2, seq=8, h=2, k=4, v=6)
    rows = [g.input("q", "b seq h k"), g.input("k", "b seq h k"), g.input("v", "b seq h v")]
    return g.build(g.op("y", "linear_scan", [*rows, g.weight("s", "h")], "b seq h v", **attrs))


def test_a_share_of_a_sequence_corrects_its_outputs() -> None:
    op, full = scan().ops[0], {"b": 2, "seq": 8, "h": 2, "k": 4, "v": 6}
    kind, local = op_kind("linear_scan"), {**full, "seq": 4}
    whole, share = (sum(kind.flops(op, each, full).values()) for each in (full, local))
    assert whole == 2 * 8 * 2 * (2 * 256 * 10 + 4 * 24)
    assert share == 2 * 4 * 2 * (2 * 256 * 10 + 6 * 24)
    assert [kind.read_fraction(op, 0, each, full, None) for each in (full, local)] == [1, 2]  # type: ignore[arg-type]
    assert [kind.write_fraction(op, each, full) for each in (full, local)] == [1, 3]


def test_states_may_be_cut_by_key_and_by_value() -> None:
    dims = {cut.dim for cut in signature(the_op(example("linear_update")))}
    assert dims == {"b", "h", "k", "v", "replica"}
    assert {cut.dim for cut in signature(the_op(example("linear_read")))} == {"b", "h", "v", "k"}


def test_a_fused_reader_finds_the_state_on_chip() -> None:
    g = GraphBuilder("g", b=1, h=1, k=2, v=2)
    op = g.build(g.op("y", "linear_read", [g.input("q", "b h k"), g.input("s", "b h k v")], "b h v", fused=True)).ops[0]
    assert op_kind(op.kind).read_fraction(op, 1, {}, {}, None) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "operands", "out"),
    [
        ("linear_read", ["b h k", "b h v k"], "b h v"),
        ("linear_read", ["b h k", "b h k k"], "b h k"),
        ("linear_update", ["b h k", "b h v", "b", "b h k v"], "b h k v"),
        ("linear_scan", ["b t h k", "b t h v", "b t h v", "h"], "b t h v"),
        ("linear_final", ["b t h k", "b t h v", "h"], "b h v k"),
        ("linear_final", ["b t h k", "b t h k", "h"], "b h k k"),
    ],
)
def test_dims_that_do_not_fit(kind: str, operands: list[str], out: str) -> None:
    g = GraphBuilder("g", b=2, t=2, h=2, k=2, v=2)
    with pytest.raises(GraphError):
        g.build(g.op("y", kind, [g.input(f"x{n}", dims) for n, dims in enumerate(operands)], out))


def test_decays_have_a_known_gate() -> None:
    g = GraphBuilder("g", b=2, h=2, k=2, v=2)
    rows = [g.input("k", "b h k"), g.input("v", "b h v"), g.input("a", "b h"), g.input("b", "b h")]
    leaves = [g.weight("r", "h"), g.weight("s", "h"), g.state("state", "b h k v")]
    with pytest.raises(UnknownNameError, match="gate"):
        g.build(g.op("y", "delta_update", [*rows, *leaves], "b h k v", gate="linear"))
