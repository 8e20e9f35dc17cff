"""Weights of the chosen experts against their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir import GraphBuilder
from rooflang.ir.op import signature
from rooflang.ir.reference import reference
from rooflang.ir.reference.base import Array

LOGITS = np.array([[0.1, 2.0, -1.0, 1.0], [3.0, 0.0, 3.0, -2.0]])


def route(bias: Array | None = None, **attrs: object) -> Array:
    g = GraphBuilder("g", b=2, expert=4)
    operands = [g.input("x", "b expert"), *([g.weight("w", "expert")] if bias is not None else [])]
    (op,) = g.build(g.op("y", "route", operands, "b expert", top_k=2, **attrs)).ops
    return reference("route").full(op, {"b": 2, "expert": 4}, LOGITS, *([bias] if bias is not None else []))


def weights(scores: Array, chosen: list[list[int]], *, renormalise: bool) -> Array:
    out = np.zeros_like(scores)
    for row, experts in enumerate(chosen):
        picked = scores[row, experts]
        out[row, experts] = picked / picked.sum() if renormalise else picked
    return out


SOFTMAX = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
SIGMOID = 1 / (1 + np.exp(-LOGITS))
BEST = [[1, 3], [0, 2]]


def test_softmax_over_the_chosen_is_the_renormalised_softmax_over_all() -> None:
    wanted = weights(SOFTMAX, BEST, renormalise=True)
    assert route() == pytest.approx(wanted)
    assert route(scores="softmax", renormalise=True) == pytest.approx(wanted)


@pytest.mark.parametrize(("name", "scores"), [("softmax", SOFTMAX), ("sigmoid", SIGMOID)])
@pytest.mark.parametrize("renormalise", [False, True])
def test_other_scores(name: str, scores: Array, renormalise: bool) -> None:
    wanted = weights(scores, BEST, renormalise=renormalise)
    assert route(scores=name, renormalise=renormalise) == pytest.approx(wanted)


def test_a_bias_decides_the_choice_and_not_the_weight() -> None:
    bias = np.array([0.0, -9.0, 5.0, 0.0])
    found = route(bias, scores="sigmoid", renormalise=True)
    assert found == pytest.approx(weights(SIGMOID, [[2, 3], [2, 0]], renormalise=True))


def test_what_travels_between_shards_of_the_experts() -> None:
    def stat(**attrs: object) -> float:
        g = GraphBuilder("g", b=2, expert=4)
        operands = [g.input("x", "b expert"), *([g.weight("w", "expert")] if attrs.pop("bias", False) else [])]
        (op,) = g.build(g.op("y", "route", operands, "b expert", top_k=3, **attrs)).ops
        return next(c for c in signature(op) if c.dim == "expert").stat_bytes

    assert stat() == 3 * 8
    assert stat(scores="softmax") == 3 * 8 + 8
    assert stat(scores="sigmoid", bias=True) == 3 * 12


def test_what_does_not_fit() -> None:
    with pytest.raises(UnknownNameError, match="linear"):
        route(scores="linear")
    with pytest.raises(GraphError, match="share of them"):
        route(np.zeros(4), scores="softmax")
