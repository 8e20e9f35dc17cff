"""The course of a plan: which blocks each stage runs, what they find there, and what is handed on.

It is what `lower` does, block by block instead of operator by operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rooflang.ir.blocks import Blocks
from rooflang.ir.layout import source_of
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """What a stage runs, what is sent to it and what it sends, in that order, and what the step leaves behind on it.
    `counts` is how often each passage occurs.

    `opening` are its operators up to the first one that reads what is sent to it last, each with what it reads of what
    is sent, by number; nothing where nothing is sent."""

    received: Mapping[Laid, Tensor]
    visits: tuple[Visit, ...]
    counts: Mapping[Passage, int]
    sent: Mapping[Laid, Tensor]
    outputs: frozenset[Laid]
    opening: Opening


class Courses:
    """The courses of plans over the blocks of a graph. Plans that differ in how layers are cut into stages have many
    stages in common."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self._handed: dict[tuple[tuple[str, ...], ...], tuple[_Handed, ...]] = {}
        self._operands: dict[tuple[BlockRuns, ...], dict[str, str]] = {}
        self._stages: dict[object, Stage | None] = {}

    def of(self, plan: Plan, runs: Mapping[str, BlockRuns]) -> tuple[Stage, ...] | None:
        """The stages of a plan whose kinds of block run so. None where something is read that no block has made under
        one name, or where the first operator of a stage reads nothing of what is sent to it, or none the last of it."""
        if plan.stages not in self._handed:
            self._handed[plan.stages] = tuple(self._ports(plan.stages))
        ways, received, out = tuple(runs.values()), dict[Laid, Tensor](), list[Stage]()
        if ways not in self._operands:
            self._operands[ways] = dict(self._removed(runs))
        operands = self._operands[ways]
        for labels, handed in zip(plan.stages, self._handed[plan.stages]):
            sent = {(source_of(operands, name), plan.boundary[group]): tensor for name, group, tensor in handed}
            # Ports are the graph's, so that their ids stay theirs.
            ports = tuple((laid, id(tensor)) for each in (received, sent) for laid, tensor in each.items())
            key = (labels, ways, len(sent), ports)
            if key not in self._stages:
                self._stages[key] = self._stage(labels, runs, operands, received, sent)
            stage = self._stages[key]
            if stage is None:
                return None
            out.append(stage)
            received = sent
        return tuple(out)

    def _removed(self, runs: Mapping[str, BlockRuns]) -> Iterator[tuple[str, str]]:
        """The output of each identity that was removed and the operand that stands for it, by actual names."""
        for label in self.blocks.sequence:
            names, run = self.blocks.rename[label], runs[self.blocks.kind_of[label]]
            yield from ((names[name], names[operand]) for name, operand in run.block.aliases.items())

    def _stage(
        self,
        labels: tuple[str, ...],
        runs: Mapping[str, BlockRuns],
        operands: Mapping[str, str],
        received: Mapping[Laid, Tensor],
        sent: Mapping[Laid, Tensor],
    ) -> Stage | None:
        """A stage of these blocks; None where that does not go."""
        made, outputs = set(received), set[Laid]()
        visits: list[Visit] = []
        for label in labels:
            visit = self._visit(made, label, runs[self.blocks.kind_of[label]], operands)
            if visit is None:
                return None
            made.update(visit.makes)
            visits.append(visit)
            outputs.update(self._outputs(label, runs[self.blocks.kind_of[label]], operands))
            if not made.issuperset(outputs):
                return None
        opening = _opening(received, visits)
        if not made.issuperset(sent) or opening is None:
            return None
        return Stage(
            received=received,
            visits=tuple(visits),
            counts=Counter(visit.passage for visit in visits),
            sent=sent,
            outputs=frozenset(outputs),
            opening=opening,
        )

    def _visit(self, made: set[Laid], label: str, run: BlockRuns, operands: Mapping[str, str]) -> Visit | None:
        """A block where these values have been made; None where that does not go."""
        names = self.blocks.rename[label]

        def actual(laid: Laid) -> Laid:
            return source_of(operands, names[laid[0]]), laid[1]

        if len({source_of(operands, names[name]) for name in run.inputs}) < len(run.inputs):
            return None
        there = frozenset(laid for laid in run.whole.brought if actual(laid) in made)
        passage = run.passage(there) if there else run.whole
        needs = tuple(map(actual, passage.needs))
        if any(laid not in made and mine[0] not in run.leaves for mine, laid in zip(passage.needs, needs)):
            return None
        return Visit(label=label, passage=passage, needs=needs, makes=tuple(map(actual, passage.makes)))

    def _outputs(self, label: str, run: BlockRuns, operands: Mapping[str, str]) -> Iterator[Laid]:
        """What the step leaves behind of a block."""
        names = self.blocks.rename[label]
        for name, source, spec in run.outputs:
            if names[name] in self.blocks.graph.outputs:
                yield source_of(operands, names[source]), spec

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


def _opening(received: Mapping[Laid, Tensor], visits: Sequence[Visit]) -> Opening | None:
    """The opening of a stage; None where the first operator reads nothing of what is sent, or no operator the last."""
    number = {laid: place for place, laid in enumerate(received)}
    out: list[tuple[LiftedOp, frozenset[int]]] = []
    for visit in visits if number else ():
        actual = dict(zip(visit.passage.needs, visit.needs))
        for op in visit.passage.placed.ops:
            read = (actual.get(value[:2]) for value in op.reads)
            out.append((op, frozenset(number[laid] for laid in read if laid in number)))
            if not out[0][1]:
                return None
            if len(number) - 1 in out[-1][1]:
                return tuple(out)
    return None if number else ()
