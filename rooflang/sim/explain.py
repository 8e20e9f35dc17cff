"""Why a step takes as long as it does: its critical path, what bounds each operator on it, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rooflang.cost.model import CostModel
from rooflang.place.lower import PlacedGraph
from rooflang.sim.build import Built, build
from rooflang.sim.cache import TIMELINES
from rooflang.sim.engine import Timeline
from rooflang.sim.fleet import Override
from rooflang.sim.result import Overlap, SimResult
from rooflang.sim.simulate import result_of, simulate
from rooflang.sim.whatif import variants
from rooflang.units import show_seconds

#: What bounds an operator that waits longer for the first byte than for all that follow.
LATENCY = "latency"

#: A gain that is shown: a tenth of a percent has to come out of rounding it.
_FELT = 5e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """An operator on the critical path. `bound` is what it waited for last: `compute`, `memory`, a fabric level or
    `latency`; `alone_s` is what it takes when nothing else runs."""

    op: int
    name: str
    block: str
    group: str
    bound: str
    start_s: float
    end_s: float
    alone_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a part of the critical path adds up to; `share` is its part of the whole path."""

    name: str
    seconds: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The step time if one thing were `factor` times better; `gain` is by how much throughput would grow."""

    change: str
    factor: float
    step_s: float
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The slowest stage of a step explained: `path` in order of time, and its sums by group, by operator (all layers
    together) and by bound, largest first; `what_if` by gain.

    The path is that of the run itself. Under perfect overlap the step is shorter than the path: the smaller of C and N
    is taken off as a whole.
    """

    result: SimResult
    path: tuple[PathStep, ...]
    by_group: tuple[Share, ...]
    by_operator: tuple[Share, ...]
    by_bound: tuple[Share, ...]
    what_if: tuple[WhatIf, ...]

    @property
    def path_s(self) -> float:
        """Length of the path."""
        return sum(step.seconds for step in self.path)

    def lines(self, *, top: int = 8) -> list[str]:
        """The explanation in words, one line each."""
        out = [f"step {show_seconds(self.result.step_s)} ({self.result.overlap} overlap), bound by {self._bounds()}"]
        out += [f"  {s.share:6.1%}  {show_seconds(s.seconds):>9}  {s.name}" for s in self.by_operator[:top]]
        felt = [change for change in self.what_if if abs(change.gain) >= _FELT]
        out += [f"  {w.gain:+6.1%} throughput if {w.change} were {w.factor - 1:.0%} better" for w in felt]
        if len(felt) < len(self.what_if):
            out.append("  nothing from better " + ", ".join(w.change for w in self.what_if if w not in felt))
        return out

    def _bounds(self) -> str:
        return ", ".join(f"{share.name} {share.share:.0%}" for share in self.by_bound if share.share >= 0.005)


def explain(
    placed: PlacedGraph,
    cost: CostModel,
    *,
    tokens: float,
    overlap: Overlap = "perfect",
    overrides: Sequence[Override] = (),
    factor: float = 1.1,
    what_if: bool = True,
) -> Explanation:
    """Explain one step of a placed graph. `factor` is how much better each thing is made in turn for `what_if`: HBM
    bandwidth, each fabric level, the latencies, the peak of each dtype that the graph computes in.

    Memory is not checked. Raises `PlacementError` for sizes that do not divide.
    """
    built = build(placed, cost, overlap=overlap, overrides=overrides)
    timeline = TIMELINES.run(built.program)
    result = result_of(built, timeline, cost, tokens, overlap)
    slowest = max(range(len(result.stages)), key=lambda s: result.stages[s].span_s(overlap))
    path = critical_path(built, timeline, slowest)
    changes: list[WhatIf] = []
    if what_if:
        for change, better in variants(placed, cost, factor):
            step_s = simulate(
                placed, better, tokens=tokens, overlap=overlap, overrides=overrides, check_memory=False
            ).step_s
            gain = result.step_s / step_s - 1.0
            changes.append(WhatIf(change=change, factor=factor, step_s=step_s, gain=gain))
    return Explanation(
        result=result,
        path=path,
        by_group=_shares((step.group, step.seconds) for step in path),
        by_operator=_shares((_layerless(step), step.seconds) for step in path),
        by_bound=_shares((step.bound, step.seconds) for step in path),
        what_if=tuple(sorted(changes, key=lambda change: (-change.gain, change.change))),
    )


def critical_path(built: Built, timeline: Timeline, stage: int) -> tuple[PathStep, ...]:
    """The chain of operators of a stage that ends last, each waiting for the one before, in order of time.

    Of several predecessors that end last, the one of the stage itself is taken, then the first. Operators that take no
    time are left out.
    """
    starts, ends = timeline.start_s.tolist(), timeline.end_s.tolist()
    pred_start, pred = built.program.pred_start.tolist(), built.program.pred.tolist()
    own = [op for op, lifted in enumerate(built.ops) if lifted.stage == stage]
    op = max(own, key=lambda candidate: (ends[candidate], candidate))
    path: list[int] = []
    while True:
        if ends[op] > starts[op]:
            path.append(op)
        before = pred[pred_start[op] : pred_start[op + 1]]
        if not before:
            break
        op = max(before, key=lambda b: (ends[b], built.ops[b].stage == stage, -b))
        if built.ops[op].stage != stage:
            break
    return tuple(_step(built, timeline, op) for op in reversed(path))


def _step(built: Built, timeline: Timeline, op: int) -> PathStep:
    lifted, cost = built.ops[op], built.costs[op]
    network_s = max(cost.levels_s.values(), default=0.0) + cost.alpha_s
    return PathStep(
        op=op,
        name=lifted.name,
        block=lifted.block,
        group=lifted.group,
        bound=bound_of(built, timeline, op),
        start_s=float(timeline.start_s[op]),
        end_s=float(timeline.end_s[op]),
        alone_s=max(cost.compute_s, cost.memory_s, network_s),
    )


def bound_of(built: Built, timeline: Timeline, op: int) -> str:
    """What an operator waited for last: the resource that its last component left, or `latency`."""
    program = built.program
    alpha_s, start_s = float(program.op_alpha_s[op]), float(timeline.start_s[op])
    last_s, bound = 0.0, LATENCY
    for row in range(int(program.component_start[op]), int(program.component_start[op + 1])):
        end_s = float(timeline.component_end_s[row])
        is_net = bool(program.component_is_net[row])
        if end_s + (alpha_s if is_net else 0.0) > last_s:
            last_s = end_s + (alpha_s if is_net else 0.0)
            kind = built.resource_kind(int(program.component_resource[row]))
            bound = LATENCY if is_net and alpha_s > end_s - start_s else kind
    return bound


def _layerless(step: PathStep) -> str:
    """The operator's name without that of its block, so that layers add up."""
    return step.name.removeprefix(step.block).lstrip(".") if step.block else step.name


def _shares(parts: Iterable[tuple[str, float]]) -> tuple[Share, ...]:
    sums: dict[str, float] = {}
    for name, seconds in parts:
        sums[name] = sums.get(name, 0.0) + seconds
    total = sum(sums.values()) or 1.0
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Share(name=name, seconds=seconds, share=seconds / total) for name, seconds in ordered)
