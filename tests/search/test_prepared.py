"""A prepared configuration: every way of looking at it tells of the same run."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import rooflang
from rooflang.errors import PlacementError, UnknownNameError, ValueRangeError
from rooflang.search.prepared import Prepared

FLASH: dict[str, Any] = {"model": "deepseek-v4-flash", "hardware": "b300", "gpus": 8, "context": 65536}


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return rooflang.prepare(**FLASH, batch=64, dp=2, pp=4, partition=(10, 11, 11, 11), assumptions="paper")


@pytest.mark.parametrize("overlap", ["none", "perfect", "two-batch"])
def test_the_point_is_that_of_simulate(prepared: Prepared, overlap: Any) -> None:
    other = rooflang.simulate(
        **FLASH, batch=64, dp=2, pp=4, partition=(10, 11, 11, 11), assumptions="paper", overlap=overlap
    )
    assert prepared.point(overlap=overlap) == other


def test_bracket_and_explanation_tell_of_the_same_run(prepared: Prepared) -> None:
    found = prepared.bracket()
    for sim in (found.floor, found.schedule, found.ceiling):
        assert sim is not None
        assert prepared.point(overlap=sim.overlap).sim == sim
        assert prepared.explain(overlap=sim.overlap).result == sim


def test_a_trace_has_a_process_for_every_stage(prepared: Prepared, tmp_path: Path) -> None:
    prepared.write_trace(tmp_path / "step.json.gz")
    events = json.loads(gzip.decompress((tmp_path / "step.json.gz").read_bytes()))["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == [f"stage {stage} (×2)" for stage in range(4)]


def test_a_certificate_leads_to_the_same_plan(prepared: Prepared) -> None:
    first = prepared.point()
    again = rooflang.simulate(**FLASH, batch=64, assumptions="paper", certificate=first.certificate)
    assert (again.sim, again.plan, again.certificate) == (first.sim, first.plan, first.certificate)


def test_a_certificate_of_another_cluster_is_refused(prepared: Prepared) -> None:
    certificate = prepared.point().certificate
    with pytest.raises((PlacementError, ValueRangeError)):
        rooflang.prepare(**(FLASH | {"gpus": 16}), batch=64, assumptions="paper", certificate=certificate)


def test_an_unknown_overlap_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="two-batches") as caught:
        rooflang.simulate(**FLASH, dp=8, batch=8, overlap="two-batches")  # type: ignore[arg-type]
    assert "two-batch" in caught.value.hint
