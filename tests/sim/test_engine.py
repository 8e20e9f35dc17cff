"""The engine against hand-worked cases, an exact oracle, SimPy, lower bounds and its own symmetries."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.sim.engine import Timeline, run
from rooflang.sim.program import CAP_ONE, Program, ProgramBuilder

from .graphs import random_program
from .oracle import components, exact_run, predecessors, simpy_ends

seconds = st.floats(min_value=0, max_value=1e6)


def irregular_s(rng: Random) -> float:
    return rng.choice([0.0, rng.random(), rng.random() * 1e-6])


def same(one: Timeline, other: Timeline) -> bool:
    """Bit for bit."""
    arrays = ("start_s", "end_s", "first_round", "last_round")
    equal = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
    equal = equal and np.array_equal(np.sort(one.component_end_s), np.sort(other.component_end_s))
    return equal and (one.rounds, one.events) == (other.rounds, other.events)


def alone_s(program: Program, op: int) -> float:
    """max(T_c, T_m, T_n + α): the paper's eq. 4 for an operator with no neighbours."""
    local = max((s for _, s, _, is_net in components(program, op) if not is_net), default=0.0)
    network = max((s for _, s, _, is_net in components(program, op) if is_net), default=0.0)
    return max(local, network + float(program.op_alpha_s[op]))


def two_ops(first_s: float, second_s: float, cap: int = CAP_ONE) -> Timeline:
    builder = ProgramBuilder()
    resource = builder.add_resource("link")
    for duration_s in (first_s, second_s):
        builder.add_op("op", components=[(resource, duration_s, cap, True)])
    return run(builder.build())


def test_an_empty_program_takes_no_time() -> None:
    timeline = run(ProgramBuilder().build())
    assert (timeline.makespan_s, timeline.rounds, timeline.events) == (0.0, 0, 0)


@given(compute_s=seconds, memory_s=seconds, network_s=seconds, alpha_s=seconds, cap=st.integers(1, CAP_ONE))
def test_alone_an_operator_takes_exactly_its_uncontended_time(
    compute_s: float, memory_s: float, network_s: float, alpha_s: float, cap: int
) -> None:
    builder = ProgramBuilder()
    resources = [builder.add_resource(name) for name in ("compute", "memory", "link")]
    times = zip(resources, (compute_s, memory_s, network_s), (False, False, True))
    builder.add_op("op", components=[(r, s, cap, is_net) for r, s, is_net in times], alpha_s=alpha_s)
    end_s = run(builder.build()).makespan_s
    expected_s = max(compute_s, memory_s, network_s + alpha_s)
    assert end_s == pytest.approx(expected_s, rel=2e-12, abs=0)
    parts = sorted([compute_s, memory_s, network_s, network_s + alpha_s])
    if all(a == b or b > a * (1 + 1e-11) for a, b in pairwise(parts)):
        assert end_s == expected_s  # nothing within the width of a round: to the last bit


def test_two_full_users_halve_each_other_and_the_shorter_one_frees_the_resource() -> None:
    assert two_ops(1.0, 1.0).end_s.tolist() == [2.0, 2.0]
    assert two_ops(1.0, 3.0).end_s.tolist() == [2.0, 4.0]


def test_caps_that_fit_do_not_contend() -> None:
    assert two_ops(1.0, 3.0, cap=CAP_ONE // 2).end_s.tolist() == [1.0, 3.0]


def test_three_thirds_fill_a_resource_exactly() -> None:
    builder = ProgramBuilder()
    resource = builder.add_resource("compute")
    for _ in range(3):
        builder.add_op("op", components=[(resource, 0.7, CAP_ONE // 3, False)])
    assert run(builder.build()).end_s.tolist() == [0.7] * 3


def test_a_component_leaves_its_resource_before_its_operator_ends() -> None:
    builder = ProgramBuilder()
    compute, memory = builder.add_resource("compute"), builder.add_resource("memory")
    builder.add_op("long", components=[(compute, 1.0, CAP_ONE, False), (memory, 10.0, CAP_ONE, False)])
    builder.add_op("short", components=[(compute, 2.0, CAP_ONE, False)])
    assert run(builder.build()).end_s.tolist() == [10.0, 3.0]


def test_latency_trails_and_holds_no_link() -> None:
    builder = ProgramBuilder()
    link, compute = builder.add_resource("link"), builder.add_resource("compute")
    first = builder.add_op("send", stream=["a"], components=[(link, 1.0, CAP_ONE, True)], alpha_s=5.0)
    gate = builder.add_op("gate", components=[(compute, 1.0, CAP_ONE, False)])
    second = builder.add_op("other", after=[gate], components=[(link, 1.0, CAP_ONE, True)])
    third = builder.add_op("next", stream=["a"])
    timeline = run(builder.build())
    assert timeline.end_s[[first, second]].tolist() == [6.0, 2.0]
    assert timeline.start_s[third] == 6.0


def test_latency_does_not_wait_for_local_work() -> None:
    builder = ProgramBuilder()
    link, compute = builder.add_resource("link"), builder.add_resource("compute")
    builder.add_op("op", components=[(link, 1.0, CAP_ONE, True), (compute, 4.0, CAP_ONE, False)], alpha_s=2.0)
    builder.add_op("latency only", alpha_s=2.5)
    assert run(builder.build()).end_s.tolist() == [4.0, 2.5]


def test_zero_duration_operators_exit_in_the_next_round() -> None:
    builder = ProgramBuilder()
    resource = builder.add_resource("compute")
    first = builder.add_op("nothing")
    second = builder.add_op("no work", after=[first], components=[(resource, 0.0, CAP_ONE, False)])
    timeline = run(builder.build())
    assert timeline.first_round[[first, second]].tolist() == [0, 1]
    assert timeline.last_round[[first, second]].tolist() == [1, 2]
    assert timeline.makespan_s == 0.0


def test_exits_come_before_entries() -> None:
    """The operator that enters as another leaves never shares the resource with it."""
    builder = ProgramBuilder()
    compute, other = builder.add_resource("compute"), builder.add_resource("other")
    builder.add_op("leaves", components=[(compute, 1.0, CAP_ONE, False)])
    gate = builder.add_op("gate", components=[(other, 1.0, CAP_ONE, False)])
    enters = builder.add_op("enters", after=[gate], components=[(compute, 1.0, CAP_ONE, False)])
    assert run(builder.build()).end_s[enters] == 2.0


def test_streams_are_first_in_first_out_and_a_collective_holds_all_of_its_streams() -> None:
    builder = ProgramBuilder()
    first, second = builder.add_resource("gpu 0"), builder.add_resource("gpu 1")
    builder.add_op("a", stream=[0], components=[(first, 1.0, CAP_ONE, False)])
    builder.add_op("b", stream=[1], components=[(second, 3.0, CAP_ONE, False)])
    collective = builder.add_op("all-reduce", stream=[0, 1], alpha_s=1.0)
    after = builder.add_op("c", stream=[0], components=[(first, 1.0, CAP_ONE, False)])
    timeline = run(builder.build())
    assert timeline.start_s[collective] == 3.0
    assert timeline.start_s[after] == 4.0


def test_the_exact_oracle_agrees() -> None:
    contended = 0
    for seed in range(350):
        program = random_program(Random(seed))
        timeline, exact = run(program), exact_run(program)
        assert timeline.first_round.tolist() == exact.first_round, f"seed {seed}"
        assert timeline.last_round.tolist() == exact.last_round, f"seed {seed}"
        assert timeline.rounds == exact.rounds, f"seed {seed}"
        np.testing.assert_allclose(timeline.start_s, [float(s) for s in exact.start_s], rtol=1e-12, err_msg=f"{seed}")
        np.testing.assert_allclose(timeline.end_s, [float(s) for s in exact.end_s], rtol=1e-12, err_msg=f"{seed}")
        lasted_s = timeline.end_s - timeline.start_s
        contended += any(lasted_s[op] > alone_s(program, op) + 1e-9 for op in range(program.op_count))
    assert contended > 150  # the graphs do exercise sharing


def test_simpy_agrees() -> None:
    for seed in range(60):
        program = random_program(Random(seed), irregular_s, largest=12)
        np.testing.assert_allclose(
            run(program).end_s, simpy_ends(program), rtol=1e-9, atol=1e-11, err_msg=f"seed {seed}"
        )


def test_the_makespan_is_at_least_the_work_of_every_resource_and_the_critical_path() -> None:
    for seed in range(150):
        program = random_program(Random(seed), irregular_s)
        makespan_s = run(program).makespan_s
        path_s: list[float] = []
        for op in range(program.op_count):  # generated in topological order
            path_s.append(alone_s(program, op) + max((path_s[p] for p in predecessors(program, op)), default=0.0))
        bound_s = max(path_s, default=0.0), float(program.work_s().max(initial=0.0))
        assert makespan_s >= max(bound_s) * (1 - 1e-11), f"seed {seed}"


def relabelled(program: Program, rng: Random) -> tuple[Program, list[int], list[int]]:
    """The same program with operators, resources, predecessors and components in another order."""
    op_order, resource_order = list(range(program.op_count)), list(range(len(program.resource_names)))
    rng.shuffle(op_order)
    rng.shuffle(resource_order)
    new_op = {old: new for new, old in enumerate(op_order)}
    new_resource = {old: new for new, old in enumerate(resource_order)}
    builder = ProgramBuilder()
    for old in resource_order:
        builder.add_resource(program.resource_names[old])
    for old in op_order:
        parts = [(new_resource[resource], s, cap, is_net) for resource, s, cap, is_net in components(program, old)]
        rng.shuffle(parts)
        after = [new_op[before] for before in predecessors(program, old)]
        builder.add_op(program.label(old), after=after, components=parts, alpha_s=float(program.op_alpha_s[old]))
    return builder.build(), op_order, resource_order


def test_numbering_does_not_matter() -> None:
    for seed in range(150):
        rng = Random(seed)
        program = random_program(rng, irregular_s)
        shuffled, op_order, _ = relabelled(program, rng)
        before, after = run(program), run(shuffled)
        expected = Timeline(
            start_s=before.start_s[op_order],
            end_s=before.end_s[op_order],
            first_round=before.first_round[op_order],
            last_round=before.last_round[op_order],
            component_end_s=before.component_end_s,
            rounds=before.rounds,
            events=before.events,
        )
        assert same(after, expected), f"seed {seed}"


@given(seed=st.integers(0, 10**6), exponent=st.integers(-60, 60))
def test_scaling_all_times_by_a_power_of_two_scales_the_result_exactly(seed: int, exponent: int) -> None:
    program = random_program(Random(seed), irregular_s)
    scale = 2.0**exponent
    scaled = replace(program, component_s=program.component_s * scale, op_alpha_s=program.op_alpha_s * scale)
    before, after = run(program), run(scaled)
    times = {name: getattr(before, name) * scale for name in ("start_s", "end_s", "component_end_s")}
    assert same(after, replace(before, **times))


def test_an_operator_ends_with_the_last_of_its_components_and_its_latency() -> None:
    for seed in range(100):
        program = random_program(Random(seed), irregular_s)
        timeline = run(program)
        for op in range(program.op_count):
            rows = slice(int(program.component_start[op]), int(program.component_start[op + 1]))
            ends, net = timeline.component_end_s[rows], program.component_is_net[rows]
            start_s, alpha_s = timeline.start_s[op], program.op_alpha_s[op]
            assert (ends >= start_s + program.component_s[rows] * (1 - 1e-9) - 1e-12).all()
            expected = max(ends.max(initial=start_s), ends[net].max(initial=start_s) + alpha_s)
            assert timeline.end_s[op] == pytest.approx(expected, rel=1e-11), f"seed {seed}"
