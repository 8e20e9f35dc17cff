"""The course of a plan: which blocks each stage runs, what they find there, and what is handed on.

It is what `lower` does, block by block instead of operator by operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rooflang.ir.blocks import Blocks
from rooflang.ir.tensor import Tensor
from rooflang.place.lower import LiftedOp
from rooflang.place.plan import Plan
from rooflang.sim.passage import BlockRuns, Laid, Passage

#: Ports that a stage hands on: the actual name, the port group, and what each is for the last block that reads it.
_Handed = tuple[tuple[str, int, Tensor], ...]

#: Operators, each with the numbers of what it waits for of what is sent.
Opening = tuple[tuple[LiftedOp, frozenset[int]], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Visit:
    """A block on a stage; `needs` and `makes` are those of the passage by their actual names."""

    label: str
    passage: Passage
    needs: tuple[Laid, ...]
    makes: tuple[Laid, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class Stage:
    """What a stage runs, what is sent to it and what it sends, in that order, and what the step leaves behind on it."""

    received: Mapping[Laid, Tensor]
    visits: list[Visit] = field(default_factory=list)
    sent: dict[Laid, Tensor] = field(default_factory=dict)
    outputs: set[Laid] = field(default_factory=set)

    @property
    def counts(self) -> Counter[Passage]:
        """How often each passage occurs."""
        return Counter(visit.passage for visit in self.visits)

    def opening(self) -> Opening | None:
        """The operators of the stage up to the first one that reads what is sent to it last, each with what it reads of
        what is sent, by number; nothing where nothing is sent. None where the first operator reads nothing of it, or
        no operator the last."""
        number = {laid: place for place, laid in enumerate(self.received)}
        out: list[tuple[LiftedOp, frozenset[int]]] = []
        for visit in self.visits if number else ():
            actual = dict(zip(visit.passage.needs, visit.needs))
            for op in visit.passage.placed.ops:
                read = (actual.get(value[:2]) for value in op.reads)
                out.append((op, frozenset(number[laid] for laid in read if laid in number)))
                if not out[0][1]:
                    return None
                if len(number) - 1 in out[-1][1]:
                    return tuple(out)
        return None if number else ()


class Courses:
    """The courses of plans over the blocks of a graph."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self._handed: dict[tuple[tuple[str, ...], ...], tuple[_Handed, ...]] = {}

    def of(self, plan: Plan, runs: Mapping[str, BlockRuns]) -> tuple[Stage, ...] | None:
        """The stages of a plan whose kinds of block run so; None where something is read that no block has made
        under one name."""
        if plan.stages not in self._handed:
            self._handed[plan.stages] = tuple(self._ports(plan.stages))
        operands: dict[str, str] = {}  # what stands for the output of each identity that was removed, by actual names
        out: list[Stage] = []
        for labels, handed in zip(plan.stages, self._handed[plan.stages]):
            stage = Stage(received=out[-1].sent if out else {})
            made = set(stage.received)
            for label in labels:
                if not self._visit(stage, made, label, runs[self.blocks.kind_of[label]], operands):
                    return None
            for name, group, tensor in handed:
                stage.sent[_source(operands, name), plan.boundary[group]] = tensor
            if not made.issuperset(stage.sent):
                return None
            out.append(stage)
        return tuple(out)

    def _visit(self, stage: Stage, made: set[Laid], label: str, run: BlockRuns, operands: dict[str, str]) -> bool:
        """Run a block where these values have been made; false where that does not go."""
        names = self.blocks.rename[label]
        operands.update({names[name]: names[operand] for name, operand in run.block.aliases.items()})

        def actual(laid: Laid) -> Laid:
            return _source(operands, names[laid[0]]), laid[1]

        if len({_source(operands, names[name]) for name in run.inputs}) < len(run.inputs):
            return False
        there = frozenset(laid for laid in run.whole.brought if actual(laid) in made)
        passage = run.passage(there) if there else run.whole
        visit = Visit(
            label=label,
            passage=passage,
            needs=tuple(map(actual, passage.needs)),
            makes=tuple(map(actual, passage.makes)),
        )
        if any(laid not in made and mine[0] not in run.leaves for mine, laid in zip(passage.needs, visit.needs)):
            return False
        made.update(visit.makes)
        stage.visits.append(visit)
        outputs = ((source, spec) for name, source, spec in run.outputs if names[name] in self.blocks.graph.outputs)
        stage.outputs.update(map(actual, outputs))
        return made.issuperset(stage.outputs)

    def _ports(self, stages: tuple[tuple[str, ...], ...]) -> Iterator[_Handed]:
        """What each stage hands to the next one: what is made up to it and read after it."""
        blocks, made = self.blocks, set[str]()
        for number, labels in enumerate(stages):
            for label in labels:
                made.update(blocks.rename[label][port.name] for port in blocks.by_name[blocks.kind_of[label]].outputs)
            later: dict[str, tuple[str, int, Tensor]] = {}
            for label in (label for labels in stages[number + 1 :] for label in labels):
                kind = blocks.by_name[blocks.kind_of[label]]
                for port in kind.inputs:
                    name = blocks.rename[label][port.name]
                    if name in made:
                        later[name] = (name, blocks.port_group[(kind.name, port.name)], port)
            yield tuple(later.values())


def _source(operands: Mapping[str, str], actual: str) -> str:
    while actual in operands:
        actual = operands[actual]
    return actual
