"""Peaks against a brute-force count, ties at one moment, and what an overflow says."""

from __future__ import annotations

from random import Random

import numpy as np

from rooflang.errors import CapacityError
from rooflang.sim.engine import Timeline, run
from rooflang.sim.memory import Overflow, live_at_peak, overflows, peak_bytes
from rooflang.sim.program import CAP_ONE, Program, ProgramBuilder

from .graphs import random_program


def alive_after(program: Program, timeline: Timeline, memory: int) -> list[tuple[int, int]]:
    """(round, bytes) after the exits and after the entries of every round, counted tensor by tensor."""
    counted = []
    for number in range(timeline.rounds + 1):
        for entries_done in (False, True):
            total = int(program.memory_resident_bytes[memory])
            for tensor in np.flatnonzero(program.tensor_memory == memory):
                producer = program.tensor_producer[tensor]
                readers = program.consumer[program.consumer_start[tensor] : program.consumer_start[tensor + 1]]
                entered = 0 if producer < 0 else timeline.first_round[producer]
                begun = entered < number or (entered == number and entries_done)
                ended = len(readers) > 0 and max(timeline.last_round[readers]) <= number
                if begun and not ended:
                    total += int(program.tensor_bytes[tensor])
            counted.append((number, total))
    return counted


def test_peaks_and_overflows_agree_with_a_brute_force_count() -> None:
    overflowing = 0
    for seed in range(120):
        program = random_program(Random(seed))
        timeline = run(program)
        peaks = peak_bytes(program, timeline)
        found = {overflow.memory: overflow for overflow in overflows(program, timeline)}
        overflowing += len(found)
        for memory, name in enumerate(program.memory_names):
            counted = alive_after(program, timeline, memory)
            assert peaks[memory] == max(total for _, total in counted), f"seed {seed}"
            assert sum(size for _, size in live_at_peak(program, timeline, memory)) == peaks[memory], f"seed {seed}"
            capacity = int(program.memory_capacity_bytes[memory])
            over = [(number, total) for number, total in counted if total > capacity]
            assert bool(over) == (name in found), f"seed {seed}"
            if over:
                first, total = over[0]
                assert timeline.start_s[timeline.first_round == first][0] == found[name].first_s, f"seed {seed}"
                assert sum(size for _, size in found[name].live) == total, f"seed {seed}"
                assert found[name].peak_bytes == peaks[memory]
    assert overflowing > 20


def chain(capacity_bytes: int) -> tuple[Program, Timeline]:
    """Three operators in a row, each reading what the one before wrote, beside 100 bytes of weights."""
    builder = ProgramBuilder()
    compute = builder.add_resource("compute")
    hbm = builder.add_memory("hbm of gpu 0", capacity_bytes, [("weights", 100)])
    builder.add_memory("empty", 10, [("cache", 7)])
    work = [(compute, 1.0, CAP_ONE, False)]
    first = builder.add_op("first", components=work)
    second = builder.add_op("second", after=[first], components=work)
    third = builder.add_op("third", after=[second], components=work)
    builder.add_tensor("input", hbm, 1, -1, [first])
    builder.add_tensor("x", hbm, 20, first, [second])
    builder.add_tensor("y", hbm, 40, second, [third])
    builder.add_tensor("output", hbm, 30, third)
    program = builder.build()
    return program, run(program)


def test_a_tensor_lives_until_its_last_reader_ends_and_its_space_is_free_for_the_next() -> None:
    program, timeline = chain(1000)
    # While `third` runs: weights, y and output; x was freed in the round in which third entered.
    assert peak_bytes(program, timeline).tolist() == [170, 7]
    assert live_at_peak(program, timeline, 0) == (("weights", 100), ("y", 40), ("output", 30))
    assert live_at_peak(program, timeline, 1) == (("cache", 7),)
    assert overflows(program, timeline) == ()


def test_an_overflow_names_the_moment_and_the_tensors() -> None:
    program, timeline = chain(155)
    (overflow,) = overflows(program, timeline)
    assert (overflow.memory, overflow.capacity_bytes, overflow.peak_bytes) == ("hbm of gpu 0", 155, 170)
    assert overflow.first_s == 1.0
    assert overflow.live == (("weights", 100), ("y", 40), ("x", 20))
    error = overflow.error(where="batch 8")
    assert isinstance(error, CapacityError)
    for part in ("hbm of gpu 0", "170 B", "155 B", "weights (100 B)", "y (40 B)", "batch 8"):
        assert part in str(error)


def test_residents_alone_can_overflow() -> None:
    program, timeline = chain(99)
    (overflow,) = overflows(program, timeline)
    assert (overflow.first_s, overflow.live) == (0.0, (("weights", 100),))
    assert chain(170)[0].memory_capacity_bytes[0] == 170
    assert overflows(*chain(170)) == ()


def test_a_memory_whose_residents_have_no_names_overflows_in_words() -> None:
    told = Overflow(memory="HBM", capacity_bytes=1, peak_bytes=2, first_s=0.0, live=()).error()
    assert "with what rests in it for good" in str(told)


def test_memory_is_freed_at_the_exit_and_taken_at_the_entry_of_one_round() -> None:
    """Of two simultaneous events, the exit frees before the entry takes, whatever their numbering."""
    for swapped in (False, True):
        builder = ProgramBuilder()
        compute, other = builder.add_resource("compute"), builder.add_resource("other")
        hbm = builder.add_memory("hbm", 10)
        reader = builder.add_op("reader", components=[(compute, 1.0, CAP_ONE, False)])
        gate = builder.add_op("gate", components=[(other, 1.0, CAP_ONE, False)])
        writer = builder.add_op("writer", after=[gate])
        tensors = [("old", -1, [reader]), ("new", writer, [])]
        for label, producer, consumers in reversed(tensors) if swapped else tensors:
            builder.add_tensor(label, hbm, 10, producer, consumers)
        program = builder.build()
        assert peak_bytes(program, run(program)).tolist() == [10]


def test_without_operators_inputs_are_alive() -> None:
    builder = ProgramBuilder()
    builder.add_tensor("input", builder.add_memory("hbm", 10), 8)
    program = builder.build()
    assert peak_bytes(program, run(program)).tolist() == [8]
