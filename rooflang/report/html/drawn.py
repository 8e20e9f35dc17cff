"""The blocks of a plan as a rank runs them: kernels with how they are cut, and the collectives between them."""

from __future__ import annotations

from collections.abc import Iterator

from rooflang.ir.blocks import BlockKind
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED
from rooflang.ir.layout import Transfer
from rooflang.ir.tensor import RESIDENT_ROLES
from rooflang.place.lower import LiftedOp, Value
from rooflang.place.words import cut_word
from rooflang.report.html.record import Block, Row
from rooflang.search.prepared import Prepared
from rooflang.sim.build import Built
from rooflang.sim.engine import Timeline
from rooflang.sim.explain import bound_of, critical_path

#: How a value lies along an axis that does not cut it.
_STATES = {REPLICATED: "replicated", PARTIAL: "partial", OWNER: "one rank"}


def drawn_blocks(prepared: Prepared, built: Built, timeline: Timeline) -> tuple[Block, ...]:
    """Each kind of block, by its first block; of a batch in two waves, the first."""
    stage_of = {label: stage for stage, labels in enumerate(prepared.plan.stages) for label in labels}
    critical = {step.op for stage in set(stage_of.values()) for step in critical_path(built, timeline, stage)}
    out = []
    for kind in prepared.problem.blocks.kinds:
        stage = stage_of[kind.blocks[0]]
        rows = tuple(_Rows(prepared, built, timeline, kind, stage).all(critical))
        out.append(Block(name=kind.name, labels=kind.blocks, rows=rows))
    return tuple(out)


class _Rows:
    """The rows of one block."""

    def __init__(self, prepared: Prepared, built: Built, timeline: Timeline, kind: BlockKind, stage: int) -> None:
        self.prepared, self.built, self.timeline, self.kind = prepared, built, timeline, kind
        self.words = prepared.problem.blocks.graph.words
        self.own = f"{kind.name}."
        self._maker: dict[Value, int] = {}
        self._ops = self._of_block(stage)

    def _of_block(self, stage: int) -> dict[int, int]:
        """The engine's operators of the block, each lifted one once, by the class of a rank that runs it."""
        seen: set[int] = set()
        found: dict[int, int] = {}
        for c in self.built.ranks.of_stage(stage):
            for op, _ in self.built.work[c]:
                lifted = self.built.ops[op]
                if lifted.block == self.kind.blocks[0] and not self.built.waves[op] and id(lifted) not in seen:
                    seen.add(id(lifted))
                    found[op] = c
        return dict(sorted(found.items()))

    def all(self, critical: set[int]) -> Iterator[Row]:
        """The rows in the order in which they are issued. A slice that moves nothing has none: who reads it reads what
        it is a part of."""
        begin_s = min((float(self.timeline.start_s[op]) for op in self._ops), default=0.0)
        number = 0
        for op in self._ops:
            lifted = self.built.ops[op]
            reads = tuple(dict.fromkeys(self._maker.get(value, -1) for value in lifted.reads))
            if lifted.transfer is not None and lifted.transfer.free:
                self._maker[lifted.write] = reads[0] if reads else -1
                continue
            self._maker[lifted.write] = number
            number += 1
            yield self._row(op, lifted, reads, begin_s, op in critical)

    def _row(self, op: int, lifted: LiftedOp, reads: tuple[int, ...], begin_s: float, critical: bool) -> Row:
        mode, transfer = lifted.mode, lifted.transfer
        model, timeline = self.prepared.cost, self.timeline
        spec = lifted.write[1]
        start_s, end_s = float(timeline.start_s[op]), float(timeline.end_s[op])
        return Row(
            what="kernel" if mode else "collective" if transfer else "send",
            name=lifted.tensor.name.removeprefix(self.own),
            kind=mode.op.kind if mode else transfer.collective if transfer else "send",
            group=lifted.group,
            covers=tuple(name.removeprefix(self.own) for name in mode.covers) if mode else (),
            cuts=tuple(cut_word(choice, self.words) for choice in mode.choices) if mode else (),
            lies=tuple(_STATES.get(entry) or self.words.get(entry, entry) for entry in spec),
            axes=_axes(transfer),
            reads=reads,
            weights=tuple(self._weights(lifted)),
            bytes=round(float(model.bytes(lifted.tensor, spec))),
            start_s=start_s - begin_s,
            seconds=end_s - start_s,
            bound=bound_of(self.built, timeline, op),
            critical=critical,
        )

    def _weights(self, lifted: LiftedOp) -> Iterator[tuple[str, int]]:
        if lifted.mode is not None:
            for tensor, spec in zip(lifted.mode.op.operands, lifted.mode.operands, strict=True):
                if tensor.role in RESIDENT_ROLES:
                    yield tensor.name.removeprefix(self.own), round(float(self.prepared.cost.bytes(tensor, spec)))


def _axes(transfer: Transfer | None) -> tuple[int, ...]:
    return transfer.axes if transfer is not None else ()
