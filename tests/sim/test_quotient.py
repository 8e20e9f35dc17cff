"""The certified quotient: equal to the whole program bit for bit, and refused when its certificate is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rooflang.sim.csr import IntArray
from rooflang.sim.engine import run
from rooflang.sim.memory import peak_bytes
from rooflang.sim.program import CAP_ONE, Program, ProgramBuilder
from rooflang.sim.quotient import Certificate, is_equitable, propose, quotient

from .graphs import explicit_program, random_cluster, random_program, random_steps

CLASSES = ("op_class", "resource_class", "tensor_class", "memory_class")


def symmetric_program(rng: Random) -> Program:
    cluster = random_cluster(rng)
    return explicit_program(cluster, random_steps(rng, cluster, rng.randint(1, 8)))[0]


def perturbed_program(rng: Random) -> Program:
    """A symmetric program in which one number of one operator, tensor or memory is changed."""
    program = symmetric_program(rng)
    name = rng.choice(["component_s", "component_cap", "op_alpha_s", "tensor_bytes", "memory_resident_bytes"])
    values = getattr(program, name).copy()
    if len(values):
        values[rng.randrange(len(values))] += 1
    return replace(program, **{name: values})


def check_equal(program: Program, seed: int) -> float:
    """Compare the quotient with the whole; return how many operators of the whole one of the quotient stands for."""
    small = quotient(program)
    assert small is not None, f"seed {seed}"
    full, merged = run(program), run(small.program)
    expanded = small.expand(merged)
    for name in ("start_s", "end_s", "first_round", "last_round", "component_end_s"):
        assert np.array_equal(getattr(full, name), getattr(expanded, name)), f"seed {seed}: {name}"
    assert (full.rounds, full.makespan_s) == (expanded.rounds, expanded.makespan_s), f"seed {seed}"
    peaks = small.expand_peaks(peak_bytes(small.program, merged))
    assert np.array_equal(peak_bytes(program, full), peaks), f"seed {seed}"
    return program.op_count / max(1, small.program.op_count)


@pytest.mark.parametrize(
    ("make", "count", "shrinks"),
    [(symmetric_program, 300, 250), (perturbed_program, 300, 200), (random_program, 100, 0)],
)
def test_the_quotient_is_the_whole_bit_for_bit(make: Callable[[Random], Program], count: int, shrinks: int) -> None:
    ratios = [check_equal(make(Random(seed)), seed) for seed in range(count)]
    assert sum(ratio > 1.5 for ratio in ratios) >= shrinks


def corrupted(classes: IntArray, rng: Random) -> IntArray | None:
    """One member moved to another class, which keeps the numbering dense; None if there is no second class."""
    counts = np.bincount(classes)
    movable = np.flatnonzero(counts[classes] > 1)
    if len(counts) < 2 or not len(movable):
        return None
    member = rng.choice(movable.tolist())
    moved = classes.copy()
    moved[member] = rng.choice([number for number in range(len(counts)) if number != classes[member]])
    return moved


@pytest.mark.parametrize("name", CLASSES)
def test_a_certificate_with_one_member_in_a_wrong_class_is_refused(name: str) -> None:
    """Refinement finds the coarsest equitable partition, so no partition that mixes two of its classes is one."""
    refused = 0
    for seed in range(80):
        rng = Random(seed)
        program = symmetric_program(rng)
        certificate = propose(program)
        assert is_equitable(program, certificate)
        moved = corrupted(getattr(certificate, name), rng)
        if moved is not None:
            assert quotient(program, replace(certificate, **{name: moved})) is None, f"seed {seed}"
            refused += 1
    assert refused > 5


DIFFERENCES = [
    *("latency", "seconds", "cap", "network", "wait", "demand"),
    *("bytes", "producer", "reader", "capacity", "resident", "served", "stored"),
]


def twins(difference: str) -> tuple[Program, Certificate]:
    """Two equal chains, each on a device of its own, but for one difference; and the certificate that they are alike.

    `served` and `stored` put one more operator and one more tensor, of a class that both have, on the second device.
    """
    builder = ProgramBuilder()
    tensors = []
    for twin in range(2):
        odd = twin == 1
        change = difference if odd else ""
        device = builder.add_resource("device")
        capacity = 100 + (change == "capacity")
        hbm = builder.add_memory("hbm", capacity, [("weights", 5 + (change == "resident"))])
        part = (device, 1.0 + (change == "seconds"), CAP_ONE - (change == "cap"), change == "network")
        first = builder.add_op("first", components=[part], alpha_s=0.5 * (change == "latency"))
        builder.add_op("second", after=[] if change == "wait" else [first])
        third = builder.add_op("third", components=[] if change == "demand" else [(device, 2.0, CAP_ONE, False)])
        for _ in range(1 + (change == "served")):
            builder.add_op("served", components=[(device, 3.0, CAP_ONE, False)])
        builder.add_tensor("x", hbm, 7 + (change == "bytes"), -1 if change == "producer" else third, [third])
        readers = [third, first] if change == "reader" else [third]
        stored = 1 + (change == "stored")
        for _ in range(stored):
            builder.add_tensor("stored", hbm, 3, -1, readers)
        tensors += ["x"] + ["stored"] * stored
    program = builder.build()
    numbers = {"x": 0, "stored": 1}
    alike = Certificate(
        op_class=program.op_label,
        resource_class=np.zeros(2, np.int64),
        tensor_class=np.array([numbers[label] for label in tensors]),
        memory_class=np.zeros(2, np.int64),
    )
    return program, alike


def test_equal_twins_are_alike() -> None:
    program, alike = twins("none")
    small = quotient(program, alike)
    assert small is not None
    assert np.array_equal(small.expand(run(small.program)).end_s, run(program).end_s)


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_twins_with_any_one_difference_are_not(difference: str) -> None:
    assert quotient(*twins(difference)) is None


def test_merging_two_classes_is_refused() -> None:
    for seed in range(60):
        program = symmetric_program(Random(seed))
        certificate = propose(program)
        last = int(certificate.op_class.max(initial=0))
        if last:
            merged = np.where(certificate.op_class == last, last - 1, certificate.op_class)
            assert quotient(program, replace(certificate, op_class=merged)) is None, f"seed {seed}"


def test_a_malformed_certificate_is_refused() -> None:
    program = symmetric_program(Random(3))
    certificate = propose(program)
    for name in CLASSES:
        classes = getattr(certificate, name)
        for wrong in (classes[:-1], classes + 1, classes - 1):
            assert not is_equitable(program, replace(certificate, **{name: wrong}))


def test_the_finest_partition_always_holds() -> None:
    program = random_program(Random(5))
    finest = Certificate(
        op_class=np.arange(program.op_count),
        resource_class=np.arange(len(program.resource_names)),
        tensor_class=np.arange(len(program.tensor_labels)),
        memory_class=np.arange(len(program.memory_names)),
    )
    small = quotient(program, finest)
    assert small is not None
    assert np.array_equal(run(small.program).end_s, run(program).end_s)


def test_many_equal_users_of_one_resource_become_one_with_all_their_caps() -> None:
    builder = ProgramBuilder()
    link = builder.add_resource("link")
    for _ in range(5):
        builder.add_op("send", components=[(link, 1.0, CAP_ONE // 2, True)])
    small = quotient(builder.build())
    assert small is not None
    assert small.program.op_count == 1
    assert small.program.component_cap.tolist() == [5 * (CAP_ONE // 2)]
    assert run(small.program).makespan_s == 2.5


def test_caps_too_large_to_multiply_are_refused_rather_than_wrapped() -> None:
    builder = ProgramBuilder()
    link = builder.add_resource("link")
    for _ in range(8):
        builder.add_op("send", components=[(link, 1.0, 2**60, True)])
    assert quotient(builder.build()) is None


def test_an_empty_program_has_a_quotient() -> None:
    small = quotient(ProgramBuilder().build())
    assert small is not None
    assert small.program.op_count == 0
