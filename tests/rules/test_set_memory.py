"""set_memory: a memory must have room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflang.hw.cluster import Cluster
from rooflang.ir import Tensor
from rooflang.rules import rule
from rooflang.rules.record import Ok, Refusal

RULE = rule("set_memory")
MEMORY = replace(Cluster.of("b300", 8).tier("dram"), capacity_bytes=1000.0)
TENSOR = Tensor(name="t", dims=("n",), dtype="bf16")


@pytest.mark.parametrize(("taken_bytes", "fits"), [(0.0, True), (200.0, True), (201.0, False), (5000.0, False)])
def test_to_the_byte(taken_bytes: float, fits: bool) -> None:
    verdict = RULE.check(TENSOR, MEMORY, {"n": 400}, taken_bytes=taken_bytes)
    assert isinstance(verdict, Ok if fits else Refusal)
    if isinstance(verdict, Refusal):
        assert verdict.code == "no-room"
        assert "8.000e+02 bytes" in verdict.reason
