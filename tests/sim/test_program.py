"""The builder: edges, streams, canonical order, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rooflang.errors import GraphError, ValueRangeError
from rooflang.sim.program import CAP_ONE, Program, ProgramBuilder, cap_of

from .oracle import components, predecessors


def test_caps_of_simple_fractions_are_exact() -> None:
    for parts in range(1, 17):
        assert cap_of(1 / parts) * parts == CAP_ONE


def test_dependencies_and_streams_become_predecessors_once() -> None:
    builder = ProgramBuilder()
    a = builder.add_op("a", stream=["s", "t"])
    b = builder.add_op("b", after=[a, a], stream=["s"])
    c = builder.add_op("c", stream=["t", "t", "s"])
    program = builder.build()
    assert [predecessors(program, op) for op in (a, b, c)] == [[], [a], [a, b]]
    starts, successors = program.successors()
    assert successors[starts[a] : starts[a + 1]].tolist() == [b, c]


def test_readers_wait_for_the_writer_of_a_tensor() -> None:
    builder = ProgramBuilder()
    memory = builder.add_memory("hbm")
    reader, writer, other = (builder.add_op(name) for name in ("reader", "writer", "other"))
    builder.add_tensor("x", memory, 1, writer, [reader, writer])
    builder.add_tensor("input", memory, 1, -1, [other])
    program = builder.build()
    assert [predecessors(program, op) for op in (reader, writer, other)] == [[writer], [], []]


def test_everything_given_is_in_the_program() -> None:
    builder = ProgramBuilder()
    compute, link = builder.add_resource("compute"), builder.add_resource("link")
    memory = builder.add_memory("hbm", 1000, [("weights", 600), ("cache", 150)])
    parts = [(compute, 0.25, CAP_ONE // 2, False), (link, 0.5, CAP_ONE, True)]
    op = builder.add_op("matmul", components=parts, alpha_s=0.125)
    other = builder.add_op("matmul", after=[op])
    tensor = builder.add_tensor("x", memory, 30, op, [other])
    program = builder.build()
    assert (program.label(op), program.label(other), program.labels) == ("matmul", "matmul", ("matmul",))
    assert components(program, op) == parts
    assert program.op_alpha_s.tolist() == [0.125, 0.0]
    assert program.memory_resident_bytes.tolist() == [750]
    assert program.residents == ((memory, "weights", 600), (memory, "cache", 150))
    assert (program.tensor_bytes[tensor], program.tensor_producer[tensor], program.consumer.tolist()) == (
        30,
        op,
        [other],
    )
    np.testing.assert_allclose(program.work_s(), [0.125, 0.5])


def test_an_operator_may_wait_for_a_later_one_and_its_stream_follows() -> None:
    """Streams run along one topological order of everything, so a late dependency reorders them and cannot deadlock."""
    builder = ProgramBuilder()
    first = builder.add_op("first", after=[1], stream=["s"])
    second = builder.add_op("second", stream=["s"])
    third = builder.add_op("third", stream=["s"])
    program = builder.build()
    assert [predecessors(program, op) for op in (first, second, third)] == [[second], [], [first]]


def test_a_cycle_is_named_in_its_order() -> None:
    builder = ProgramBuilder()
    a, b, c = builder.add_op("alpha"), builder.add_op("beta", after=[0]), builder.add_op("gamma", after=[1])
    builder.add_op("downstream", after=[c])
    builder.add_edge(c, a)
    with pytest.raises(GraphError) as caught:
        builder.build()
    around = ["alpha -> beta -> gamma -> alpha", "beta -> gamma -> alpha -> beta", "gamma -> alpha -> beta -> gamma"]
    assert any(cycle in caught.value.what for cycle in around)
    assert "downstream" not in caught.value.what
    assert b == 1


def test_an_operator_that_waits_for_itself_is_a_cycle() -> None:
    builder = ProgramBuilder()
    builder.add_op("self", after=[0])
    with pytest.raises(GraphError, match="self -> self"):
        builder.build()


def test_a_long_cycle_is_shortened() -> None:
    builder = ProgramBuilder()
    for op in range(500):
        builder.add_op(f"op {op}", after=[(op - 1) % 500])
    with pytest.raises(GraphError, match=r"\(480 more\)") as caught:
        builder.build()
    assert len(caught.value.what) < 500


def bad_reference(what: str) -> Program:
    builder = ProgramBuilder()
    resource, memory = builder.add_resource("r"), builder.add_memory("m")
    op = builder.add_op("op", after=[7] if what == "predecessor" else [])
    builder.add_op("user", components=[(resource + 5 * (what == "resource"), 1.0, CAP_ONE, False)])
    if what == "successor":
        builder.add_edge(op, -3)
    builder.add_tensor(
        "x", memory - (what == "memory"), 1, 9 if what == "producer" else op, [-1] if what == "consumer" else []
    )
    return builder.build()


@pytest.mark.parametrize("what", ["predecessor", "successor", "resource", "memory", "producer", "consumer"])
def test_a_reference_to_nothing_is_refused(what: str) -> None:
    with pytest.raises(GraphError, match=f"{what} .* does not exist"):
        bad_reference(what)


def test_good_references_pass() -> None:
    assert bad_reference("none").op_count == 2


@pytest.mark.parametrize(
    ("seconds", "cap", "alpha_s", "expected"),
    [
        (-1.0, CAP_ONE, 0.0, "time"),
        (math.inf, CAP_ONE, 0.0, "time"),
        (math.nan, CAP_ONE, 0.0, "time"),
        (1.0, 0, 0.0, "cap"),
        (1.0, CAP_ONE, -1e-9, "latency"),
        (1.0, CAP_ONE, math.nan, "latency"),
    ],
)
def test_impossible_values_are_refused_and_the_operator_named(
    seconds: float, cap: int, alpha_s: float, expected: str
) -> None:
    builder = ProgramBuilder()
    resource = builder.add_resource("r")
    builder.add_op("fine", components=[(resource, 1.0, CAP_ONE, False)])
    builder.add_op("wrong", components=[(resource, seconds, cap, False)], alpha_s=alpha_s)
    with pytest.raises(ValueRangeError, match=expected) as caught:
        builder.build()
    assert caught.value.where == "operator wrong"


def test_negative_and_fractional_bytes_are_refused() -> None:
    builder = ProgramBuilder()
    memory = builder.add_memory("m")
    builder.add_tensor("x", memory, -1)
    with pytest.raises(ValueRangeError, match="-1 bytes"):
        builder.build()
    with pytest.raises(TypeError):
        builder.add_tensor("y", memory, 1.5)  # type: ignore[arg-type]
