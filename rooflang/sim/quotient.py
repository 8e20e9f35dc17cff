"""The exact symmetry quotient of a program that already exists, with a certificate that is checked in integers.

A partition of operators, resources, tensors and memories is equitable when

- operators of a class share α, the set of classes they wait for, and the set of (resource class, T, c, network);
- resources of a class share the multiset of (operator class, T, c, network) that they serve;
- tensors of a class share their bytes, their producer's class and the set of their consumers' classes;
- memories of a class share capacity, resident bytes and the multiset of tensor classes that they hold.

Then, by induction over the rounds, all members of a class have the same trajectory. It is enough to run one of each,
with the cap of a component multiplied by how often it occurs on one resource; caps are integers, so times and peaks
come out bit for bit. Hashing finds a partition quickly (`propose`), and nothing rests on it: `is_equitable` decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rooflang.sim.csr import (
    IntArray,
    class_ids,
    distinct_pairs,
    first_of_runs,
    items_of_rows,
    owners_of,
    pair_ids,
    representatives,
    starts_of,
)
from rooflang.sim.engine import Timeline
from rooflang.sim.program import Program

_LARGEST_CAP_SUM = 2.0**62

HashArray = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate:
    """The class of every operator, resource, tensor and memory; each numbering is dense from 0."""

    op_class: IntArray
    resource_class: IntArray
    tensor_class: IntArray
    memory_class: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quotient:
    """A program with one operator, resource and memory per class, and the certificate that it stands for the whole.

    `component_class` is the component of the quotient that each component of the whole became.
    """

    program: Program
    certificate: Certificate
    component_class: IntArray

    def expand(self, timeline: Timeline) -> Timeline:
        """The timeline of the whole program; `events` stays the number that the quotient needed."""
        op_class = self.certificate.op_class
        return Timeline(
            start_s=timeline.start_s[op_class],
            end_s=timeline.end_s[op_class],
            first_round=timeline.first_round[op_class],
            last_round=timeline.last_round[op_class],
            component_end_s=timeline.component_end_s[self.component_class],
            rounds=timeline.rounds,
            events=timeline.events,
        )

    def expand_peaks(self, peak_bytes: IntArray) -> IntArray:
        """The peaks of all memories, from those of the quotient's."""
        return peak_bytes[self.certificate.memory_class]


def quotient(program: Program, certificate: Certificate | None = None) -> Quotient | None:
    """The quotient by `certificate` (default: the one that hashing proposes), or None if it does not hold."""
    if certificate is None:
        certificate = propose(program)
    if not is_equitable(program, certificate):
        return None
    if program.component_cap.sum(dtype=np.float64) >= _LARGEST_CAP_SUM:  # the merged caps could overflow
        return None
    components = _merged_components(program, certificate)
    merged = _merged(program, certificate, components)
    return Quotient(program=merged, certificate=certificate, component_class=components.class_of)


def is_equitable(program: Program, certificate: Certificate) -> bool:
    """Whether the certificate holds, exactly: integers and the bits of floats are compared, never hashes."""
    ops, resources = certificate.op_class, certificate.resource_class
    tensors, memories = certificate.tensor_class, certificate.memory_class
    sizes = (program.op_count, len(program.resource_names), len(program.tensor_labels), len(program.memory_names))
    if any(not _is_dense(classes, size) for classes, size in zip((ops, resources, tensors, memories), sizes)):
        return False
    component_op = owners_of(program.component_start)
    demand = _static_ids(program)
    asked = pair_ids(resources[program.component_resource], demand)
    served = pair_ids(ops[component_op], demand)
    tensor_traits = pair_ids(program.tensor_bytes, _class_or_input(ops, program.tensor_producer))
    memory_traits = pair_ids(program.memory_capacity_bytes, program.memory_resident_bytes)
    return (
        _values_agree(ops, class_ids(program.op_alpha_s))
        and _sets_agree(ops, owners_of(program.pred_start), ops[program.pred])
        and _sets_agree(ops, component_op, asked)
        and _multisets_agree(resources, program.component_resource, served)
        and _values_agree(tensors, tensor_traits)
        and _sets_agree(tensors, owners_of(program.consumer_start), ops[program.consumer])
        and _values_agree(memories, memory_traits)
        and _multisets_agree(memories, program.tensor_memory, tensors)
    )


def _is_dense(classes: IntArray, size: int) -> bool:
    """Whether `classes` numbers `size` items from 0 without a gap."""
    if classes.shape != (size,):
        return False
    return size == 0 or (int(classes.min()) >= 0 and len(representatives(classes)) == int(classes.max()) + 1)


def _values_agree(classes: IntArray, values: IntArray) -> bool:
    """Whether the members of every class have the same value."""
    return not len(classes) or bool((values == values[representatives(classes)][classes]).all())


def _sets_agree(classes: IntArray, owner: IntArray, item: IntArray) -> bool:
    """Whether the members of every class own the same set of items: each must own all that the class owns."""
    owner, item, _ = distinct_pairs(owner, item)
    owned = np.bincount(owner, minlength=len(classes))
    class_of_pair, _, _ = distinct_pairs(classes[owner], item)
    owned_by_class = np.bincount(class_of_pair, minlength=int(classes.max(initial=-1)) + 1)
    return bool((owned == owned_by_class[classes]).all())


def _multisets_agree(classes: IntArray, owner: IntArray, item: IntArray) -> bool:
    """Whether the members of every class own the same items, each equally often."""
    owner, item, count = distinct_pairs(owner, item)
    return _sets_agree(classes, owner, pair_ids(item, count))


def _static_ids(program: Program) -> IntArray:
    """Dense ids of (T, c, network) of every component; times are compared bit by bit."""
    seconds = (program.component_s + 0.0).view(np.int64)  # + 0.0: a negative zero is a zero
    flags = program.component_is_net.astype(np.int64)
    return pair_ids(pair_ids(seconds, program.component_cap), flags)


def _class_or_input(op_class: IntArray, producer: IntArray) -> IntArray:
    """The class of every producer; -1 (an input) stays -1."""
    return np.append(op_class, -1)[producer]


def _merged(program: Program, certificate: Certificate, components: _Components) -> Program:
    """The program of the representatives, in terms of classes."""
    ops = certificate.op_class
    op = representatives(ops)
    kept = items_of_rows(program.pred_start, op)
    waits = np.repeat(np.arange(len(op), dtype=np.int64), np.diff(program.pred_start)[op])
    after, before, _ = distinct_pairs(waits, ops[program.pred[kept]])
    component, count, owner = components.sample, components.count, components.owner
    resource = representatives(certificate.resource_class)
    memory, tensor, consumer_start, consumer = _merged_tensors(program, certificate)
    number_of_memory = {int(member): number for number, member in enumerate(memory)}
    return Program(
        labels=program.labels,
        op_label=program.op_label[op],
        op_alpha_s=program.op_alpha_s[op],
        pred_start=starts_of(np.bincount(after, minlength=len(op)).astype(np.int64)),
        pred=before,
        component_start=starts_of(np.bincount(owner, minlength=len(op)).astype(np.int64)),
        component_resource=certificate.resource_class[program.component_resource[component]],
        component_s=program.component_s[component],
        component_cap=program.component_cap[component] * count,
        component_is_net=program.component_is_net[component],
        resource_names=tuple(program.resource_names[member] for member in resource.tolist()),
        tensor_labels=tuple(program.tensor_labels[member] for member in tensor.tolist()),
        tensor_memory=certificate.memory_class[program.tensor_memory[tensor]],
        tensor_bytes=program.tensor_bytes[tensor],
        tensor_producer=_class_or_input(ops, program.tensor_producer[tensor]),
        consumer_start=consumer_start,
        consumer=consumer,
        memory_names=tuple(program.memory_names[member] for member in memory.tolist()),
        memory_capacity_bytes=program.memory_capacity_bytes[memory],
        memory_resident_bytes=program.memory_resident_bytes[memory],
        residents=tuple(
            (number_of_memory[owner], label, size)
            for owner, label, size in program.residents
            if owner in number_of_memory
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Components:
    """One component per (operator class, resource class, T, c, network), in order of operator classes: a sample of it,
    how often it occurs on one resource, its operator class; and the number of every component of the whole."""

    sample: IntArray
    count: IntArray
    owner: IntArray
    class_of: IntArray


def _merged_components(program: Program, certificate: Certificate) -> _Components:
    resource = representatives(certificate.resource_class)
    own_class = certificate.resource_class[program.component_resource]
    op_class = certificate.op_class[owners_of(program.component_start)]
    kind = pair_ids(pair_ids(op_class, own_class), _static_ids(program))
    # Each kind occurs on the representative of its resource class, as all resources of a class serve the same.
    shown = resource[own_class] == program.component_resource
    count = np.bincount(kind[shown], minlength=int(kind.max(initial=-1)) + 1).astype(np.int64)
    first = representatives(kind)
    order = np.argsort(op_class[first], kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    sample = first[order]
    return _Components(sample=sample, count=count[order], owner=op_class[sample], class_of=number[kind])


def _merged_tensors(program: Program, certificate: Certificate) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The representative memories, all tensors in them, and the CSR of those tensors' consumer classes."""
    memory = representatives(certificate.memory_class)
    own_class = certificate.memory_class[program.tensor_memory]
    tensor = np.flatnonzero(memory[own_class] == program.tensor_memory)
    rows = items_of_rows(program.consumer_start, tensor)
    owner = np.repeat(np.arange(len(tensor), dtype=np.int64), np.diff(program.consumer_start)[tensor])
    owner, consumer, _ = distinct_pairs(owner, certificate.op_class[program.consumer[rows]])
    return memory, tensor, starts_of(np.bincount(owner, minlength=len(tensor)).astype(np.int64)), consumer


def propose(program: Program) -> Certificate:
    """A partition by 64-bit hashes: operators in topological order by what they wait for and use, resources by what
    they serve, in turn, until no class of resources splits. It may be wrong (a collision); it never decides."""
    waves = _waves(program)
    demand = _mix(_static_ids(program).astype(np.uint64))
    alpha = _mix(class_ids(program.op_alpha_s).astype(np.uint64))
    component_op = owners_of(program.component_start)
    resource = np.zeros(len(program.resource_names), np.uint64)
    classes = 0
    while True:
        asked = _mix(demand + _mix(resource[program.component_resource]))
        own = _mix(alpha + _sum_of_sets(component_op, asked, program.op_count))
        op = _hash_along(waves, own)
        resource = _mix(
            resource + _sums(program.component_resource, _mix(demand + _mix(op[component_op])), len(resource))
        )
        split = int(class_ids(resource).max(initial=-1)) + 1
        if split == classes:
            break
        classes = split
    producer = np.append(op, np.uint64(0))[program.tensor_producer]  # -1, an input, takes the last entry
    consumers = _sum_of_sets(owners_of(program.consumer_start), _mix(op[program.consumer]), len(producer))
    tensor = _mix(_mix(program.tensor_bytes.astype(np.uint64)) + producer + consumers)
    limits = pair_ids(program.memory_capacity_bytes, program.memory_resident_bytes).astype(np.uint64)
    memory = _mix(_mix(limits) + _sums(program.tensor_memory, _mix(tensor), len(limits)))
    return Certificate(
        op_class=class_ids(op),
        resource_class=class_ids(resource),
        tensor_class=class_ids(tensor),
        memory_class=class_ids(memory),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Wave:
    """Operators that wait for earlier waves only; `owner` (an index into `ops`) waits for `pred`, pair by pair."""

    ops: IntArray
    owner: IntArray
    pred: IntArray


def _waves(program: Program) -> list[_Wave]:
    starts, successors = program.successors()
    waiting = np.diff(program.pred_start)
    ops = np.flatnonzero(waiting == 0)
    waves = []
    while len(ops):
        owner = np.repeat(np.arange(len(ops), dtype=np.int64), np.diff(program.pred_start)[ops])
        waves.append(_Wave(ops=ops, owner=owner, pred=program.pred[items_of_rows(program.pred_start, ops)]))
        released = np.sort(successors[items_of_rows(starts, ops)])
        kept = np.flatnonzero(first_of_runs(released))
        followers = released[kept]
        waiting[followers] -= np.diff(np.append(kept, len(released)))
        ops = followers[waiting[followers] == 0]
    return waves


def _hash_along(waves: list[_Wave], own: HashArray) -> HashArray:
    """Hash every operator with its own traits and the set of hashes of what it waits for."""
    op = np.zeros(len(own), np.uint64)
    for wave in waves:
        op[wave.ops] = _mix(own[wave.ops] + _sum_of_sets(wave.owner, _mix(op[wave.pred]), len(wave.ops)))
    return op


def _sums(owner: IntArray, hashes: HashArray, rows: int) -> HashArray:
    """The sum of each owner's hashes modulo 2^64, which does not depend on their order."""
    sums = np.zeros(rows, np.uint64)
    np.add.at(sums, owner, hashes)
    return sums


def _sum_of_sets(owner: IntArray, hashes: HashArray, rows: int) -> HashArray:
    """The same sum over each owner's distinct hashes."""
    order = np.lexsort((hashes, owner))
    owner, hashes = owner[order], hashes[order]
    kept = first_of_runs(owner) | first_of_runs(hashes)
    return _sums(owner[kept], hashes[kept], rows)


def _mix(values: HashArray) -> HashArray:
    """Spread 64-bit integers evenly (the finaliser of SplitMix64, Steele, Lea and Flood 2014)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
