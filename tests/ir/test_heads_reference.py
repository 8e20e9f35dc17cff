"""Groups repeated for their members, and two dims counted as one."""

from __future__ import annotations

import numpy as np
import pytest

from rooflang.errors import GraphError
from rooflang.ir import GraphBuilder
from rooflang.ir.reference import reference
from rooflang.ir.reference.base import Array


def run(kind: str, x: Array, dims: str, out: str, **sizes: int) -> Array:
    g = GraphBuilder("g", **dict(zip(dims.split(), x.shape, strict=True)), **sizes)
    (op,) = (graph := g.build(g.op("y", kind, [g.input("x", dims)], out))).ops
    return reference(kind).full(op, graph.sizes, x)


def test_members_read_their_groups_in_runs() -> None:
    x = np.array([[1.0, 2.0, 3.0]])
    assert run("repeat", x, "b kv", "b head", head=6).tolist() == [[1, 1, 2, 2, 3, 3]]
    assert run("repeat", x, "b kv", "head b", head=5)[:, 0].tolist() == [1, 1, 2, 2, 3]


def test_flatten_counts_row_by_row() -> None:
    x = np.arange(12.0).reshape(2, 2, 3)
    assert np.array_equal(run("flatten", x, "b o i", "b w", w=6), x.reshape(2, 6))
    assert np.array_equal(run("flatten", x, "o b i", "w b", w=6), x.transpose(0, 2, 1).reshape(6, 2))


def test_a_view_taken_back_is_what_it_was() -> None:
    x = np.arange(12.0).reshape(2, 6)
    parted = run("view", x, "b w", "b o i", o=2, i=3)
    assert np.array_equal(run("flatten", parted, "b o i", "b w", w=6), x)


@pytest.mark.parametrize(
    ("kind", "dims", "out", "sizes"),
    [
        ("repeat", "b kv", "b head", {"head": 1}),
        ("repeat", "b kv", "head", {"head": 4}),
        ("flatten", "b kv", "b head", {"head": 2}),
        ("flatten", "b kv", "head", {"head": 5}),
    ],
)
def test_what_does_not_fit(kind: str, dims: str, out: str, sizes: dict[str, int]) -> None:
    with pytest.raises(GraphError):
        run(kind, np.zeros((2, 2)), dims, out, **sizes)
