"""A timeline as Chrome trace-event JSON, which Perfetto and chrome://tracing show.

Format: Trace Event Format (Google): `ph: "M"` events name processes and threads, there is one `ph: "X"` event per slice
and one `ph: "C"` event per point of a counter; `ts` and `dur` are microseconds. Starts and ends are rounded to whole
nanoseconds before the duration is taken: slices that touch in the timeline touch in the file, and never overlap by a
rounding.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from rooflang.sim.engine import Timeline
from rooflang.sim.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One operator on one track: a `process` (a device, or `gpu 0 (×128)`) and a `thread` (a stream) in it."""

    op: int
    process: str
    thread: str
    args: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A number over time on a process: `points` are (seconds, value after that moment), in order."""

    process: str
    name: str
    series: str
    points: Sequence[tuple[float, float]]


def write_trace(
    path: Path,
    program: Program,
    timeline: Timeline,
    slices: Iterable[Slice],
    *,
    counters: Iterable[Counter] = (),
) -> None:
    """Write the trace of `slices` and `counters` to `path`, compressed if its name ends in `.gz`.

    A collective may be listed on the tracks of all its participants. Slices that really run at the same time on one
    track go to further tracks of its name.
    """
    if path.suffix == ".gz":
        with gzip.open(path, "wt", encoding="utf-8") as file:
            _write(file, trace_events(program, timeline, slices, counters))
    else:
        with path.open("w", encoding="utf-8") as file:
            _write(file, trace_events(program, timeline, slices, counters))


def trace_events(
    program: Program, timeline: Timeline, slices: Iterable[Slice], counters: Iterable[Counter] = ()
) -> Iterator[str]:
    """The events of the trace, each as JSON text; names first, then slices by track and time, then counters."""
    start_ns = [round(start_s * 1e9) for start_s in timeline.start_s.tolist()]
    end_ns = [round(end_s * 1e9) for end_s in timeline.end_s.tolist()]
    tracks: dict[str, dict[str, list[Slice]]] = {}
    for entry in slices:
        tracks.setdefault(entry.process, {}).setdefault(entry.thread, []).append(entry)
    shown = list(counters)
    for counter in shown:
        tracks.setdefault(counter.process, {})
    pids = {process: pid for pid, process in enumerate(tracks)}
    placed: list[tuple[int, int, Slice]] = []
    for process, threads in tracks.items():
        pid = pids[process]
        yield _name("process_name", process, pid, 0)
        tid = 0
        for thread, entries in threads.items():
            entries.sort(key=lambda entry: (start_ns[entry.op], end_ns[entry.op], entry.op))
            for number, lane in enumerate(_lanes(entries, start_ns, end_ns)):
                yield _name("thread_name", thread if not number else f"{thread} ({number + 1})", pid, tid)
                placed.extend((pid, tid, entry) for entry in lane)
                tid += 1
    for pid, tid, entry in placed:
        begin, end = start_ns[entry.op], end_ns[entry.op]
        head = json.dumps({"ph": "X", "name": program.label(entry.op), "pid": pid, "tid": tid})[:-1]
        # Written by hand, as three decimals hold whole nanoseconds exactly and a float does not.
        times = f'"ts": {_micros(begin)}, "dur": {_micros(end - begin)}'
        yield f'{head}, {times}, "args": {json.dumps(dict(entry.args))}}}'
    for counter in shown:
        yield from _counter(counter, pids[counter.process])


def _counter(counter: Counter, pid: int) -> Iterator[str]:
    head = json.dumps({"ph": "C", "name": counter.name, "pid": pid, "tid": 0})[:-1]
    for seconds, value in counter.points:
        yield f'{head}, "ts": {_micros(round(seconds * 1e9))}, "args": {json.dumps({counter.series: value})}}}'


def _lanes(entries: list[Slice], start_ns: list[int], end_ns: list[int]) -> list[list[Slice]]:
    """Spread slices, sorted by start, over as few lanes as hold them without overlap."""
    lanes: list[list[Slice]] = []
    for entry in entries:
        for lane in lanes:
            if end_ns[lane[-1].op] <= start_ns[entry.op]:
                lane.append(entry)
                break
        else:
            lanes.append([entry])
    return lanes


def _name(what: str, name: str, pid: int, tid: int) -> str:
    return json.dumps({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}})


def _micros(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def _write(file: TextIO, events: Iterable[str]) -> None:
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    separator = ""
    for event in events:
        file.write(separator + event)
        separator = ",\n"
    file.write("\n]}\n")
