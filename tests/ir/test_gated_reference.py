"""Biases, factors and gates against their formulas."""

from __future__ import annotations

from math import exp, tanh

import numpy as np
import pytest

from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir import GraphBuilder
from rooflang.ir.op import op_kind
from rooflang.ir.reference import reference
from rooflang.ir.reference.base import Array
from rooflang.rules import rule
from rooflang.rules.record import Refusal
from rooflang.soundness.cases import example, the_op


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


def run(kind: str, operands: list[tuple[str, Array]], out: str, **attrs: object) -> Array:
    """The operator on arrays, each given with its dims."""
    sizes = {d: n for dims, a in operands for d, n in zip(dims.split(), a.shape, strict=True)}
    g = GraphBuilder("g", **sizes)
    y = g.op("y", kind, [g.input(f"x{n}", dims) for n, (dims, _) in enumerate(operands)], out, **attrs)
    (op,) = g.build(y).ops
    return reference(kind).full(op, sizes, *(a for _, a in operands))


def test_a_bias_is_the_same_for_every_row() -> None:
    x, b = np.arange(6.0).reshape(2, 3), np.array([10.0, 20.0, 30.0])
    assert np.array_equal(run("bias", [("b h", x), ("h", b)], "h b"), (x + b).T)


def test_a_factor() -> None:
    x = np.arange(4.0)
    assert np.array_equal(run("scale", [("b", x)], "b", factor=0.5), x / 2)
    assert np.array_equal(run("scale", [("b", x)], "b"), x)


def test_one_gate_for_a_row() -> None:
    x, gate = np.ones((2, 3)), np.array([0.0, 4.0])
    assert run("sigmoid_mul", [("b h", x), ("b", gate)], "b h")[1] == pytest.approx([sigmoid(4)] * 3)


@pytest.mark.parametrize(
    ("function", "formula"),
    [
        ("silu", lambda g: g * sigmoid(g)),
        ("relu", lambda g: max(g, 0)),
        ("relu2", lambda g: max(g, 0) ** 2),
        ("sigmoid", sigmoid),
        ("tanh", tanh),
    ],
)
def test_the_gate_is_activated_and_up_is_not(function: str, formula: object) -> None:
    gate, up = np.linspace(-3, 3, 7), np.linspace(2, -4, 7)
    found = run("gated_activation", [("b", gate), ("b", up)], "b", function=function)
    assert found == pytest.approx([formula(g) * u for g, u in zip(gate, up)])  # type: ignore[operator]


def test_the_gate_of_gpt_oss_is_clamped_and_up_is_shifted() -> None:
    gate, up = np.array([-9.0, 0.5, 9.0]), np.array([-9.0, 0.5, 9.0])
    found = run("gated_activation", [("b", gate), ("b", up)], "b", function="swiglu_oai")
    wanted = [g * sigmoid(1.702 * g) * (u + 1) for g, u in ((-9, -7), (0.5, 0.5), (7, 7))]
    assert found == pytest.approx(wanted)


def test_a_gated_product_is_two_products_a_bias_each_and_the_gate() -> None:
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 2, 4)), rng.normal(size=(2, 4))
    fused = run("gated_matmul", [("b k", x), ("k gate n", w), ("gate n", b)], "b n", function="swiglu_oai")
    gate, up = (x @ w[:, half] + b[half] for half in (0, 1))
    apart = run("gated_activation", [("b n", gate), ("b n", up)], "b n", function="swiglu_oai")
    assert fused == pytest.approx(apart)
    bare = run("gated_matmul", [("b k", x), ("k gate n", w)], "b n")
    assert bare == pytest.approx(run("gated_activation", [("b n", x @ w[:, 0]), ("b n", x @ w[:, 1])], "b n"))


def test_squashed_logits() -> None:
    x = np.array([-100.0, 1.0, 100.0])
    assert run("activation", [("b", x)], "b", function="soft_cap", cap=30.0) == pytest.approx(30 * np.tanh(x / 30))


def test_what_does_not_fit() -> None:
    x = np.zeros((2, 3))
    with pytest.raises(GraphError, match="some of b h"):
        run("bias", [("b h", x), ("n", np.zeros(3))], "b h")
    with pytest.raises(GraphError, match="some of b h"):
        run("sigmoid_mul", [("b h", x), ("n", np.zeros(3))], "b h")
    with pytest.raises(UnknownNameError, match="swish"):
        run("gated_activation", [("b h", x), ("b h", x)], "b h", function="swish")
    with pytest.raises(UnknownNameError, match="swish"):
        run("gated_matmul", [("b k", x), ("k gate n", np.zeros((3, 2, 4)))], "b n", function="swish")
    with pytest.raises(GraphError, match="gate and rows"):
        run("gated_matmul", [("b k", x), ("k gate n", np.zeros((3, 2, 4))), ("n", np.zeros(4))], "b n")
    with pytest.raises(GraphError, match="cap=0"):
        run("activation", [("b h", x)], "b h", function="soft_cap", cap=0)


@pytest.mark.parametrize("name", ["bias", "gated_activation"])
def test_summands_are_refused(name: str) -> None:
    verdict = rule("split_kernel").check(the_op(example(name)), "partial", partials={"y0": frozenset({"sum"})})
    assert isinstance(verdict, Refusal)
    assert verdict.code == "unsound-cut"


def test_flops_of_a_biased_product_count_the_biases() -> None:
    sizes = {"b": 5, "e": 1, "k": 3, "gate": 2, "n": 7}
    op = the_op(example("gated_biased"))
    (flops,) = op_kind(op.kind).flops(op, sizes, sizes).values()
    assert flops == 2 * (5 * 3 * 2 * 7) + 5 * 2 * 7
