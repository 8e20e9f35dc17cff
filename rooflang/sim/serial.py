"""The simulation in closed form, at many batch sizes at once, where every rank runs one operator after the other.

Claim. Let each stage be one class of equal ranks whose links nobody shares, let all of its operators be on one stream,
and let its first operator read something that the stage before sends, and one of its operators what that sends last.
Then the engine's run is known without running it:

- The operators of a stage run in program order, each from the end of the one before. For they are on one first-in,
  first-out stream; what an operator waits for on its own stage comes before it on that stream; and what it waits for on
  the stage before is sent in that stage's own order, so that all of it is there once the last of it has been read. A
  stage sends when its operators have ended, and so without a pause.
- No component is slowed down by another operator's. Compute, memory port and the ways out of a rank belong to one
  stream, which runs one operator at a time. A way into a rank is also used by sends to it, but these have ended when
  the last of them has been read.
- So an operator takes max(compute, memory, network + α), a stage the sum of that, and a value is alive from the
  operator that makes it to the last one that reads it, by their places on the stream: at one moment exits come before
  entries, so that a value that ends and one that begins are never counted together.

What is left is the beginning of a stage, from its first operator to the first one that reads what is sent to it last,
if that is another one. It depends on the sends and on these operators only, and is run by itself (`arrival`): the stage
may pause, sends and operators may slow each other down, and an operator may have ended before a value comes.

So not all layers have to be unrolled: a plan has few cases of blocks (`passage`), each stage runs some of them
(`course`), and some values live across them (`living`). `tests/sim/test_serial.py` and `test_arrival.py` compare it
with the engine on drawn plans and models: times agree to rounding, peaks to the byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.cost.tiers import HBM
from rooflang.ir.blocks import Blocks
from rooflang.ir.tensor import Tensor
from rooflang.place.plan import BlockPlan, Plan
from rooflang.sim.arrival import Arrival
from rooflang.sim.costs import LiftedCosts
from rooflang.sim.course import Courses, Opening, Stage
from rooflang.sim.csr import BoolArray, FloatArray
from rooflang.sim.living import Living
from rooflang.sim.passage import BlockRuns, Laid, Sizes
from rooflang.sim.ranks import Ranks, ranks_of
from rooflang.sim.remote import lane_name, tier_lanes
from rooflang.sim.result import Overlap
from rooflang.sim.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """Per batch size (b,): the time of a step (infinite where extents do not divide), the peak of the fullest HBM, and
    whether every memory holds its peak."""

    step_s: FloatArray
    peak_bytes: FloatArray
    fits: BoolArray

    def at(self, numbers: Sequence[int]) -> Steps:
        """Of some of the batch sizes, by number."""
        chosen = list(numbers)
        return Steps(step_s=self.step_s[chosen], peak_bytes=self.peak_bytes[chosen], fits=self.fits[chosen])


class Serial:
    """Simulates plans at all batch sizes of a cost model. What several plans lay alike is worked out once."""

    def __init__(self, blocks: Blocks, cost: CostModel, overlap: Overlap) -> None:
        self.blocks = blocks
        self.cost = cost
        self.overlap = overlap
        self._sizes = Sizes(cost)
        self._courses = Courses(blocks)
        self._living = Living(blocks, self._sizes)
        self._costs = LiftedCosts(cost)
        self._runs: dict[object, tuple[BlockPlan, BlockRuns]] = {}
        self._known: dict[object, bool] = {}
        self._sends: dict[tuple[int, str], Cost] = {}
        self._arrivals: dict[object, Arrival] = {}

    def steps(self, plan: Plan, ats: Sequence[int] | None = None) -> Steps | None:
        """What the engine would find for each batch size, or for some of them by number; None where the claim's
        conditions do not hold."""
        if self.overlap == "two-batch" or plan.control or any(plan.streams.values()):
            return None
        runs = self._runs_of(plan)
        stages = self._courses.of(plan, runs)
        if stages is None or not self._plain(plan, runs):
            return None
        asked = range(*self._sizes.batches) if ats is None else ats
        sends = [[self._send(*sent, number) for sent in stage.sent.items()] for number, stage in enumerate(stages)]
        arrivals = [self._arrival(before, stage.opening, asked) for before, stage in zip([[], *sends], stages)]
        spans = [self._span_s(*each) for each in zip(stages, sends, arrivals, [*arrivals[1:], None])]
        late = [None if arrival is None else arrival.late for arrival in arrivals]
        peaks = [self._living.peaks(stage, len(stages), each) for stage, each in zip(stages, late)]
        tiers = dict.fromkeys(tier for peak in peaks for tier in peak)
        held = {tier: np.max([peak[tier] for peak in peaks if tier in peak], axis=0) for tier in tiers}
        found = Steps(
            step_s=np.max(spans, axis=0),
            peak_bytes=held[HBM],
            fits=np.all([peak <= self._room_bytes(tier) for tier, peak in held.items()], axis=0),
        )
        return found.at(asked)

    def _room_bytes(self, tier: str) -> int:
        cluster = self.cost.cluster
        return round(cluster.device.hbm_bytes if tier == HBM else cluster.tier(tier).capacity_bytes)

    def _runs_of(self, plan: Plan) -> dict[str, BlockRuns]:
        """How the blocks of each kind run."""
        out = {}
        for kind in self.blocks.kinds:
            block = plan.blocks[kind.name]
            ports = (*kind.inputs, *kind.outputs)
            borders = tuple(plan.boundary[self.blocks.port_group[(kind.name, port.name)]] for port in ports)
            key = (kind.name, borders, _identity(block))
            if key not in self._runs:
                # The plan is kept, so that the ids of its modes and transfers stay theirs.
                self._runs[key] = block, BlockRuns(plan, self.blocks, kind, self._costs, self._sizes)
            out[kind.name] = self._runs[key][1]
        return out

    def _send(self, laid: Laid, tensor: Tensor, stage: int) -> Cost:
        """The cost of handing a value to the next stage: the same record for what costs the same."""
        first = stage * self.cost.mesh.gpus
        level = self.cost.cluster.level_between(first, first + self.cost.mesh.gpus)
        key = self._sizes.number(tensor, laid[1]), level.name
        if key not in self._sends:
            self._sends[key] = self.cost.send(tensor, laid[1], stage)
        return self._sends[key]

    def _arrival(self, sends: Sequence[Cost], opening: Opening, ats: Sequence[int]) -> Arrival | None:
        """The beginning of a stage at these batch sizes; None where it begins when all has arrived."""
        if len(opening) < 2:
            return None
        ops = [(self._costs.of(op), waits) for op, waits in opening]
        # The tables keep every cost, and so its id.
        key = tuple(map(id, sends)), tuple((id(cost), waits) for cost, waits in ops)
        if key not in self._arrivals:
            self._arrivals[key] = Arrival(sends, ops, self._sizes.batches)
        self._arrivals[key].ask(ats)
        return self._arrivals[key]

    def _span_s(self, stage: Stage, sends: Sequence[Cost], begins: Arrival | None, after: Arrival | None) -> FloatArray:
        """The time of a stage, as it begins, and as the next one does after it."""
        none = np.zeros(self._sizes.batches)
        local = sum((send.local_s for send in sends), none)
        exposed = sum((send.exposed_s for send in sends), none)
        for passage, count in stage.counts.items():
            local = local + count * passage.local_s
            exposed = exposed + count * passage.exposed_s
        if begins is not None:
            exposed = exposed + begins.ops_s
        if after is not None:
            exposed = exposed + after.sends_s
        idle = none if begins is None else begins.idle_s
        return idle + (np.maximum(local, exposed) if self.overlap == "perfect" else local + exposed)

    def _plain(self, plan: Plan, runs: Mapping[str, BlockRuns]) -> bool:
        """Is a stage one class of ranks, and has every rank links of its own, at their full rate and without detours,
        to all that the plan uses?"""
        key = (tuple(runs.values()), len(plan.stages))
        if key not in self._known:
            stages = len(plan.stages)
            traffic = Traffic.of(plan, self.cost.assumptions)
            colour = (0,) * (plan.mesh.gpus * stages)
            ranks = ranks_of(self.cost.cluster, plan.mesh, stages, traffic, colour, tiers=tier_lanes(plan))
            lanes = _lanes(ranks, stages)
            self._known[key] = lanes is not None and all(run.whole.levels <= lanes for run in runs.values())
        return self._known[key]


def _lanes(ranks: Ranks, stages: int) -> frozenset[str] | None:
    """The links that every rank has for itself; None if a stage is not one class of ranks, or they are not all at their
    full rate and without detours."""
    if len(ranks.stage) > stages or not _apart(ranks):
        return None
    for team in (*ranks.alone, *(team for teams in ranks.teams.values() for team in teams)):
        loads = [load for shares in team.shares.values() for load in shares]
        links = [link for _, link, _, _ in loads]
        if team.extra_s or len(set(links)) < len(links) or any(load[2:] != (1, 1.0) for load in loads):
            return None
    return frozenset.intersection(*(frozenset(map(lane_name, team.shares)) for team in ranks.alone))


def _apart(ranks: Ranks) -> bool:
    """Do no two classes of ranks use a link, such as that of the memory of two stages on one board?"""
    users = [{link for shares in team.shares.values() for _, link, _, _ in shares} for team in ranks.alone]
    return sum(map(len, users)) == len(frozenset[int]().union(*users))


def _identity(block: BlockPlan) -> object:
    """What tells plans of a kind apart. Modes and transfers go by their ids: hashing them is far slower."""
    paths = [tuple((key, tuple(map(id, path))) for key, path in each.items()) for each in (block.paths, block.exits)]
    modes = tuple(map(id, block.modes.values()))
    return (modes, *paths, tuple(sorted(block.tiers.items())), tuple(sorted(block.aliases.items())))
