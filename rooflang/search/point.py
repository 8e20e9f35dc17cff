"""Points and results, and their JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rooflang.errors import CapacityError
from rooflang.notebook import html_table, text_table
from rooflang.sim.result import SimResult
from rooflang.units import show_bytes, show_seconds

RESULT_SCHEMA = "rooflang.result/1"

#: The field of a point, in results of searches with a price of a GPU's hour.
PRICE = "usd_per_million_tokens"


@dataclass(frozen=True, kw_only=True, repr=False)
class Point:
    """One simulated configuration. `bound_s` is a true lower bound on the step time within `bound_scope`, or None
    where none was computed; `gap` = step_s / bound_s − 1."""

    batch: int
    pp: int
    pp_partition: tuple[int, ...]
    mesh: tuple[int, ...]
    sim: SimResult
    plan: str
    certificate: Mapping[str, Any]
    origin: str
    bound_s: float | None = None
    bound_scope: str = ""

    @property
    def gpus(self) -> int:
        """GPUs of all stages."""
        return math.prod(self.mesh) * self.pp

    @property
    def gap(self) -> float | None:
        return None if not self.bound_s else self.sim.step_s / self.bound_s - 1.0

    def to_json(self) -> dict[str, Any]:
        """The point as in the result schema `rooflang.result/1`."""
        sim = self.sim
        return {
            "batch": self.batch,
            "tok_s_gpu": sim.tok_s_gpu,
            "tok_s_user": sim.tok_s_user,
            "step_s": sim.step_s,
            "bound_s": self.bound_s,
            "bound_scope": self.bound_scope,
            "gap": self.gap,
            "peak_bytes": sim.peak_bytes,
            "capacity_bytes": sim.capacity_bytes,
            "largest_tensors": [{"name": name, "bytes": size} for name, size in sim.largest],
            "bottleneck": sim.bottleneck,
            "groups_s": dict(sim.groups_s),
            "overlap": sim.overlap,
            "pp": self.pp,
            "pp_partition": list(self.pp_partition),
            "mesh": list(self.mesh),
            "plan": self.plan,
            "origin": self.origin,
            "certificate": dict(self.certificate),
        }

    def __repr__(self) -> str:
        facts = ", ".join(f"{head} {cell}" for head, cell in zip(_COLUMNS, _cells(self)) if cell)
        return f"<Point: {facts}; {self.plan}>"

    def _repr_html_(self) -> str:
        """For notebooks: the numbers, and the plan in words."""
        return html_table("a simulated plan", _COLUMNS, [_cells(self)], note=self.plan)


#: Columns of points in notebooks and at the prompt.
_COLUMNS = ("batch", "PP", "mesh", "tok/s/GPU", "tok/s/user", "step", "gap", "peak", "bottleneck")


def _cells(point: Point) -> tuple[str, ...]:
    sim = point.sim
    return (
        f"{point.batch:,}",
        str(point.pp),
        "x".join(map(str, point.mesh)) or "1",
        f"{sim.tok_s_gpu:,.1f}",
        f"{sim.tok_s_user:,.2f}",
        show_seconds(sim.step_s),
        "" if point.gap is None else f"{point.gap:.2%}",
        f"{show_bytes(sim.peak_bytes)} of {show_bytes(sim.capacity_bytes)}",
        sim.bottleneck,
    )


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """How much work a search did; counts do not depend on the machine.

    Of the `configurations` (a mesh or a shape, at a batch size) some are `screened_out` by their cost or its bound,
    some are `impossible` (extents do not divide, or nothing fits), the others are `extracted` (e-graph) or
    `simulated` (grid).
    """

    configurations: int = 0
    screened_out: int = 0
    impossible: int = 0
    extracted: int = 0
    simulated: int = 0
    out_of_memory: int = 0


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one way of searching found, what it took, what stopped it, and the nearest of the plans that did not fit."""

    points: tuple[Point, ...]
    evaluated: Evaluated
    stopped_by: str
    nearest: CapacityError | None


def nearer(one: CapacityError | None, other: CapacityError | None) -> CapacityError | None:
    """The one that needs less memory."""
    return min((e for e in (one, other) if e is not None), key=lambda e: e.needs_bytes, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class Result:
    """What `optimize` returns: the Pareto frontier of (tok/s/user, tok/s/GPU), highest interactivity first; or, with
    another objective, the best point alone. `gpu_hour_usd` is the price of a GPU's hour, where one was given.

    `points` are all that were simulated and fit: for batch sizes that were asked for the best at each, otherwise those
    that nothing known beats. `notes` name batch sizes asked for that have none.
    """

    inputs: Mapping[str, Any]
    frontier: tuple[Point, ...]
    points: tuple[Point, ...]
    evaluated: Evaluated
    stopped_by: str
    seconds: float
    notes: tuple[str, ...] = field(default=())
    gpu_hour_usd: float | None = None

    def usd(self, point: Point) -> float | None:
        """Dollars per million tokens; None without a price."""
        return None if self.gpu_hour_usd is None else usd_per_million_tokens(self.gpu_hour_usd, point.sim.tok_s_gpu)

    def __repr__(self) -> str:
        rows = [_cells(point) for point in self.frontier]
        return text_table(self._title(), _COLUMNS, rows, note=f"stopped by: {self.stopped_by}")

    def _repr_html_(self) -> str:
        """For notebooks: the frontier, a row a point, with its plan in words."""
        rows = [(*_cells(point), point.plan) for point in self.frontier]
        return html_table(self._title(), (*_COLUMNS, "plan"), rows, note=f"stopped by: {self.stopped_by}")

    def _title(self) -> str:
        asked = self.inputs
        return f"{asked['model']} on {asked.get('gpus') or 'up to ' + str(asked.get('max_gpus'))} {asked['hardware']}"

    def to_json(self) -> dict[str, Any]:
        """The result as JSON-ready data, schema `rooflang.result/1`."""
        return {
            "schema": RESULT_SCHEMA,
            "inputs": dict(self.inputs),
            "frontier": [self._priced(p) for p in self.frontier],
            "evaluated": {
                "configurations": self.evaluated.configurations,
                "screened_out": self.evaluated.screened_out,
                "impossible": self.evaluated.impossible,
                "extracted": self.evaluated.extracted,
                "simulated": self.evaluated.simulated,
                "out_of_memory": self.evaluated.out_of_memory,
            },
            "stopped_by": self.stopped_by,
            "seconds": self.seconds,
            "notes": list(self.notes),
        }

    def _priced(self, point: Point) -> dict[str, Any]:
        cost = self.usd(point)
        return point.to_json() | ({} if cost is None else {PRICE: cost})


def usd_per_million_tokens(gpu_hour_usd: float, tok_s_gpu: float) -> float:
    """Price of a GPU's hour over what it makes in one. Tokens are those that the step makes (decode) or reads
    (prefill)."""
    return gpu_hour_usd * 1e6 / (3600.0 * tok_s_gpu)


def pareto(points: Sequence[Point]) -> tuple[Point, ...]:
    """Points that no other beats in both tok/s/user and tok/s/GPU, highest tok/s/user first; of equal points the
    first stays."""
    order = sorted(points, key=lambda p: (-p.sim.tok_s_user, -p.sim.tok_s_gpu))
    out: list[Point] = []
    best = 0.0
    for point in order:
        if point.sim.tok_s_gpu > best:
            out.append(point)
            best = point.sim.tok_s_gpu
    return tuple(out)
