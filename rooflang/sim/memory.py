"""Bytes alive in each memory over a run: the peak, and what did it when a memory overflows.

A tensor lives from the entry of its producer (an input: from the start) to the exit of its last consumer (a tensor
that nothing consumes: to the end). Simultaneous events are ordered by the integer key of their round: 2·round for what
an exit frees, 2·round + 1 for what an entry allocates, so that an operator's output can take the place of what just
ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflang.errors import CapacityError
from rooflang.sim.csr import FloatArray, IntArray, first_of_runs, owners_of
from rooflang.sim.engine import Timeline
from rooflang.sim.program import Program
from rooflang.units import show_bytes, show_seconds

#: How many tensors an error message names.
_NAMED_TENSORS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """A memory that is too small.

    `first_s` is when it first overflows, `live` what is in it then: (label, bytes), largest first.
    """

    memory: str
    capacity_bytes: int
    peak_bytes: int
    first_s: float
    live: tuple[tuple[str, int], ...]

    def error(self, *, where: str = "") -> CapacityError:
        """The error that tells a user what does not fit, and which tensors are the largest."""
        largest = ", ".join(f"{label} ({show_bytes(size)})" for label, size in self.live[:_NAMED_TENSORS])
        # A program may say how much rests in a memory without saying what.
        largest = largest or "what rests in it for good"
        return CapacityError(
            f"{self.memory} needs {show_bytes(self.peak_bytes)} of {show_bytes(self.capacity_bytes)}; "
            f"it overflows at {show_seconds(self.first_s)} with {largest}",
            needs_bytes=self.peak_bytes,
            where=where,
            expected=f"at most {show_bytes(self.capacity_bytes)} alive at any time",
            hint="cut the largest tensors over more devices, or use a smaller batch",
        )


def peak_bytes(program: Program, timeline: Timeline) -> IntArray:
    """The largest number of bytes alive at once in each memory, residents included, shape (memories,)."""
    ledger = _ledger(program, timeline)
    peak = program.memory_resident_bytes.copy()
    starts = np.flatnonzero(first_of_runs(ledger.memory))
    if len(starts):
        touched = ledger.memory[starts]
        peak[touched] += np.maximum.reduceat(ledger.alive, starts)
    return peak


def occupancy(program: Program, timeline: Timeline, memory: int) -> tuple[FloatArray, IntArray]:
    """(seconds, bytes): what is alive in `memory` after every moment at which it changes, residents included."""
    ledger = _ledger(program, timeline)
    mine = np.flatnonzero(ledger.memory == memory)
    keys, alive = ledger.key[mine], ledger.alive[mine] + int(program.memory_resident_bytes[memory])
    last = np.append(first_of_runs(keys)[1:], True) if len(keys) else np.zeros(0, np.bool_)
    times = _round_times(timeline)
    return times[np.minimum(keys[last] // 2, len(times) - 1)], alive[last]


def _round_times(timeline: Timeline) -> FloatArray:
    """When each round was, shape (rounds + 1,): rounds in which nothing enters or exits take the time of the last that
    did."""
    times = np.zeros(timeline.rounds + 1, np.float64)
    times[timeline.first_round] = timeline.start_s
    times[timeline.last_round] = timeline.end_s
    return np.maximum.accumulate(times)


def live_at_peak(program: Program, timeline: Timeline, memory: int) -> tuple[tuple[str, int], ...]:
    """(label, bytes), largest first, of what is alive in `memory` when it first reaches its peak."""
    ledger = _ledger(program, timeline)
    mine = np.flatnonzero(ledger.memory == memory)
    # With no tensor in it, a memory holds its residents all the time.
    key = int(ledger.key[mine[np.argmax(ledger.alive[mine])]]) if len(mine) else 0
    return _live(program, timeline, memory, key)


def overflows(program: Program, timeline: Timeline) -> tuple[Overflow, ...]:
    """One record for each memory whose peak exceeds its capacity; empty if all fit."""
    peak = peak_bytes(program, timeline)
    over = np.flatnonzero(peak > program.memory_capacity_bytes).tolist()
    return tuple(_overflow(program, timeline, memory, int(peak[memory])) for memory in over)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ledger:
    """Allocations and frees by memory, then key; `alive` is what lives after each, without residents."""

    memory: IntArray
    key: IntArray
    alive: IntArray


def _lifetimes(program: Program, timeline: Timeline) -> tuple[IntArray, IntArray]:
    """The keys at which every tensor is allocated and freed."""
    producer = program.tensor_producer
    first_round = np.zeros(len(producer), np.int64)
    produced = producer >= 0
    first_round[produced] = timeline.first_round[producer[produced]]
    last_round = np.full(len(producer), -1, np.int64)
    np.maximum.at(last_round, owners_of(program.consumer_start), timeline.last_round[program.consumer])
    last_round[last_round < 0] = timeline.rounds + 1
    return 2 * first_round + 1, 2 * last_round


def _ledger(program: Program, timeline: Timeline) -> _Ledger:
    allocated, freed = _lifetimes(program, timeline)
    memory = np.concatenate([program.tensor_memory, program.tensor_memory])
    key = np.concatenate([allocated, freed])
    change = np.concatenate([program.tensor_bytes, -program.tensor_bytes])
    order = np.lexsort((key, memory))
    # Everything allocated is freed, so the running sum is back at 0 where the next memory starts. Within one key all
    # changes have one sign: the extremes of the running sum are the same as after each whole key.
    return _Ledger(memory=memory[order], key=key[order], alive=np.cumsum(change[order]))


def _live(program: Program, timeline: Timeline, memory: int, key: int) -> tuple[tuple[str, int], ...]:
    """(label, bytes), largest first, of what is alive in `memory` just after `key`."""
    allocated, freed = _lifetimes(program, timeline)
    tensors = np.flatnonzero((program.tensor_memory == memory) & (allocated <= key) & (freed > key)).tolist()
    live = [(label, size_bytes) for owner, label, size_bytes in program.residents if owner == memory]
    live += [(program.tensor_labels[tensor], int(program.tensor_bytes[tensor])) for tensor in tensors]
    return tuple(sorted(live, key=lambda entry: (-entry[1], entry[0])))


def _overflow(program: Program, timeline: Timeline, memory: int, peak: int) -> Overflow:
    capacity, resident = int(program.memory_capacity_bytes[memory]), int(program.memory_resident_bytes[memory])
    if resident > capacity:
        key, first_s = 0, 0.0
    else:
        ledger = _ledger(program, timeline)
        over = np.flatnonzero((ledger.memory == memory) & (ledger.alive + resident > capacity))
        key = int(ledger.key[over[0]])
        first_s = _round_start_s(timeline, key // 2)
    return Overflow(
        memory=program.memory_names[memory],
        capacity_bytes=capacity,
        peak_bytes=peak,
        first_s=first_s,
        live=_live(program, timeline, memory, key),
    )


def _round_start_s(timeline: Timeline, number: int) -> float:
    """The time of a round in which something was allocated: the start of the operators that entered in it."""
    entered = np.flatnonzero(timeline.first_round == number)
    return float(timeline.start_s[entered[0]]) if len(entered) else 0.0
