"""What fills the memories of a stage: leaves that rest there, and in HBM the values that live within its blocks and
across them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.ir.blocks import Blocks
from rooflang.place.lower import Resident
from rooflang.sim.course import Stage
from rooflang.sim.csr import FloatArray, IntArray
from rooflang.sim.emit import PER_WAVE
from rooflang.sim.passage import Ending, Kept, Laid, Passage, Sizes

#: A block, what ends in it, and how many values of which sizes, by number, live all through it.
_Case = tuple[Kept, tuple[Ending, ...], tuple[tuple[int, int], ...]]


@dataclass(slots=True)
class _Life:
    """A home: its size by number, the block that makes it (-1: it is there from the start), and the block and the place
    in it where it is read last."""

    size: int
    begins: int
    ends: int
    place: int = 0


class Living:
    """Peaks of memories, of stages whose blocks are those of one graph."""

    def __init__(self, blocks: Blocks, sizes: Sizes) -> None:
        self.blocks = blocks
        self.sizes = sizes
        self._rests: dict[Passage, dict[str, tuple[FloatArray, FloatArray]]] = {}
        self._peaks: dict[_Case, FloatArray] = {}
        self._stages: dict[Stage, list[_Case]] = {}
        self._known: dict[tuple[Stage, int], dict[str, FloatArray]] = {}

    def peaks(self, stage: Stage, waves: int, late: IntArray | None) -> dict[str, FloatArray]:
        """The peak (b,) of each memory of a rank of a stage that holds caches and states of so many waves. `late`
        (received, b) says how many operators of the stage have ended when a value begins to arrive; None: none ever."""
        if late is not None:
            return self._with(stage, waves, list(self._early_peaks(stage, late)))
        if (stage, waves) not in self._known:
            self._known[stage, waves] = self._with(stage, waves, [])
        return self._known[stage, waves]

    def _with(self, stage: Stage, waves: int, early: list[FloatArray]) -> dict[str, FloatArray]:
        """The peaks of a stage, given those of HBM in its first blocks."""
        peaks = {HBM: np.max([*early, *map(self._peak, set(self._cases(stage)[len(early) :]))], axis=0)}
        for tier, size in self._resting(stage, waves):
            peaks[tier] = peaks.get(tier, 0.0) + size
        return peaks

    def _resting(self, stage: Stage, waves: int) -> Iterator[tuple[str, FloatArray]]:
        """What rests on a rank of a stage, by memory."""
        for passage, count in stage.counts.items():
            if passage not in self._rests:
                own = (leaf for leaf in passage.placed.residents if not self._is_common(passage, leaf))
                self._rests[passage] = self._by_tier(own)
            yield from ((tier, count * (once + waves * each)) for tier, (once, each) in self._rests[passage].items())
        seen: dict[Laid, Resident] = {}
        for visit in stage.visits:
            for leaf in visit.passage.placed.residents:
                if self._is_common(visit.passage, leaf):
                    seen.setdefault((self.blocks.rename[visit.label][leaf.name], leaf.spec), leaf)
        yield from ((tier, once + waves * each) for tier, (once, each) in self._by_tier(seen.values()).items())

    def _is_common(self, passage: Passage, leaf: Resident) -> bool:
        return (passage.kind, leaf.name) in self.blocks.shared_leaves

    def _by_tier(self, leaves: Iterable[Resident]) -> dict[str, tuple[FloatArray, FloatArray]]:
        """What leaves occupy by memory: of those that are there once, and of those of which every wave has its own."""
        out: dict[str, tuple[FloatArray, FloatArray]] = {}
        for leaf in leaves:
            none = np.zeros(self.sizes.batches)
            found = list(out.get(leaf.tier, (none, none)))
            part = int(leaf.tensor.role in PER_WAVE)
            found[part] = found[part] + self.sizes.rows[self.sizes.number(leaf.tensor, leaf.spec)]
            out[leaf.tier] = (found[0], found[1])
        return out

    def _peak(self, case: _Case) -> FloatArray:
        """The peak of the values in a block beside what rests."""
        if case not in self._peaks:
            kept, ends, through = case
            self._peaks[case] = self._through(through) + kept.peak(ends)
        return self._peaks[case]

    def _early_peaks(self, stage: Stage, late: IntArray) -> Iterator[FloatArray]:
        """The peaks of the first blocks of a stage, as long as some of what is sent to it has not begun to arrive."""
        room = float(self.sizes.cost.assumptions.receive_buffers)
        sizes = [room * self.sizes.rows[self.sizes.number(tensor, laid[1])] for laid, tensor in stage.received.items()]
        before = 0
        for visit, (kept, ends, through) in zip(stage.visits, self._cases(stage)):
            count = len(visit.passage.placed.ops)
            if np.max(late) <= before:
                return
            places = np.arange(before, before + count)[:, None]
            missing = sum(((places < each) * size for each, size in zip(late, sizes)), np.zeros_like(sizes[0]))
            held = self._through(through) + kept.held(ends) - missing
            yield held.max(axis=0, initial=0.0)
            before += count

    def _through(self, through: tuple[tuple[int, int], ...]) -> FloatArray:
        return sum((count * self.sizes.rows[number] for number, count in through), np.zeros(self.sizes.batches))

    def _cases(self, stage: Stage) -> list[_Case]:
        """The cases that the blocks of a stage are, in their order."""
        if stage not in self._stages:
            self._stages[stage] = self._fresh(stage)
        return self._stages[stage]

    def _fresh(self, stage: Stage) -> list[_Case]:
        kept, lives = self._lives(stage)
        ends: list[list[Ending]] = [[] for _ in kept]
        comes: list[list[int]] = [[] for _ in range(len(kept) + 1)]
        for life in lives:
            comes[life.begins + 1].append(life.size)
            if life.ends < len(kept):
                ends[life.ends].append((life.size, life.place))
        crowd: Counter[int] = Counter()
        cases = []
        for block, (each, ending) in enumerate(zip(kept, ends)):
            crowd.update(comes[block])
            crowd.subtract(number for number, _ in ending)
            through = tuple(sorted((number, count) for number, count in crowd.items() if count))
            cases.append((each, tuple(sorted(ending)), through))
        return cases

    def _lives(self, stage: Stage) -> tuple[list[Kept], list[_Life]]:
        """The blocks of a stage, each knowing which of its values are read after it; and what lives across them."""
        end, buffers = len(stage.visits), self.sizes.cost.assumptions.receive_buffers
        read = {laid: block for block, visit in enumerate(stage.visits) for laid in visit.needs}
        read.update(dict.fromkeys((*stage.sent, *stage.outputs), end))
        homes: dict[Laid, _Life | None] = {
            laid: _Life(self.sizes.number(tensor, laid[1]), begins=-1, ends=0) if buffers else None
            for laid, tensor in stage.received.items()
        }
        lives = [life for life in homes.values() if life is not None]
        out: list[Kept] = []
        for block, visit in enumerate(stage.visits):
            passage = visit.passage
            outlasting = (mine for mine, laid in zip(passage.makes, visit.makes) if read.get(laid, -1) > block)
            kept = passage.kept(frozenset(outlasting))
            actual = dict(zip((*passage.needs, *passage.makes), (*visit.needs, *visit.makes)))
            for mine in passage.needs:
                if actual[mine] not in homes:  # an input of the graph
                    number = self.sizes.number(passage.input(mine), mine[1])
                    lives.append(_Life(number, begins=-1, ends=block))
                    homes[actual[mine]] = lives[-1]
            for mine, place in kept.last.items():
                _note(homes[actual[mine]], block, place)
            own = {mine: _Life(number, begins=block, ends=block) for mine, number in kept.begins.items()}
            lives += own.values()
            for mine, home in kept.lies.items():
                homes[actual[mine]] = own[home] if home in own else None if home is None else homes[actual[home]]
            out.append(kept)
        for laid in (*stage.sent, *stage.outputs):
            _note(homes[laid], end, 0)
        return out, lives


def _note(life: _Life | None, block: int, place: int) -> None:
    """A home, if it takes room, is read at a place of a block."""
    if life is not None:
        life.ends, life.place = max((life.ends, life.place), (block, place))
