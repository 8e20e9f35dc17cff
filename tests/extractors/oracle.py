"""Optimal plans by trying them all, written against the records of `eqsat` and `cost` alone."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from rooflang.cost import CostModel
from rooflang.eqsat import Arrival, FrozenBlock, Hold, SaturationStats, StopReason
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Spec
from rooflang.ir.layout import Choice, Mode, Transfer, collective_of, make_mode, make_transfer
from rooflang.ir.op import op_kind, signature
from rooflang.ir.tensor import RESIDENT_ROLES, Role, Tensor

STATS = SaturationStats(
    enodes={},
    facts={},
    classes=0,
    views=0,
    iterations=(),
    stop=StopReason.SATURATED,
    rules=(),
    commands=0,
    load_s=0.0,
    saturate_s=0.0,
    freeze_s=0.0,
)


def enumerated(kind: BlockKind, axes: int, *, owners: bool = False, tiers: Sequence[str] = ("hbm",)) -> FrozenBlock:
    """All layouts of a block, enumerated from its operators' signatures. Nothing is fused."""
    modes: list[Mode] = []
    partial: set[str] = set()
    for op in kind.ops:
        choices: list[Choice] = [REPLICATED] if op_kind(op.kind).pure else []
        choices += [OWNER] if owners and op_kind(op.kind).pure else []
        for cut in signature(op):
            summands = [t.name for t, entry in zip(op.operands, cut.operands) if entry == PARTIAL]
            if partial.issuperset(summands):
                choices.append(cut)
                partial |= {op.output.name} if cut.out == PARTIAL else set()
        found = {(m.operands, m.out): m for c in product(choices, repeat=axes) for m in [make_mode(op, c)]}
        modes += found.values()
    made = {op.output.name for op in kind.ops}
    values = {t.name: t for op in kind.ops for t in (*op.operands, op.output)}
    transfers = [
        step
        for name in (*made, *(t.name for t in kind.inputs))
        if values[name].role not in RESIDENT_ROLES
        for step in _steps(values[name], _entries(values[name], modes, partial, owners), axes)
    ]
    return FrozenBlock(
        kind=kind,
        axes=axes,
        modes=tuple(modes),
        transfers=tuple(transfers),
        holds=tuple(
            Hold(leaf=leaf.name, spec=spec, tier=tier)
            for leaf in kind.leaves
            for spec in product([*_labels(leaf, modes), REPLICATED, OWNER][: None if owners else -1], repeat=axes)
            for tier in tiers
        ),
        arrivals=tuple(
            Arrival(port=port.name, spec=spec) for port in kind.inputs for spec in _borders(port, modes, axes)
        ),
        exits={port.name: tuple(_borders(port, modes, axes)) for port in kind.outputs},
        aliases={},
        stats=STATS,
    )


def _labels(tensor: Tensor, modes: Sequence[Mode]) -> list[str]:
    used = {
        entry
        for mode in modes
        for t, spec in zip((*mode.op.operands, mode.op.output), (*mode.operands, mode.out))
        if t.name == tensor.name
        for entry in spec
    }
    return [label for label in tensor.dims if label in used]


def _entries(tensor: Tensor, modes: Sequence[Mode], partial: set[str], owners: bool) -> list[str]:
    return [
        *_labels(tensor, modes),
        REPLICATED,
        *([PARTIAL] if tensor.name in partial else []),
        *([OWNER] if owners else []),
    ]


def _borders(tensor: Tensor, modes: Sequence[Mode], axes: int) -> Iterator[Spec]:
    return product([REPLICATED, *_labels(tensor, modes)], repeat=axes)


def _steps(tensor: Tensor, entries: Sequence[str], axes: int) -> Iterator[Transfer]:
    for before, after in product(product(entries, repeat=axes), repeat=2):
        changes = {(old, new) for old, new in zip(before, after) if old != new}
        if len(changes) == 1 and collective_of(*next(iter(changes))):
            yield make_transfer(tensor.name, before, after)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One way to run a block: C, N, bytes at rest, of its caches, and the bytes its largest kernel works on."""

    local_s: float
    exposed_s: float
    rests: float
    caches: float
    live: float
    modes: Mapping[str, Mode]


class _First:
    """The first of the tensors that equal one."""

    def __init__(self, block: FrozenBlock) -> None:
        self.aliases = block.aliases

    def __call__(self, name: str) -> str:
        return self.aliases.get(name, name)


class Oracle:
    """Every plan of a graph at one batch size. What it finds it keeps as long as it lives, which is one test module."""

    def __init__(self, blocks: Blocks, frozen: Mapping[str, FrozenBlock], cost: CostModel) -> None:
        self.blocks, self.frozen, self.cost = blocks, frozen, cost
        self._known: dict[int, tuple[float, float, float]] = {}
        self.borders = self._borders()

    def _borders(self) -> dict[int, list[Spec]]:
        found: dict[int, list[Spec]] = {}
        for name, block in self.frozen.items():
            allowed = {port: set(specs) for port, specs in block.exits.items()}
            for arrival in block.arrivals:
                allowed.setdefault(arrival.port, set()).add(arrival.spec)
            for port in (*block.kind.inputs, *block.kind.outputs):
                group = self.blocks.port_group[(name, port.name)]
                mine = allowed.get(port.name, set())
                found[group] = sorted(mine & set(found[group])) if group in found else sorted(mine)
        return found

    def boundaries(self) -> Iterator[dict[int, Spec]]:
        """Every layout of every port group."""
        for specs in product(*self.borders.values()):
            yield dict(zip(self.borders, specs))

    def ways(self, name: str, boundary: Mapping[int, Spec]) -> list[Block]:
        """Every way to run a block of a kind under a boundary."""
        ports = {
            port.name: boundary[self.blocks.port_group[(name, port.name)]]
            for port in (*self.frozen[name].kind.inputs, *self.frozen[name].kind.outputs)
        }
        return self._ways(name, tuple(sorted(ports.items())))

    @cache  # noqa: B019
    def _ways(self, name: str, ports: tuple[tuple[str, Spec], ...]) -> list[Block]:
        block = self.frozen[name]
        found = [self._way(block, modes, dict(ports)) for modes in self._choices(block)]
        return [way for way in found if way is not None]

    def _choices(self, block: FrozenBlock) -> Iterator[dict[str, Mode]]:
        """A mode for every tensor that the exits need, identities left out."""
        first = _First(block)
        given = {t.name for t in (*block.kind.leaves, *block.kind.inputs)}
        makers: dict[str, list[Mode]] = {}
        for mode in block.modes:
            if all(first(t.name) != first(mode.op.output.name) for t in mode.op.operands):
                makers.setdefault(first(mode.op.output.name), []).append(mode)

        def choose(need: list[str], chosen: dict[str, Mode]) -> Iterator[dict[str, Mode]]:
            left = [name for name in need if name not in chosen and name not in given]
            if not left:
                yield chosen
                return
            for mode in makers.get(left[0], []):
                yield from choose([*left[1:], *(first(t.name) for t in mode.op.operands)], {**chosen, left[0]: mode})

        yield from choose([first(t.name) for t in block.kind.outputs], {})

    def _way(self, block: FrozenBlock, modes: Mapping[str, Mode], ports: Mapping[str, Spec]) -> Block | None:
        first = _First(block)
        made = {name: mode.out for name, mode in modes.items()}
        made |= {first(t.name): ports[t.name] for t in block.kind.inputs}
        wanted: dict[str, set[Spec]] = {}
        leaves: dict[tuple[str, Spec], Tensor] = {}
        held = {(hold.leaf, hold.spec) for hold in block.holds}
        for mode in modes.values():
            for tensor, spec in zip(mode.op.operands, mode.operands):
                if first(tensor.name) in made:
                    wanted.setdefault(first(tensor.name), set()).add(spec)
                elif (first(tensor.name), spec) not in held:
                    return None
                else:
                    leaves[(first(tensor.name), spec)] = tensor
        for port in block.kind.outputs:
            wanted.setdefault(first(port.name), set()).add(ports[port.name])
        local = exposed = live = 0.0
        for mode in modes.values():
            seconds = self._seconds(mode)
            local, exposed, live = local + seconds[0], exposed + seconds[1], max(live, seconds[2])
        for name, targets in wanted.items():
            exposed += self._deliver(block.kind.name, name, made[name], frozenset(targets))
        if not np.isfinite(local + exposed):
            return None
        sizes = {key: float(self.cost.bytes(t, key[1])) for key, t in leaves.items() if t.role in RESIDENT_ROLES}
        caches = sum(s for key, s in sizes.items() if leaves[key].role in (Role.KV_CACHE, Role.STATE))
        rests = sum(sizes.values()) - caches
        return Block(local_s=local, exposed_s=exposed, rests=rests, caches=caches, live=live, modes=modes)

    def _seconds(self, mode: Mode) -> tuple[float, float, float]:
        """C, N and live bytes of a kernel; kept by the mode's identity, since the blocks hold all modes."""
        if id(mode) not in self._known:
            cost = self.cost.mode(mode)
            self._known[id(mode)] = (float(cost.local_s), float(cost.exposed_s), self._live(mode))
        return self._known[id(mode)]

    def _live(self, mode: Mode) -> float:
        op = mode.op
        sizes = {t.name: self.cost.bytes(t, s) for t, s in zip(op.operands, mode.operands)
                 if t.role in (Role.ACTIVATION, Role.OUTPUT)}  # fmt: skip
        out = 0.0 if op_kind(op.kind).in_place is not None else self.cost.bytes(op.output, mode.out)
        return float(sum(sizes.values()) + out)

    @cache  # noqa: B019
    def _deliver(self, kind: str, name: str, made: Spec, targets: frozenset[Spec]) -> float:
        """Least network time to have a value in all of some layouts: Dijkstra's algorithm over sets of layouts."""
        block = self.frozen[kind]
        tensor = {t.name: t for op in block.kind.ops for t in (*op.operands, op.output)}[name]
        steps = [s for s in block.transfers if block.aliases.get(s.tensor, s.tensor) == name]
        costs: dict[tuple[Spec, Spec], float] = {}
        for step in steps:
            cost = self.cost.transfer(tensor, step)
            if np.isfinite(cost.local_s):
                costs[(step.before, step.after)] = float(cost.exposed_s)
        start = frozenset([made])
        heap: list[tuple[float, int, frozenset[Spec]]] = [(0.0, 0, start)]
        best = {start: 0.0}
        count = 0
        while heap:
            seconds, _, have = heapq.heappop(heap)
            if seconds > best[have]:
                continue
            if targets <= have:
                return seconds
            for (before, after), step_s in costs.items():
                if before in have and after not in have:
                    more, then = have | {after}, seconds + step_s
                    if then < best.get(more, float("inf")):
                        best[more] = then
                        count += 1
                        heapq.heappush(heap, (then, count, more))
        return float("inf")


def best_value(
    oracle: Oracle,
    counts: Sequence[Mapping[str, int]],
    objective: str,
    *,
    capacity_bytes: float = float("inf"),
    fixed: Mapping[int, Spec] | None = None,
    sends: Callable[[Mapping[int, Spec]], Sequence[float]] | None = None,
) -> float:
    """The least objective of the slowest of some stages, which have `counts` blocks of each kind. `sends` gives, for a
    boundary, the seconds that each stage sends."""
    best = float("inf")
    for boundary in oracle.boundaries():
        if any(boundary[group] != spec for group, spec in (fixed or {}).items()):
            continue
        sent = sends(boundary) if sends else [0.0] * len(counts)
        options = [oracle.ways(name, boundary) for name in oracle.frozen]
        for ways in product(*(_pareto(mine) if np.isinf(capacity_bytes) else mine for mine in options)):
            picked = dict(zip(oracle.frozen, ways))
            best = min(best, _value(picked, counts, sent, objective, capacity_bytes))
    return best


def _value(
    picked: Mapping[str, Block],
    counts: Sequence[Mapping[str, int]],
    sent: Sequence[float],
    objective: str,
    capacity_bytes: float,
) -> float:
    worst = 0.0
    for stage, send_s in zip(counts, sent):
        local = sum(stage[name] * way.local_s for name, way in picked.items())
        exposed = send_s + sum(stage[name] * way.exposed_s for name, way in picked.items())
        rests = sum(stage[name] * (way.rests + len(counts) * way.caches) for name, way in picked.items())
        live = max((way.live for name, way in picked.items() if stage[name]), default=0.0)
        if rests + live > capacity_bytes:
            return float("inf")
        worst = max(worst, max(local, exposed) if objective == "max" else local + exposed)
    return worst


def _pareto(ways: Sequence[Block]) -> list[Block]:
    kept: list[Block] = []
    for way in sorted(ways, key=lambda w: (w.local_s, w.exposed_s)):
        if not kept or way.exposed_s < kept[-1].exposed_s:
            kept.append(way)
    return kept
