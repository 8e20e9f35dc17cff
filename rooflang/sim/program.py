"""What the engine runs: operators, the resources they share and the tensors they keep alive, as arrays."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from operator import index

import numpy as np

from rooflang.errors import GraphError, ValueRangeError
from rooflang.sim.csr import BoolArray, FloatArray, IntArray, distinct_pairs, group_by, starts_of, transpose

#: The integer that stands for a cap of 1.0. It is divisible by 1 … 16, so that 1/3 is exact, and sums of caps do not
#: depend on their order.
CAP_ONE = 720720 << 20

#: Capacity of a memory without a limit.
UNLIMITED_BYTES = 2**63 - 1

_LONGEST_SHOWN_CYCLE = 20

#: (resource, uncontended seconds, cap in units of 1/CAP_ONE, whether it is network)
Component = tuple[int, float, int, bool]


def cap_of(fraction: float) -> int:
    """The fixed-point cap of a fraction of a resource, rounded: `cap_of(1 / 3) * 3 == CAP_ONE`."""
    return round(fraction * CAP_ONE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """A placed graph as arrays, in CSR form: row i of `x` is `x[x_start[i]:x_start[i + 1]]`.

    Operators (n): `op_label` indexes `labels`; `op_alpha_s` is the latency that trails the last network component;
    `pred` lists the operators that must end before an operator enters (data, control and stream order together).
    Components: `component_s` is the time that the resource alone would need (a cap below 1 is already in it),
    `component_cap` the largest share it can use, in units of 1/CAP_ONE. Tensors: live from the entry of
    `tensor_producer` (-1: from the start) to the exit of the last `consumer` (none: to the end). Residents (weights,
    caches) are live always: `residents` holds (memory, label, bytes).
    """

    labels: tuple[str, ...]
    op_label: IntArray
    op_alpha_s: FloatArray
    pred_start: IntArray
    pred: IntArray
    component_start: IntArray
    component_resource: IntArray
    component_s: FloatArray
    component_cap: IntArray
    component_is_net: BoolArray
    resource_names: tuple[str, ...]
    tensor_labels: tuple[str, ...]
    tensor_memory: IntArray
    tensor_bytes: IntArray
    tensor_producer: IntArray
    consumer_start: IntArray
    consumer: IntArray
    memory_names: tuple[str, ...]
    memory_capacity_bytes: IntArray
    memory_resident_bytes: IntArray
    residents: tuple[tuple[int, str, int], ...]

    @property
    def op_count(self) -> int:
        return len(self.op_label)

    def label(self, op: int) -> str:
        """The label of an operator."""
        return self.labels[int(self.op_label[op])]

    def successors(self) -> tuple[IntArray, IntArray]:
        """CSR (starts, operators) of the operators that wait for each operator."""
        return transpose(self.pred_start, self.pred, self.op_count)

    def work_s(self) -> FloatArray:
        """Σ T·c of every resource: seconds at full rate, shape (resources,). No run can be shorter."""
        work = np.zeros(len(self.resource_names), np.float64)
        np.add.at(work, self.component_resource, self.component_s * (self.component_cap / CAP_ONE))
        return work


class ProgramBuilder:
    """Collects operators, resources, tensors and memories; `build` checks and freezes them into a `Program`.

    Operators of one stream run one after another, along one canonical topological order of all operators: the order of
    insertion, wherever the dependencies allow it. An operator on several streams (a collective) holds its place in
    each. As the order is global, streams cannot deadlock.
    """

    def __init__(self) -> None:
        self._labels: dict[str, int] = {}
        self._op_label: list[int] = []
        self._alpha_s: list[float] = []
        self._edge_before: list[int] = []
        self._edge_after: list[int] = []
        self._streams: dict[Hashable, int] = {}
        self._stream: list[int] = []
        self._stream_op: list[int] = []
        self._resource_names: list[str] = []
        self._component_count: list[int] = []
        self._component_resource: list[int] = []
        self._component_s: list[float] = []
        self._component_cap: list[int] = []
        self._component_is_net: list[bool] = []
        self._tensor_labels: list[str] = []
        self._tensor_memory: list[int] = []
        self._tensor_bytes: list[int] = []
        self._tensor_producer: list[int] = []
        self._consumer_count: list[int] = []
        self._consumer: list[int] = []
        self._memory_names: list[str] = []
        self._capacity_bytes: list[int] = []
        self._residents: list[tuple[int, str, int]] = []

    def add_resource(self, name: str) -> int:
        """Add a resource of capacity 1 (a device's compute, its memory port, one direction of a link)."""
        self._resource_names.append(name)
        return len(self._resource_names) - 1

    def add_memory(
        self, name: str, capacity_bytes: int = UNLIMITED_BYTES, resident: Iterable[tuple[str, int]] = ()
    ) -> int:
        """Add a memory; `resident` lists (label, bytes) of what lies in it from start to end."""
        memory = len(self._memory_names)
        self._memory_names.append(name)
        self._capacity_bytes.append(index(capacity_bytes))
        self._residents.extend((memory, label, index(size_bytes)) for label, size_bytes in resident)
        return memory

    def add_op(
        self,
        label: str,
        after: Iterable[int] = (),
        stream: Iterable[Hashable] = (),
        components: Iterable[Component] = (),
        alpha_s: float = 0.0,
    ) -> int:
        """Add an operator that waits for the operators `after` (which may be added later) and for its streams."""
        op = len(self._op_label)
        self._op_label.append(self._labels.setdefault(label, len(self._labels)))
        self._alpha_s.append(alpha_s)
        for before in after:
            self._edge_before.append(before)
            self._edge_after.append(op)
        for name in stream:
            self._stream.append(self._streams.setdefault(name, len(self._streams)))
            self._stream_op.append(op)
        first = len(self._component_s)
        for resource, seconds, cap, is_net in components:
            self._component_resource.append(resource)
            self._component_s.append(seconds)
            self._component_cap.append(index(cap))
            self._component_is_net.append(is_net)
        self._component_count.append(len(self._component_s) - first)
        return op

    def add_edge(self, before: int, after: int) -> None:
        """Let operator `after` wait for `before` (a control edge)."""
        self._edge_before.append(before)
        self._edge_after.append(after)

    def add_tensor(
        self,
        label: str,
        memory: int,
        size_bytes: int,
        producer: int = -1,
        consumers: Iterable[int] = (),
        *,
        wait: bool = True,
    ) -> int:
        """Add a tensor that `producer` (-1: it is an input) writes to `memory` and `consumers` read.

        The consumers wait for the producer, unless `wait` is off because other edges say so already. A producer may be
        its own consumer: the tensor is its scratch space.
        """
        self._tensor_labels.append(label)
        self._tensor_memory.append(memory)
        self._tensor_bytes.append(index(size_bytes))
        self._tensor_producer.append(producer)
        known = len(self._consumer)
        self._consumer.extend(consumers)
        self._consumer_count.append(len(self._consumer) - known)
        if producer >= 0 and wait:
            for consumer in self._consumer[known:]:
                if consumer != producer:
                    self.add_edge(producer, consumer)
        return len(self._tensor_labels) - 1

    def build(self) -> Program:
        """Freeze. Raises `GraphError` for a cycle (naming it) or a reference to nothing, `ValueRangeError` for a
        negative or infinite time, a cap that is not positive, or negative bytes."""
        self._check_references()
        self._check_ranges()
        pred_start, pred = self._predecessors()
        return Program(
            labels=tuple(self._labels),
            op_label=_ints(self._op_label),
            op_alpha_s=_floats(self._alpha_s),
            pred_start=pred_start,
            pred=pred,
            component_start=starts_of(_ints(self._component_count)),
            component_resource=_ints(self._component_resource),
            component_s=_floats(self._component_s),
            component_cap=_ints(self._component_cap),
            component_is_net=np.array(self._component_is_net, np.bool_),
            resource_names=tuple(self._resource_names),
            tensor_labels=tuple(self._tensor_labels),
            tensor_memory=_ints(self._tensor_memory),
            tensor_bytes=_ints(self._tensor_bytes),
            tensor_producer=_ints(self._tensor_producer),
            consumer_start=starts_of(_ints(self._consumer_count)),
            consumer=_ints(self._consumer),
            memory_names=tuple(self._memory_names),
            memory_capacity_bytes=_ints(self._capacity_bytes),
            memory_resident_bytes=self._resident_bytes(),
            residents=tuple(self._residents),
        )

    def _predecessors(self) -> tuple[IntArray, IntArray]:
        """CSR of data, control and stream predecessors, without repetitions."""
        count = len(self._op_label)
        before, after, _ = distinct_pairs(_ints(self._edge_before), _ints(self._edge_after))
        position = np.arange(count) if (before < after).all() else self._canonical_positions(before, after)
        stream, op = _ints(self._stream), _ints(self._stream_op)
        order = np.lexsort((position[op], stream))
        stream, op = stream[order], op[order]
        follows = (stream[1:] == stream[:-1]) & (op[1:] != op[:-1])
        after = np.concatenate([after, op[1:][follows]])
        before = np.concatenate([before, op[:-1][follows]])
        after, before, _ = distinct_pairs(after, before)
        return starts_of(np.bincount(after, minlength=count).astype(np.int64)), before

    def _canonical_positions(self, before: IntArray, after: IntArray) -> IntArray:
        """Position of every operator in the topological order that always takes the smallest operator next."""
        count = len(self._op_label)
        starts, successors = (array.tolist() for array in group_by(before, after, count))
        waiting = np.bincount(after, minlength=count).tolist()
        ready = [op for op in range(count) if not waiting[op]]
        position = np.full(count, -1, np.int64)
        done = 0
        while ready:
            op = heapq.heappop(ready)
            position[op] = done
            done += 1
            for successor in successors[starts[op] : starts[op + 1]]:
                waiting[successor] -= 1
                if not waiting[successor]:
                    heapq.heappush(ready, successor)
        if done < count:
            raise self._cycle_error(before, after, position < 0)
        return position

    def _cycle_error(self, before: IntArray, after: IntArray, stuck: BoolArray) -> GraphError:
        """Every stuck operator waits for a stuck one: walking back from any of them runs into a cycle."""
        inside = stuck[before] & stuck[after]
        waits_for = dict(zip(after[inside].tolist(), before[inside].tolist()))
        walk: dict[int, int] = {}
        op = int(np.flatnonzero(stuck)[0])
        while op not in walk:
            walk[op] = len(walk)
            op = waits_for[op]
        labels = list(self._labels)
        cycle = [labels[self._op_label[member]] for member in list(walk)[walk[op] :]][::-1]
        if len(cycle) > _LONGEST_SHOWN_CYCLE:
            cycle[_LONGEST_SHOWN_CYCLE:] = [f"({len(cycle) - _LONGEST_SHOWN_CYCLE} more)"]
        return GraphError(
            "the operators wait for each other: " + " -> ".join([*cycle, cycle[0]]),
            where="operator " + cycle[0],
            expected="dependencies without a cycle",
            hint="remove one of these data or control edges",
        )

    def _check_references(self) -> None:
        ops, resources, memories = len(self._op_label), len(self._resource_names), len(self._memory_names)
        for what, items, low, high in (
            ("resource", self._component_resource, 0, resources),
            ("memory", self._tensor_memory, 0, memories),
            ("producer", self._tensor_producer, -1, ops),
            ("consumer", self._consumer, 0, ops),
            ("predecessor", self._edge_before, 0, ops),
            ("successor", self._edge_after, 0, ops),
        ):
            if items and (min(items) < low or max(items) >= high):
                wrong = next(item for item in items if not low <= item < high)
                raise GraphError(f"{what} {wrong} does not exist", expected=f"an id from {low} to {high - 1}")

    def _check_ranges(self) -> None:
        component_op = np.repeat(np.arange(len(self._op_label)), self._component_count)
        seconds, cap, alpha_s = _floats(self._component_s), _ints(self._component_cap), _floats(self._alpha_s)
        labels = list(self._labels)

        def check(valid: BoolArray, op: IntArray, what: str, expected: str) -> None:
            if not valid.all():
                label = labels[self._op_label[op[np.flatnonzero(~valid)[0]]]]
                raise ValueRangeError(what, where=f"operator {label}", expected=expected)

        ops = np.arange(len(alpha_s))
        check(np.isfinite(seconds) & (seconds >= 0), component_op, "a component's time is impossible", "seconds ≥ 0")
        check(np.isfinite(alpha_s) & (alpha_s >= 0), ops, "the latency is impossible", "seconds ≥ 0")
        check(cap > 0, component_op, "a component's cap is not positive", f"a share of CAP_ONE = {CAP_ONE}")
        sizes = [*zip(self._tensor_labels, self._tensor_bytes), *((label, size) for _, label, size in self._residents)]
        for label, size in sizes:
            if size < 0:
                raise ValueRangeError(f"{size} bytes", where=f"tensor {label}", expected="bytes ≥ 0")

    def _resident_bytes(self) -> IntArray:
        resident = [0] * len(self._memory_names)
        for memory, _, size_bytes in self._residents:
            resident[memory] += size_bytes
        return _ints(resident)


def _ints(values: list[int]) -> IntArray:
    return np.array(values, np.int64)


def _floats(values: list[float]) -> FloatArray:
    return np.array(values, np.float64)
