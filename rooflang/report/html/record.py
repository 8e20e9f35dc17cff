"""What a closer look at a point finds: its blocks drawn, its timeline, its memory, and why it takes as long."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from rooflang.report.explanation import explanation_json
from rooflang.sim.explain import Explanation
from rooflang.sim.result import StageResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A mesh axis: its name, its size, and the fabric levels that it lies on, outermost first."""

    name: str
    size: int
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a rank of a stage does next in a block: a kernel, a collective, or a send to the next stage.

    `cuts` says in words along which dim each mesh axis cuts the work, `""` where it does not; `lies` how what comes out
    lies along each axis: the dim, or one of `replicated`, `partial`, `one rank`. `axes` are those that a collective
    runs along. `reads` are the rows whose values it takes; -1 is what another block made. `weights` rest on the rank,
    with their bytes there. Times are those of the run itself, without overlap; `start_s` counts from the start of the
    block. `bytes` is the size of what comes out, on one rank.
    """

    what: str
    name: str
    kind: str
    group: str
    covers: tuple[str, ...]
    cuts: tuple[str, ...]
    lies: tuple[str, ...]
    axes: tuple[int, ...]
    reads: tuple[int, ...]
    weights: tuple[tuple[str, int], ...]
    bytes: int
    start_s: float
    seconds: float
    bound: str
    critical: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One kind of block: how many there are, the labels of them, and what the first one does."""

    name: str
    labels: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def seconds(self) -> float:
        """How long the first one takes, from its first start to its last end."""
        return max((row.start_s + row.seconds for row in self.rows), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """When a rank runs a block: its label, the number of its kind, the wave (half of a batch that is split)."""

    label: str
    kind: int
    wave: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A class of equal ranks of a stage, how many they are, and what they run when."""

    name: str
    stage: int
    ranks: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Tensors of one name in all layers, alive at the peak of the fullest memory; `role` says what they are."""

    name: str
    role: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseUp:
    """A point looked at closely. `memory` is the fullest one by name, `held` what is in it at its peak, largest
    first."""

    explanation: Explanation
    axes: tuple[Axis, ...]
    blocks: tuple[Block, ...]
    lanes: tuple[Lane, ...]
    memory: str
    held: tuple[Held, ...]

    @property
    def stages(self) -> tuple[StageResult, ...]:
        """The pipeline stages."""
        return self.explanation.result.stages

    def to_json(self) -> dict[str, Any]:
        """JSON-ready data: times in seconds, sizes in bytes."""
        overlap = self.explanation.result.overlap
        return {
            "explanation": explanation_json(replace(self.explanation, path=())) | {"path_s": self.explanation.path_s},
            "axes": [asdict(axis) for axis in self.axes],
            "stages": [_stage(stage) | {"span_s": stage.span_s(overlap)} for stage in self.stages],
            "blocks": [asdict(block) for block in self.blocks],
            "lanes": [asdict(lane) for lane in self.lanes],
            "memory": self.memory,
            "held": [asdict(held) for held in self.held],
        }


def _stage(stage: StageResult) -> dict[str, Any]:
    return {"local_s": stage.local_s, "exposed_s": stage.exposed_s, "peak_bytes": stage.peak_bytes}
