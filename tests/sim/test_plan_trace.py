"""The trace of a plan, read back by a reader that takes nothing for granted."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rooflang.errors import ValueRangeError
from rooflang.sim import write_plan_trace
from rooflang.sim.build import build
from rooflang.sim.engine import run
from rooflang.sim.fleet import DeviceOverride
from rooflang.sim.memory import peak_bytes
from rooflang.sim.simulate import simulate

from .plans import Placed, placed_model


class Trace:
    """A trace file, checked against the Trace Event Format as it is read."""

    def __init__(self, path: Path) -> None:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        document = json.loads(text, parse_float=Decimal)
        self.events: list[dict[str, Any]] = document["traceEvents"]
        self.processes: dict[int, str] = {}
        self.threads: dict[tuple[int, int], str] = {}
        self.slices: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
        self.counters: dict[tuple[int, str], list[tuple[Decimal, Decimal]]] = defaultdict(list)
        for event in self.events:
            getattr(self, f"_read_{event['ph']}")(event)
        self._check()

    def _read_M(self, event: dict[str, Any]) -> None:
        if event["name"] == "process_name":
            assert event["pid"] not in self.processes
            self.processes[event["pid"]] = event["args"]["name"]
        else:
            assert event["name"] == "thread_name"
            assert (event["pid"], event["tid"]) not in self.threads
            self.threads[event["pid"], event["tid"]] = event["args"]["name"]

    def _read_X(self, event: dict[str, Any]) -> None:
        assert event["ts"] >= 0 and event["dur"] >= 0 and event["name"]
        self.slices[event["pid"], event["tid"]].append(event)

    def _read_C(self, event: dict[str, Any]) -> None:
        ((_, value),) = event["args"].items()
        self.counters[event["pid"], event["name"]].append((Decimal(event["ts"]), Decimal(value)))

    def _check(self) -> None:
        assert {pid for pid, _ in self.slices} <= set(self.processes)
        assert set(self.slices) <= set(self.threads)
        assert {pid for pid, _ in self.counters} <= set(self.processes)
        assert len(set(self.processes.values())) == len(self.processes)
        for entries in self.slices.values():
            times = sorted((Decimal(e["ts"]), Decimal(e["ts"]) + Decimal(e["dur"])) for e in entries)
            assert all(end <= begin for (_, end), (begin, _) in pairwise(times))
        for points in self.counters.values():
            assert all(before <= after for (before, _), (after, _) in pairwise(points))

    def all_slices(self) -> list[dict[str, Any]]:
        return [event for entries in self.slices.values() for event in entries]


def written(path: Path, placed: Placed, **options: Any) -> Trace:
    graph, cost = placed
    write_plan_trace(path, graph, cost, **options)
    return Trace(path)


def test_a_class_of_ranks_is_a_process_and_says_how_many_they_are(tmp_path: Path) -> None:
    placed = placed_model(gpus=16, dp=4, cp=2, pp=2)
    trace = written(tmp_path / "t.json", placed)
    assert list(trace.processes.values()) == ["stage 0 (×8)", "stage 1 (×8)"]
    assert list(trace.threads.values()) == ["stream 0", "stream 0"]
    built = build(*placed)
    timeline = run(built.program)
    busy = sum(1 for op in range(built.program.op_count) if timeline.end_s[op] > timeline.start_s[op])
    assert len(trace.all_slices()) == busy


def test_chosen_gpus_are_processes_of_their_own(tmp_path: Path) -> None:
    trace = written(tmp_path / "t.json.gz", placed_model(gpus=16, dp=4, cp=2, pp=2), gpus=[3, 9, 10])
    assert list(trace.processes.values()) == ["gpu 3 (stage 0)", "gpu 9 (stage 1)", "gpu 10 (stage 1)"]
    names = [[e["name"] for e in trace.slices[pid, 0]] for pid in (1, 2)]
    assert names[0] == names[1]
    with pytest.raises(ValueRangeError, match="GPU 16"):
        written(tmp_path / "u.json", placed_model(gpus=16, dp=4, cp=2, pp=2), gpus=[16])


def test_an_odd_gpu_is_a_process_of_its_own(tmp_path: Path) -> None:
    slow = DeviceOverride(gpus=(3,), hbm=0.5)
    trace = written(tmp_path / "t.json", placed_model(), overrides=[slow])
    assert list(trace.processes.values()) == ["stage 0, gpu 0 (×7)", "stage 0, gpu 3 (×1)"]
    spans = {pid: sum(e["dur"] for e in entries) for (pid, _), entries in trace.slices.items()}
    assert spans[1] > spans[0]


def test_two_batches_are_two_tracks_that_really_overlap(tmp_path: Path) -> None:
    trace = written(
        tmp_path / "t.json", placed_model(hardware="gb300", gpus=64, dp=64, batch=65536), overlap="two-batch"
    )
    assert list(trace.threads.values()) == ["kernels", "network"]
    assert {e["args"]["micro-batch"] for e in trace.all_slices()} == {0, 1}
    kernels, network = trace.slices[0, 0], trace.slices[0, 1]
    end = max(e["ts"] + e["dur"] for e in kernels)
    assert sum(e["dur"] for e in kernels) + sum(e["dur"] for e in network) > Decimal("1.15") * end


def test_slices_say_what_the_operator_does(tmp_path: Path) -> None:
    placed = placed_model(hardware="gb300", gpus=64, dp=64, batch=65536)
    slices = {event["name"]: event["args"] for event in written(tmp_path / "t.json", placed).all_slices()}
    # 1024 tokens a rank, 4096 × 1024 weights in FP8 with one byte of scale per 128 × 128 block
    q_a = slices["layers.3.q_a"]
    assert q_a["fp8_flop"] == 2 * 1024 * 4096 * 1024
    weights = 4096 * 1024 + 4096 * 1024 // 128**2
    assert q_a["hbm_bytes"] == pytest.approx(weights + 2 * 1024 * (4096 + 1024), rel=1e-9)
    assert (q_a["block"], q_a["bound"]) == ("layers.3", "memory")
    dispatch = slices["layers.3.dispatch"]
    assert (
        dispatch["bound"] == "nvlink" and dispatch["nvlink_bytes"] > 0 and dispatch["latency_s"] == Decimal("0.000001")
    )
    assert all(args["critical"] for args in slices.values())


def test_counters_show_the_peak_of_memory_and_busy_links(tmp_path: Path) -> None:
    placed = placed_model(hardware="gb300", gpus=64, dp=64, batch=65536)
    trace = written(tmp_path / "t.json", placed)
    built = build(*placed)
    peak = int(peak_bytes(built.program, run(built.program))[0])
    assert max(value for _, value in trace.counters[0, "HBM in use"]) == peak
    for name in ("compute", "HBM bandwidth", "nvlink out"):
        points = trace.counters[0, name]
        assert max(value for _, value in points) == 100 and points[-1][1] == 0
    busy_us = sum(
        (after - before) * value / 100 for (before, value), (after, _) in pairwise(trace.counters[0, "nvlink out"])
    )
    assert float(busy_us) * 1e-6 == pytest.approx(simulate(*placed, tokens=1).stages[0].levels_s["nvlink"], rel=1e-3)
