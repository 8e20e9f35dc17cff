"""The trace: valid JSON, every track named, nothing overlapping, nothing lost."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from rooflang.sim.engine import run
from rooflang.sim.program import CAP_ONE, Program, ProgramBuilder
from rooflang.sim.trace import Slice, write_trace

from .graphs import random_program


def read(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    trace = json.loads(text, parse_float=Decimal)  # exact: the file promises whole nanoseconds
    assert set(trace) == {"displayTimeUnit", "traceEvents"}
    return list(trace["traceEvents"])


def check(events: list[dict[str, Any]], program: Program, slices: list[Slice]) -> None:
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    tracks: dict[tuple[int, int], list[tuple[Decimal, Decimal]]] = defaultdict(list)
    shown = []
    for event in events:
        assert event["ph"] in ("M", "X")
        if event["ph"] == "X":
            begin, lasted = Decimal(event["ts"]), Decimal(event["dur"])
            assert begin >= 0 and lasted >= 0
            assert (begin * 1000) % 1 == 0 and (lasted * 1000) % 1 == 0
            tracks[event["pid"], event["tid"]].append((begin, begin + lasted))
            thread = threads[event["pid"], event["tid"]].split(" (")[0]
            shown.append((event["name"], processes[event["pid"]], thread, event["args"]["op"]))
    for intervals in tracks.values():
        ordered = sorted(intervals)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(ordered))
    expected = [(program.label(s.op), s.process, s.thread, s.op) for s in slices]
    assert sorted(shown) == sorted(expected)


def test_random_traces_are_well_formed_and_do_not_overlap(tmp_path: Path) -> None:
    """Also when operators that do overlap in time are put on one track."""
    for seed in range(60):
        rng = Random(seed)
        program = random_program(rng, lambda rng: rng.random() * 1e-8)
        ops = range(program.op_count)
        slices = [
            Slice(op=op, process=f"gpu {rng.randrange(2)}", thread=rng.choice(["main", "side"]), args={"op": op})
            for op in ops
            for _ in range(rng.choice([1, 2]))
        ]
        path = tmp_path / ("trace.json.gz" if seed % 2 else "trace.json")
        write_trace(path, program, run(program), slices)
        check(read(path), program, slices)


def test_operators_of_one_stream_stay_on_one_track_and_touch(tmp_path: Path) -> None:
    builder = ProgramBuilder()
    compute = builder.add_resource("compute")
    for number in range(200):
        builder.add_op(f"k{number}", stream=["s"], components=[(compute, 1.23456789e-7 / 3, CAP_ONE, False)])
    program = builder.build()
    slices = [Slice(op=op, process="gpu 0 (×128)", thread="s", args={"op": op}) for op in range(200)]
    write_trace(tmp_path / "t.json", program, run(program), slices)
    events = read(tmp_path / "t.json")
    check(events, program, slices)
    found = [event for event in events if event["ph"] == "X"]
    assert {(event["pid"], event["tid"]) for event in found} == {(0, 0)}
    assert all(Decimal(a["ts"]) + Decimal(a["dur"]) == Decimal(b["ts"]) for a, b in pairwise(found))


def test_names_that_need_escaping(tmp_path: Path) -> None:
    builder = ProgramBuilder()
    builder.add_op('he said "x\\y"\n')
    program = builder.build()
    write_trace(tmp_path / "t.json", program, run(program), [Slice(op=0, process='"', thread="\t")])
    (event,) = [event for event in read(tmp_path / "t.json") if event["ph"] == "X"]
    assert (event["name"], event["args"]) == ('he said "x\\y"\n', {})


def test_an_empty_trace_is_valid(tmp_path: Path) -> None:
    program = ProgramBuilder().build()
    write_trace(tmp_path / "t.json", program, run(program), [])
    assert read(tmp_path / "t.json") == []
