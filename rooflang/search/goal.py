"""What is looked for: the whole frontier, or the one point that is best at something, within constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, get_args

from rooflang.errors import UnknownNameError, UnreachableError, ValueRangeError
from rooflang.search.point import Point, pareto
from rooflang.units import positive, show_seconds

Objective = Literal["frontier", "throughput", "latency", "cost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The `objective`, and constraints on every point, none where one is None.

    - `frontier`: all points that no other beats in both tok/s/GPU and tok/s/user; `throughput`: the one of most
      tok/s/GPU; `latency`: of most tok/s/user; `cost`: of fewest dollars per million tokens at `gpu_hour_usd`.
    - `min_user`: tok/s/user at least. `max_tpot_s`: seconds per output token at most, 1 / (tok/s/user) of a decode
      step. `max_ttft_s`: seconds to the first token at most, the time of a prefill step through all its stages.

    Raises `UnknownNameError`, `ValueRangeError`.
    """

    objective: Objective = "frontier"
    min_user: float | None = None
    max_ttft_s: float | None = None
    max_tpot_s: float | None = None
    gpu_hour_usd: float | None = None

    def __post_init__(self) -> None:
        if self.objective not in get_args(Objective):
            raise UnknownNameError("objective", self.objective, get_args(Objective), where="--objective")
        for name in ("min_user", "max_ttft_s", "max_tpot_s", "gpu_hour_usd"):
            value = getattr(self, name)
            if value is not None:
                positive(value, where="--" + name.removesuffix("_s").replace("_", "-"))
        if self.objective == "cost" and self.gpu_hour_usd is None:
            raise ValueRangeError(
                "a GPU without a price", where="--objective cost", expected="--gpu-hour-usd, such as 3"
            )

    @property
    def bounded(self) -> bool:
        """Is there a constraint?"""
        return any(value is not None for value in (self.min_user, self.max_ttft_s, self.max_tpot_s))

    def check_stage(self, stage: str) -> None:
        """Raises `ValueRangeError` for a constraint that a step of that stage cannot have."""
        if self.max_ttft_s is not None and stage != "prefill":
            raise ValueRangeError(
                f"a {stage} step has no first token", where="--max-ttft", expected="--stage prefill, or --max-tpot"
            )
        if self.max_tpot_s is not None and stage != "decode":
            raise ValueRangeError(
                f"a {stage} step has no output tokens", where="--max-tpot", expected="--stage decode, or --max-ttft"
            )

    def meets(self, point: Point, tokens: float) -> bool:
        return all(ratio <= 1.0 for ratio in self._ratios(point, tokens))

    def nearest(self, points: Sequence[tuple[Point, float]]) -> tuple[Point, float]:
        """The point, with its tokens, whose worst constraint is missed by the smallest factor; of equal ones the one
        of most throughput."""
        return min(points, key=lambda pair: (max(self._ratios(*pair)), -pair[0].sim.tok_s_gpu))

    def _ratios(self, point: Point, tokens: float) -> Iterator[float]:
        """By which factor each constraint is missed; 1 or less: it is met."""
        user = point.sim.tok_s_user
        if self.min_user is not None:
            yield self.min_user / user
        if self.max_tpot_s is not None:
            yield 1.0 / (user * self.max_tpot_s)
        if self.max_ttft_s is not None:
            yield tokens / (user * self.max_ttft_s)

    def choose(self, points: Sequence[Point]) -> tuple[Point, ...]:
        """The frontier, or the best point, of points that meet the constraints."""
        if self.objective == "frontier" or not points:
            return pareto(points)
        best: Callable[[Point], tuple[float, float]]
        if self.objective == "latency":
            best = lambda p: (p.sim.tok_s_user, p.sim.tok_s_gpu)  # noqa: E731
        else:  # at one price per GPU the cheapest tokens are those of which a GPU makes most
            best = lambda p: (p.sim.tok_s_gpu, p.sim.tok_s_user)  # noqa: E731
        return (max(points, key=best),)

    def unreachable(self, points: Sequence[tuple[Point, float]], where: str, stopped_by: str) -> NoReturn:
        """Raise `UnreachableError` that names the nearest point."""
        point, tokens = self.nearest(points)
        sim = point.sim
        latency = [f"time to first token {show_seconds(tokens / sim.tok_s_user)}"] if self.max_ttft_s else []
        latency += [f"{show_seconds(1.0 / sim.tok_s_user)} per output token"] if self.max_tpot_s else []
        numbers = [f"{_rate(sim.tok_s_user)} tok/s/user", *latency, f"{_rate(sim.tok_s_gpu)} tok/s/GPU"]
        stopped = "" if stopped_by == "complete" else f"; the search was ended early ({stopped_by})"
        raise UnreachableError(
            f"no plan that was found has {' and '.join(self._words())}{stopped}",
            nearest=point,
            where=where,
            expected=f"what can be reached; the nearest plan has {', '.join(numbers)}, "
            f"at batch {point.batch:,} on {point.gpus} GPUs, PP {point.pp}",
            hint="ask for less, or allow other GPU counts (--max-gpus) or hardware",
        )

    def _words(self) -> Iterator[str]:
        if self.min_user is not None:
            yield f"{self.min_user:,.12g} tok/s/user or more"
        if self.max_tpot_s is not None:
            yield f"at most {show_seconds(self.max_tpot_s)} per output token"
        if self.max_ttft_s is not None:
            yield f"its first token within {show_seconds(self.max_ttft_s)}"

    def inputs(self) -> dict[str, Any]:
        """What differs from the defaults, for the hash of a result's inputs."""
        names = ("min_user", "max_ttft_s", "max_tpot_s", "gpu_hour_usd")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return given if self.objective == "frontier" else {"objective": self.objective, **given}


def _rate(value: float) -> str:
    """Four digits, and all of those before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
