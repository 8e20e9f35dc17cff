"""What a service would give: pools of replicas, and what its users see.

A replica is a number of GPUs that run one plan. With b requests in a step of T seconds and S pipeline stages, S waves
are under way at once: a decode replica has b·S requests in flight and makes b/T tokens a second; a prefill replica
takes b/T prompts a second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from rooflang.search.point import Point
from rooflang.search.problem import Problem
from rooflang.search.verify import certified

Mode = Literal["aggregated", "disaggregated"]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A plan for one replica. `point` was simulated on `problem`; a decode plan was found where caches are at their
    fullest, so that it fits there, and `step_s` is that of caches of average length. `works_on_bytes` are those that a
    prefill plan needs at its peak, per stage, beside weights that are there anyway."""

    point: Point
    problem: Problem
    step_s: float
    works_on_bytes: tuple[float, ...] = ()

    @property
    def latency_s(self) -> float:
        """Seconds that a request takes through all stages: to its first token, or per token."""
        tokens = self.problem.tokens if self.problem.stage == "decode" else 1
        return self.step_s * self.point.pp / tokens

    def fits_beside(self, decode: Choice) -> bool:
        """Has a decode plan on the same GPUs room for what this prefill plan works on?"""
        pairs = zip(decode.point.sim.stages, self.works_on_bytes, strict=True)
        return all(stage.peak_bytes + more <= decode.point.sim.capacity_bytes for stage, more in pairs)

    @property
    def gpus(self) -> int:
        return self.problem.cluster.gpus

    def gathering_s(self, rate_per_s: float) -> float:
        """Seconds that the first request of a step waits until it is full, where they arrive evenly."""
        return (self.point.batch - 1) / rate_per_s

    @property
    def passes_per_s(self) -> float:
        """Requests that go through a step, per second: prompts of prefill, and in decode tokens (or, where some are
        drafted, as many as are accepted)."""
        return self.point.batch / self.step_s

    @property
    def concurrency(self) -> int:
        """Requests in flight in a replica."""
        return self.point.batch * self.point.pp


@dataclass(frozen=True, kw_only=True)
class Pool:
    """`replicas` copies of one plan. `admits` is, in decode, the most requests of full length that a copy could hold
    with any plan that was found, at whatever speed."""

    replicas: int
    choice: Choice
    admits: int = 0

    @property
    def gpus(self) -> int:
        return self.replicas * self.choice.gpus

    @property
    def concurrency(self) -> int:
        """Requests in flight in all copies."""
        return self.replicas * self.choice.concurrency

    def certified(self) -> Pool:
        """The pool with its plan evaluated."""
        (point,) = certified(self.choice.problem, [self.choice.point])
        return replace(self, choice=replace(self.choice, point=point))

    def to_json(self) -> dict[str, Any]:
        """The pool as JSON-ready data."""
        choice = self.choice
        limit = {"admission_limit": self.replicas * self.admits} if self.admits else {}
        return {
            "replicas": self.replicas,
            "gpus_per_replica": choice.gpus,
            "hardware": choice.problem.cluster.platform.name,
            "context": choice.problem.context,
            "requests_in_flight": self.concurrency,
            **limit,
            "step_s": choice.step_s,
            "point": choice.point.to_json(),
        }


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A service at its full rate. The two pools are the same GPUs where it is aggregated."""

    mode: Mode
    prefill: Pool
    decode: Pool
    rate_per_s: float
    ttft_s: float
    tpot_s: float
    transfer_s: float
    output_tok_s: float

    @property
    def gpus(self) -> int:
        return self.decode.gpus + (self.prefill.gpus if self.mode == "disaggregated" else 0)

    @property
    def tok_s_gpu(self) -> float:
        """Output tokens per second and GPU that is used."""
        return self.output_tok_s / self.gpus

    def certified(self) -> Offer:
        """The offer with both of its plans evaluated beside the unsharded graph (`rooflang.search.verify`)."""
        return replace(self, prefill=self.prefill.certified(), decode=self.decode.certified())

    def usd_per_million(self, gpu_hour_usd: float) -> float:
        """Dollars per million output tokens at the full rate, with that price for an hour of each GPU used."""
        return gpu_hour_usd * self.gpus / 3600 / self.output_tok_s * 1e6

    def to_json(self) -> dict[str, Any]:
        """The offer as JSON-ready data."""
        return {
            "mode": self.mode,
            "gpus": self.gpus,
            "rate_per_s": self.rate_per_s,
            "ttft_s": self.ttft_s,
            "tpot_s": self.tpot_s,
            "kv_transfer_s": self.transfer_s,
            "output_tok_s": self.output_tok_s,
            "tok_s_gpu": self.tok_s_gpu,
            "prefill": self.prefill.to_json(),
            "decode": self.decode.to_json(),
        }
