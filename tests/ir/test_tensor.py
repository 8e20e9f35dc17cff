"""Tensors and dtypes: elements, bytes, and the peak rate that an operator runs at."""

from __future__ import annotations

import numpy as np
import pytest

from rooflang.ir import DTYPES, Dim, GraphBuilder, Role, Tensor
from rooflang.ir.tensor import LEAF_ROLES, RESIDENT_ROLES


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("fp4", 0.5),
        ("mxfp4", 17 / 32),
        ("nvfp4", 9 / 16),
        ("mxfp8", 33 / 32),
        ("int4_g128", (128 * 4 + 16) / 8 / 128),
        ("int4_g64z", (64 * 4 + 16 + 4) / 8 / 64),
        ("int8", 1),
        ("fp8", 1),
        ("fp8_block", 1 + 128**-2),
        ("bf16", 2),
        ("fp32", 4),
        ("int32", 4),
    ],
)
def test_bytes_with_scales(dtype: str, size: float) -> None:
    tensor = Tensor(name="t", dims=("a", "b"), dtype=dtype)
    assert tensor.bytes({"a": 256, "b": 512}) == 256 * 512 * size


def test_fill_is_the_share_that_exists() -> None:
    rows = Tensor(name="t", dims=("token", "expert", "hidden"), dtype="bf16", fill=2 / 8)
    assert rows.elements({"token": 10, "expert": 8, "hidden": 4}) == 10 * 2 * 4


def test_sizes_may_be_arrays_over_batches() -> None:
    tensor = Tensor(name="t", dims=("batch", "h"), dtype="bf16")
    assert list(tensor.bytes({"batch": np.array([1, 2, 4]), "h": 8})) == [16, 32, 64]


def test_a_scalar_has_one_element() -> None:
    assert Tensor(name="t", dims=(), dtype="fp32").bytes({}) == 4


def test_roles() -> None:
    assert RESIDENT_ROLES < LEAF_ROLES
    assert Role.ACTIVATION not in LEAF_ROLES
    assert Dim(label="b", size=2).word == "b"
    assert Dim(label="b", size=2, meaning="requests").word == "requests"


def test_every_dtype_runs_at_a_known_rate() -> None:
    assert {d.peak for d in DTYPES.values()} == {"fp4", "fp8", "bf16", "fp32"}
    assert all(name == d.name for name, d in DTYPES.items())


def test_an_operator_runs_at_the_rate_of_its_weight() -> None:
    g = GraphBuilder("g", b=2, h=2, n=2)
    x = g.input("x", "b h", "bf16")
    up = g.op("up", "matmul", [x, g.weight("w", "h n", "fp8_block")], "b n")
    g.op("act", "activation", [up], "b n")
    g.op("forced", "activation", [up], "b n", compute="fp4")
    ops = g.build().op_by_name
    assert [ops[name].peak for name in ("up", "act", "forced")] == ["fp8", "bf16", "fp4"]
    assert ops["up"].labels == ("b", "h", "n")
    assert ops["up"].attr("none", 7) == 7
