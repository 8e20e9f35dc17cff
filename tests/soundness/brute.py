"""The cheapest plan of a small graph, by trying every assignment of layouts to operators: no e-graph, no extractor.

An operator may run whole on all coordinates or on the first one of each axis, or be cut by a row of its signature,
axis by axis; named fusions, one after the other, may take its place and that of the operators inside, and a product may
be a part of what several of one input make. What an operator makes is brought to
where its readers want it along a cheapest tree of collectives and slices, found between all layouts of the tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from rooflang.cost import CostModel
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, STATES, CutKind, Spec
from rooflang.ir.graph import Graph
from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.kinds.fused import NAMED, fits, fuse
from rooflang.ir.layout import Choice, Mode, collective_of, make_mode, make_transfer
from rooflang.ir.op import Op, op_kind, signature
from rooflang.ir.tensor import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to make a tensor: by a kernel in a mode, at a cost."""

    mode: Mode
    local_s: float
    exposed_s: float


@dataclass(frozen=True, kw_only=True)
class Brute:
    """All plans of a graph on the mesh of a cost model."""

    graph: Graph
    cost: CostModel

    @property
    def axes(self) -> int:
        return len(self.cost.mesh.axes)

    def cheapest(self) -> dict[str, float]:
        """The least max(C, N) and the least C + N of all plans."""
        best = {"max": np.inf, "sum": np.inf}
        for local, moved in self.plans():
            best["max"] = min(best["max"], max(local, moved))
            best["sum"] = min(best["sum"], local + moved)
        return best

    def plans(self) -> Iterator[tuple[float, float]]:
        """(C, N) of every assignment of modes, with the cheapest ways between them; any move may be left out."""
        for graph in without_moves(self.graph):
            yield from Brute(graph=graph, cost=self.cost)._plans()

    def _plans(self) -> Iterator[tuple[float, float]]:
        names = [op.output.name for op in self.graph.ops]
        for kernels in product(*(self.kernels(op) for op in self.graph.ops)):
            needed = self._needed(dict(zip(names, kernels, strict=True)))
            yield from self._assigned([op for op in kernels if op.output.name in needed])

    def _needed(self, kernels: Mapping[str, Op]) -> set[str]:
        """Tensors that have to be made: outputs, and what the kernels of needed ones read."""
        needed, stack = set[str](), list(self.graph.outputs)
        while stack:
            name = stack.pop()
            if name in kernels and name not in needed:
                needed.add(name)
                stack += [t.name for t in kernels[name].operands]
        return needed

    def kernels(self, op: Op) -> list[Op]:
        """The operator, every fusion of it with what it reads, of those with what they read, and so on; and as a part
        of every joint product."""
        found = [op]
        for outer in found:  # it grows
            for fusion, inner in product(NAMED.values(), self.graph.ops):
                if fits(fusion, outer, inner):
                    found.append(fuse(fusion, outer, inner))
        return found

    @cached_property
    def summed(self) -> frozenset[str]:
        """Tensors whose partial values are sums, wherever they come from."""
        found: set[str] = set()
        for op in self.graph.ops:
            rows = [cut for cut in signature(op) if cut.out == PARTIAL and self._summable(op, cut.operands, found)]
            if rows and all(cut.kind in (CutKind.SUM, CutKind.LINEAR) for cut in rows):
                found.add(op.output.name)
        return frozenset(found)

    @staticmethod
    def _summable(op: Op, entries: Sequence[str], summed: set[str] | frozenset[str]) -> bool:
        return all(t.name in summed for t, entry in zip(op.operands, entries, strict=True) if entry == PARTIAL)

    def ways(self, op: Op) -> list[Way]:
        """Every mode of a kernel that the extents allow."""
        whole: list[Choice] = [REPLICATED, OWNER] if op_kind(op.kind).pure else []
        choices = [*whole, *(cut for cut in signature(op) if self._summable(op, cut.operands, self.summed))]
        found = []
        for chosen in product(choices, repeat=self.axes):
            mode = make_mode(op, chosen)
            price = self.cost.mode(mode)
            if np.isfinite(price.local_s):
                found.append(Way(mode=mode, local_s=float(price.local_s), exposed_s=float(price.exposed_s)))
        return found

    def _assigned(self, kernels: Sequence[Op]) -> Iterator[tuple[float, float]]:
        """(C, N) of every assignment of modes to these kernels."""
        ways = [self.ways(op) for op in kernels]
        at = {op.output.name: n for n, op in enumerate(kernels)}
        trees = {op.output.name: Layouts.of(op.output, self) for op in kernels}
        readers: dict[str, list[tuple[int, int]]] = {name: [] for name in at}
        for number, op in enumerate(kernels):
            for index, tensor in enumerate(op.operands):
                if tensor.name in at:
                    readers[tensor.name].append((number, index))
        for chosen in product(*ways):
            local = sum(way.local_s for way in chosen)
            moved = sum(way.exposed_s for way in chosen)
            for name, tree in trees.items():
                wanted = {chosen[n].mode.operands[i] for n, i in readers[name]}
                moved += tree.cheapest(chosen[at[name]].mode.out, wanted, leaves=name in self.graph.outputs)
                if moved == np.inf:
                    break
            if np.isfinite(moved):
                yield local, moved


def without_moves(graph: Graph) -> Iterator[Graph]:
    """The graph without any set of its moves: who reads one of them reads its operand."""
    moves = [op for op in graph.ops if op.kind in MOVES and op.output.name not in graph.outputs]
    for gone in product((False, True), repeat=len(moves)):
        source = {move.output.name: move.operands[0] for move, out in zip(moves, gone, strict=True) if out}
        ops = []
        for op in graph.ops:
            if op.output.name not in source:
                ops.append(replace(op, operands=tuple(_source(t, source) for t in op.operands)))
        yield replace(graph, ops=tuple(ops))


def _source(tensor: Tensor, source: Mapping[str, Tensor]) -> Tensor:
    while tensor.name in source:
        tensor = source[tensor.name]
    return tensor


@dataclass(frozen=True, kw_only=True)
class Layouts:
    """All layouts of a tensor and the least network time from each to each."""

    specs: tuple[Spec, ...]
    distance_s: np.ndarray

    @classmethod
    def of(cls, tensor: Tensor, brute: Brute) -> Layouts:
        specs = tuple(product((REPLICATED, PARTIAL, OWNER, *tensor.dims), repeat=brute.axes))
        distance = np.full((len(specs), len(specs)), np.inf)
        np.fill_diagonal(distance, 0.0)
        for (i, one), (j, other) in product(enumerate(specs), enumerate(specs)):
            changes = {(a, b) for a, b in zip(one, other, strict=True) if a != b}
            if len(changes) == 1 and collective_of(*next(iter(changes))):
                price = brute.cost.transfer(tensor, make_transfer(tensor.name, one, other))
                distance[i, j] = price.exposed_s if np.isfinite(price.local_s) else np.inf
        for middle in range(len(specs)):
            np.minimum(distance, distance[:, middle, None] + distance[None, middle], out=distance)
        return cls(specs=specs, distance_s=distance)

    @cached_property
    def number(self) -> dict[Spec, int]:
        return {spec: n for n, spec in enumerate(self.specs)}

    @cached_property
    def border(self) -> list[int]:
        """Layouts in which a graph may leave its outputs: nothing partial, nothing with one owner."""
        calm = [set(spec) - (STATES - {REPLICATED}) == set(spec) for spec in self.specs]
        return [n for n, fine in enumerate(calm) if fine]

    @cached_property
    def _known(self) -> dict[tuple[int, frozenset[int], bool], float]:
        return {}

    def cheapest(self, made: Spec, wanted: set[Spec], *, leaves: bool) -> float:
        """The least network time of a tree from `made` to all wanted layouts, and to some border if it leaves."""
        key = (self.number[made], frozenset(self.number[spec] for spec in wanted), leaves)
        if key not in self._known:
            ends = [{n} for n in key[1]] + ([set(self.border)] if leaves else [])
            self._known[key] = self._tree(key[0], ends)
        return self._known[key]

    def _tree(self, root: int, ends: Sequence[set[int]]) -> float:
        """Dreyfus and Wagner's recursion over subsets of ends, each a set of layouts of which one will do."""
        if not ends:
            return 0.0
        best: dict[int, np.ndarray] = {}
        every = (1 << len(ends)) - 1
        for subset in range(1, every + 1):
            bits = [n for n in range(len(ends)) if subset >> n & 1]
            if len(bits) == 1:
                best[subset] = self.distance_s[:, sorted(ends[bits[0]])].min(axis=1)
                continue
            split = np.full(len(self.specs), np.inf)
            part = (subset - 1) & subset
            while part:
                split = np.minimum(split, best[part] + best[subset ^ part])
                part = (part - 1) & subset
            best[subset] = (self.distance_s + split[None, :]).min(axis=1)
        return float(best[every][root])
