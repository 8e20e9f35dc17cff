"""Top-k and sampling: what may be chosen, and how often it is."""

from __future__ import annotations

import numpy as np
import pytest

from rooflang.errors import GraphError
from rooflang.ir import GraphBuilder
from rooflang.ir.op import signature
from rooflang.ir.reference import reference
from rooflang.ir.reference.base import Array
from rooflang.rules import rule
from rooflang.rules.record import Refusal

LOGITS = np.log([0.5, 0.05, 0.3, 0.15])


def sample(requests: int, **attrs: object) -> Array:
    """Ids that so many requests with the same logits draw."""
    g = GraphBuilder("g", b=requests, v=4)
    (op,) = g.build(g.op("y", "sample", [g.input("x", "b v"), g.input("k", "b", "int32")], "b", "int32", **attrs)).ops
    keys = np.arange(requests) * 7919 + 1
    return reference("sample").full(op, {"b": requests, "v": 4}, np.tile(LOGITS, (requests, 1)), keys)


@pytest.mark.parametrize(
    ("attrs", "shares"),
    [
        ({}, [0.5, 0.05, 0.3, 0.15]),
        ({"top_k": 2}, [0.625, 0, 0.375, 0]),
        ({"top_p": 0.6}, [0.625, 0, 0.375, 0]),
        ({"top_p": 0.5}, [1, 0, 0, 0]),
        ({"top_k": 3, "top_p": 0.8}, [0.625, 0, 0.375, 0]),
        ({"temperature": 0.5}, [0.25 / 0.365, 0.0025 / 0.365, 0.09 / 0.365, 0.0225 / 0.365]),
        ({"top_k": 1}, [1, 0, 0, 0]),
    ],
)
def test_ids_are_drawn_as_often_as_their_probabilities_say(attrs: dict[str, object], shares: list[float]) -> None:
    found = np.bincount(sample(4000, **attrs), minlength=4) / 4000
    assert found == pytest.approx(shares, abs=0.025)
    assert [f == 0 for f in found] == [s == 0 for s in shares]


def test_top_k_is_in_the_order_of_logits_then_of_ids() -> None:
    g = GraphBuilder("g", b=1, v=5, k=3)
    (op,) = g.build(g.op("y", "top_k", [g.input("x", "b v")], "b k", "int32")).ops
    found = reference("top_k").full(op, {"b": 1, "v": 5, "k": 3}, np.array([[1.0, 3.0, 0.0, 3.0, 2.0]]))
    assert found.tolist() == [[1, 3, 4]]
    short = reference("top_k").full(op, {"b": 1, "v": 2, "k": 3}, np.array([[1.0, 3.0]]))
    assert short.tolist() == [[1, 0, -1]]


def test_a_nucleus_of_the_whole_vocabulary_is_not_cut() -> None:
    g = GraphBuilder("g", b=1, v=5)
    x, keys = g.input("x", "b v"), g.input("k", "b", "int32")
    whole = g.build(g.op("y", "sample", [x, keys], "b", "int32", top_p=0.9)).ops[0]
    some = g.build(g.op("z", "sample", [x, keys], "b", "int32", top_p=0.9, top_k=20)).op_by_name["z"]
    verdict = rule("split_kernel").check(whole, "v")
    assert isinstance(verdict, Refusal)
    assert verdict.code == "unsound-cut"
    (fold,) = (cut for cut in signature(some) if cut.dim == "v")
    assert (fold.combine, fold.partial_scale) == ("topk", 40)


@pytest.mark.parametrize("attrs", [{"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.5}, {"temperature": 0.0}])
def test_what_cannot_be_drawn_by(attrs: dict[str, object]) -> None:
    with pytest.raises(GraphError, match=next(iter(attrs))):
        sample(1, **attrs)


def test_ids_have_a_dim_of_their_own() -> None:
    g = GraphBuilder("g", b=1, v=5)
    with pytest.raises(GraphError, match="counts the ids"):
        g.build(g.op("y", "top_k", [g.input("x", "b v")], "b v", "int32"))
