"""RoPE of a part of the dim."""

from __future__ import annotations

import numpy as np
import pytest

from rooflang.errors import GraphError
from rooflang.ir import GraphBuilder
from rooflang.ir.reference import reference
from rooflang.ir.reference.base import Array


def rope(x: Array, at: Array, **attrs: object) -> Array:
    g = GraphBuilder("g", t=len(x), d=x.shape[1])
    y = g.op("y", "rope", [g.input("x", "t d"), g.input("at", "t", "int32")], "t d", **attrs)
    (op,) = g.build(y).ops
    return reference("rope").full(op, {"t": len(x), "d": x.shape[1]}, x, at)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("fraction", [0.25, 0.5, 1.0])
def test_the_first_elements_turn_among_themselves(interleaved: bool, fraction: float) -> None:
    x, at = np.random.default_rng(0).normal(size=(3, 16)), np.array([0, 5, 7])
    part = int(16 * fraction)
    found = rope(x, at, interleaved=interleaved, fraction=fraction)
    assert found[:, :part] == pytest.approx(rope(x[:, :part], at, interleaved=interleaved))
    assert np.array_equal(found[:, part:], x[:, part:])
    assert np.array_equal(found[0], x[0])


def test_a_fraction_is_one_of_the_whole() -> None:
    for fraction in (0.0, 1.5):
        with pytest.raises(GraphError, match="fraction"):
            rope(np.zeros((1, 4)), np.array([0]), fraction=fraction)
