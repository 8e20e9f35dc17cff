"""What a closer look finds agrees with the simulation."""

from __future__ import annotations

import json

import pytest

from rooflang.report.html.look import look
from rooflang.report.html.record import CloseUp
from rooflang.search.prepared import Prepared


def test_kernels_and_collectives_of_tensor_parallelism(close: CloseUp) -> None:
    (block,) = close.blocks
    up, act, down, joined = block.rows
    assert [row.name for row in block.rows] == ["up", "act", "down", "down"]
    assert (up.cuts, up.lies, up.what) == (("ffn",), ("ffn",), "kernel")
    assert (down.cuts, down.lies) == (("ffn",), ("partial",))
    assert (joined.what, joined.kind, joined.axes) == ("collective", "all_reduce", (0,))
    assert joined.lies == ("replicated",)
    assert [row.reads for row in (act, down, joined)] == [(0,), (1,), (2,)]
    assert up.weights == (("w1", 1024 * 4096 * 2 // 4),)
    assert up.bytes == 64 * 4096 * 2 // 4
    assert close.axes[0].size == 4 and close.axes[0].levels == ("nvlink",)


@pytest.mark.parametrize("which", ["tensor_parallel", "pipeline"])
def test_times_and_bytes_add_up_to_those_of_the_point(which: str, request: pytest.FixtureRequest) -> None:
    prepared: Prepared = request.getfixturevalue(which)
    found, sim = look(prepared, overlap="none"), prepared.point(overlap="none").sim
    assert sum(held.bytes for held in found.held) == sim.peak_bytes
    assert sum(lane.ranks for lane in found.lanes) == prepared.problem.cluster.gpus
    for stage, result in enumerate(sim.stages):
        (lane,) = [lane for lane in found.lanes if lane.stage == stage]
        begin_s, end_s = lane.spans[0].start_s, max(span.end_s for span in lane.spans)
        assert end_s - begin_s == pytest.approx(result.elapsed_s)
    for block in found.blocks:
        assert all(row.start_s >= 0 and row.start_s + row.seconds <= block.seconds * (1 + 1e-9) for row in block.rows)


def test_a_stage_begins_where_the_one_before_ends(pipeline_close: CloseUp) -> None:
    first, second = pipeline_close.lanes
    assert second.spans[0].start_s >= max(span.end_s for span in first.spans) * (1 - 1e-9)
    assert {row.what for block in pipeline_close.blocks for row in block.rows} <= {"kernel", "collective", "send"}


def test_two_batches_are_two_waves(tensor_parallel: Prepared) -> None:
    (lane,) = look(tensor_parallel, overlap="two-batch").lanes[:1]
    assert {span.wave for span in lane.spans} == {0, 1}


def test_layers_are_added_up_under_one_name(pipeline_close: CloseUp) -> None:
    names = [held.name for held in pipeline_close.held]
    assert len(names) == len(set(names))
    assert max(held.count for held in pipeline_close.held) >= 16
    assert {"weights", "KV cache"} <= {held.role for held in pipeline_close.held}


def test_reads_name_rows_above(pipeline_close: CloseUp) -> None:
    for block in pipeline_close.blocks:
        for number, row in enumerate(block.rows):
            assert all(-1 <= read < number for read in row.reads)


def test_json_holds_everything(close: CloseUp) -> None:
    data = json.loads(json.dumps(close.to_json(), allow_nan=False))
    assert set(data) == {"explanation", "axes", "stages", "blocks", "lanes", "memory", "held"}
    assert data["explanation"]["what_if"] and data["blocks"][0]["rows"][3]["kind"] == "all_reduce"
