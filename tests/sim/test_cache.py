"""Timelines by content: found again whatever the names, never for another program, and never beyond their room."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from threading import Thread

import numpy as np
import pytest

from rooflang.sim.cache import TIMELINES, TimelineCache, content_hash
from rooflang.sim.engine import run
from rooflang.sim.simulate import bracket, simulate

from .graphs import random_program
from .plans import placed_model


def test_a_program_that_differs_in_names_and_tensors_only_is_found_again() -> None:
    cache = TimelineCache()
    program = random_program(Random(3))
    other = replace(
        program,
        labels=tuple(f"another {label}" for label in program.labels),
        tensor_bytes=program.tensor_bytes + 1,
        memory_names=tuple(f"other {name}" for name in program.memory_names),
    )
    first = cache.run(program)
    assert cache.run(other) is first
    assert (cache.hits, cache.misses) == (1, 1)


@pytest.mark.parametrize(
    "name",
    ["op_alpha_s", "pred", "component_resource", "component_s", "component_cap", "component_is_net"],
)
def test_any_difference_in_what_decides_is_another_program(name: str) -> None:
    changed = 0
    for seed in range(40):
        program = random_program(Random(seed))
        values = getattr(program, name).copy()
        if len(values):
            values[-1] = not values[-1] if values.dtype == np.bool_ else np.nextafter(values[-1], 9e18)
            if values.dtype == np.int64:
                values[-1] = getattr(program, name)[-1] + 1
            assert content_hash(replace(program, **{name: values})) != content_hash(program), f"seed {seed}"
            changed += 1
    assert changed > 20


def test_where_rows_begin_counts_too() -> None:
    program = next(p for p in map(random_program, map(Random, range(50))) if len(p.pred) > 2 and p.pred_start[1] == 0)
    starts = program.pred_start.copy()
    starts[1] += 1
    assert content_hash(replace(program, pred_start=starts)) != content_hash(program)
    assert content_hash(replace(program, resource_names=(*program.resource_names, "x"))) != content_hash(program)


def test_cached_timelines_are_those_of_the_engine_and_cannot_be_written() -> None:
    cache = TimelineCache()
    for seed in range(20):
        program = random_program(Random(seed))
        cache.run(program)
        found, fresh = cache.run(program), run(program)
        assert np.array_equal(found.end_s, fresh.end_s) and np.array_equal(found.component_end_s, fresh.component_end_s)
        with pytest.raises(ValueError, match="read-only"):
            found.end_s[:] = 0.0


def test_the_least_recently_used_go_first() -> None:
    programs = [random_program(Random(seed)) for seed in range(30)]
    cache = TimelineCache(largest_bytes=4000)
    for program in programs:
        cache.run(programs[0])
        cache.run(program)
        assert cache.held_bytes <= 4000
    assert cache.run(programs[0]) is cache.run(programs[0])
    assert cache.hits >= len(programs)
    cache.clear()
    assert (cache.hits, cache.misses, cache.held_bytes) == (0, 0, 0)


def test_threads_may_share_one() -> None:
    cache = TimelineCache()
    programs = [random_program(Random(seed)) for seed in range(8)]
    expected = [run(program).makespan_s for program in programs]
    wrong: list[int] = []

    def work() -> None:
        for _ in range(20):
            wrong.extend(i for i, program in enumerate(programs) if cache.run(program).makespan_s != expected[i])

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and cache.hits + cache.misses == 4 * 20 * 8


def test_simulations_of_one_plan_share_a_run() -> None:
    placed, cost = placed_model()
    TIMELINES.clear()
    first = bracket(placed, cost, tokens=1)
    assert (TIMELINES.hits, TIMELINES.misses) == (0, 2)
    assert simulate(placed, cost, tokens=1, overlap="none") == first.floor
    assert simulate(placed, cost, tokens=1, overlap="two-batch") == first.schedule
    assert (TIMELINES.hits, TIMELINES.misses) == (2, 2)
