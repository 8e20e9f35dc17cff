"""From a demand to the service that meets it best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from rooflang.assumptions import Assumptions
from rooflang.errors import CapacityError, LimitReached, UnknownNameError, UnreachableError, ValueRangeError
from rooflang.hw import Cluster, Platform, load_platform
from rooflang.models import Model, load
from rooflang.models.measure import kv_footprint_bytes
from rooflang.notebook import html_table, text_table
from rooflang.search.inputs import hashed_inputs
from rooflang.search.method import Method
from rooflang.search.progress import Progress
from rooflang.service.aggregated import replicas_for, together
from rooflang.service.curves import Curve, Curves, Laid
from rooflang.service.demand import Demand
from rooflang.service.disaggregated import Room, apart
from rooflang.service.offer import Mode, Offer
from rooflang.sim.result import Overlap
from rooflang.units import show_seconds, whole

SCHEMA = "rooflang.service/1"

Modes = Literal["both", "aggregated", "disaggregated"]


@dataclass(frozen=True, kw_only=True, repr=False)
class ServicePlan:
    """The best offer, and the best of the other mode where it has one that meets the targets."""

    inputs: dict[str, Any]
    demand: Demand
    best: Offer
    other: Offer | None
    looked_at: int
    stopped_by: str
    seconds: float
    gpu_hour_usd: float | None

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON-ready data, schema `rooflang.service/1`."""
        return {
            "schema": SCHEMA,
            "inputs": self.inputs,
            "best": self._offer(self.best),
            "other": self.other and self._offer(self.other),
            "looked_at": self.looked_at,
            "stopped_by": self.stopped_by,
            "seconds": self.seconds,
        }

    def __repr__(self) -> str:
        return text_table(*self._table(), note=f"stopped by: {self.stopped_by}")

    def _repr_html_(self) -> str:
        """For notebooks: the best service, and the best of the other mode."""
        return html_table(*self._table())

    def _table(self) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
        heads = ("service", "GPUs", "prefill", "requests/s", "tok/s/GPU", "first token", "each further", "in flight")
        rows: list[tuple[str, ...]] = [
            (
                offer.mode,
                str(offer.gpus),
                str(offer.prefill.gpus),
                f"{offer.rate_per_s:,.2f}",
                f"{offer.tok_s_gpu:,.1f}",
                show_seconds(offer.ttft_s),
                show_seconds(offer.tpot_s),
                f"{offer.decode.concurrency:,}",
            )
            for offer in (self.best, self.other)
            if offer is not None
        ]
        return f"{self.inputs['model']}: {self.demand.words()}", heads, rows

    def _offer(self, offer: Offer) -> dict[str, Any]:
        usd = None if self.gpu_hour_usd is None else offer.usd_per_million(self.gpu_hour_usd)
        return {**offer.to_json(), "usd_per_million_output_tokens": usd}


def plan_service(
    model: str | Path | Model,
    *,
    hardware: str | Path | Platform,
    gpus: int,
    isl: int,
    osl: int,
    ttft_s: float | None = None,
    tpot_s: float | None = None,
    rate_per_s: float | None = None,
    gpu_hour_usd: float | None = None,
    mode: Modes = "both",
    prefill_hardware: str | Path | Platform | None = None,
    prefill_gpus: int | None = None,
    overlap: Overlap = "perfect",
    assumptions: str | Assumptions = "physical",
    time_limit_s: float = float("inf"),
    progress: Progress | None = None,
) -> ServicePlan:
    """The service of most throughput on at most `gpus` GPUs that meets the targets; with a rate the one that reaches it
    on the fewest GPUs.

    Requests have `isl` prompt tokens and `osl` output tokens. *Aggregated*: every replica does both stages, with its
    weights in one place. *Disaggregated*: some replicas run prompts and send the caches to others, which decode; with
    `prefill_gpus` they have these GPUs of their own beside the `gpus`, of `prefill_hardware` if that is another kind.

    Raises `UnreachableError`, which names the nearest offer, when none meets the targets, `CapacityError` when the
    model fits on no replica, `LimitReached` when the time limit came before the first offer.
    """
    _check(mode, gpus, prefill_hardware, prefill_gpus)
    demand = Demand(isl=isl, osl=osl, ttft_s=ttft_s, tpot_s=tpot_s, rate_per_s=rate_per_s)
    _check_length(model if isinstance(model, Model) else load(model), demand)
    watch = (progress or Progress()).within(limit_s=time_limit_s)
    method = Method(overlap=overlap)
    decode_on = hardware if isinstance(hardware, Platform) else load_platform(hardware)
    other = hardware if prefill_hardware is None else prefill_hardware
    planner = _Planner(
        curves=Curves(model=model, demand=demand, assumptions=assumptions, method=method, watch=watch),
        demand=demand,
        decode_on=decode_on,
        prefill_on=other if isinstance(other, Platform) else load_platform(other),
        room=Room(gpus=gpus, prefill=prefill_gpus),
    )
    modes: tuple[Mode, ...] = ("aggregated", "disaggregated") if mode == "both" else (mode,)
    if prefill_gpus is not None:
        modes = ("disaggregated",)
    offers, interrupted = _gathered(planner.offers(modes))
    watch.done()
    best, second = planner.choose(offers, modes)
    return ServicePlan(
        inputs=planner.inputs(mode=mode, overlap=overlap),
        demand=demand,
        best=best,
        other=second,
        looked_at=len(offers),
        stopped_by="interrupted" if interrupted else watch.stopped_by,
        seconds=watch.elapsed_s,
        gpu_hour_usd=gpu_hour_usd,
    )


def _check_length(model: Model, demand: Demand) -> None:
    if demand.longest > model.max_context:
        raise ValueRangeError(
            f"requests of {demand.isl + demand.osl:,} tokens are longer than {model.name} takes",
            where="--isl, --osl",
            expected=f"at most {model.max_context:,} together, in whole pages of a cache",
        )


def _gathered(found: Iterator[Offer]) -> tuple[list[Offer], bool]:
    """The offers, and whether Ctrl-C ended them, which leaves those that there are."""
    offers: list[Offer] = []
    try:
        for offer in found:
            offers.append(offer)
    except KeyboardInterrupt:
        if not offers:
            raise
        return offers, True
    return offers, False


def _check(mode: str, gpus: int, other: object, prefill_gpus: int | None) -> None:
    if mode not in get_args(Modes):
        raise UnknownNameError("mode", mode, get_args(Modes), where="--mode")
    for flag, count in (("--gpus", gpus), ("--prefill-gpus", prefill_gpus)):
        if count is not None:
            whole(count, where=flag)
    if other is not None and prefill_gpus is None:
        raise ValueRangeError(
            "hardware for prefill, but no GPUs of it", where="--prefill-hardware", expected="--prefill-gpus"
        )
    if mode == "aggregated" and prefill_gpus is not None:
        raise ValueRangeError(
            "GPUs that only run prompts", where="--prefill-gpus", expected="the mode both or disaggregated"
        )


@dataclass(frozen=True, kw_only=True)
class _Planner:
    """All offers for one demand."""

    curves: Curves
    demand: Demand
    decode_on: Platform
    prefill_on: Platform
    room: Room

    def inputs(self, **given: Any) -> dict[str, Any]:
        """Everything that a plan depends on, and its hash. Platforms are told apart by all their numbers."""
        size = self._sizes(self.decode_on, self.room.gpus)[-1]
        problem = self.curves.problem(self.decode_on, size, "decode", self.demand.longest)
        own = self._sizes(self.prefill_on, self.room.prefill)[-1] if self.room.prefill else None
        beside = {"prefill_gpus": own, "prefill_hardware": Cluster.of(self.prefill_on, own).digest} if own else {}
        return hashed_inputs(problem, **self.demand.inputs(), **beside, **given)

    def offers(self, modes: tuple[Mode, ...]) -> Iterator[Offer]:
        """Every offer, good or not, until a limit of time, of which each size of a replica has an equal share for each
        of its stages."""
        own = self.room.prefill
        sizes = self._sizes(self.decode_on, self.room.gpus)
        prompts = self._sizes(self.prefill_on, self.room.gpus if own is None else own)
        prompts = prompts if "disaggregated" in modes else ()
        turns = self._turns(len(sizes) * (2 if "aggregated" in modes else 1) + len(prompts))
        decodes: list[Curve] = []
        for size in sizes:
            decodes.append(next(turns).decode(self.decode_on, size))
            if "aggregated" in modes:
                yield from self._aggregated(next(turns), decodes[-1], size)
        if prompts:
            yield from self._disaggregated(zip(prompts, turns), decodes)

    def _turns(self, count: int) -> Iterator[Curves]:
        """The curves so many times, each with an equal share of the time that is left."""
        watch = self.curves.watch
        for left in range(count, 0, -1):
            with watch.share(left) as turn:
                yield replace(self.curves, watch=turn)

    def _sizes(self, platform: Platform, gpus: int) -> tuple[int, ...]:
        sizes = self.curves.sizes(platform, gpus)
        if not sizes:
            raise ValueRangeError(f"{gpus} GPUs", where="--gpus", expected=f"what {platform.name} can be built of")
        return sizes

    def _aggregated(self, curves: Curves, curve: Curve, size: int) -> Iterator[Offer]:
        beside: dict[Laid, Curve] = {}
        for number, decode in enumerate(curve.choices):
            if curves.watch.expired:
                return
            if number and self.demand.tpot_s is not None and decode.latency_s > self.demand.tpot_s:
                continue  # it is slower still beside prompts; the fastest may be the nearest to what is asked for
            laid = curves.laid(decode)
            if laid not in beside:
                beside[laid] = curves.prefill_beside(self.decode_on, size, laid)
            for prefill in beside[laid].choices:
                if prefill.fits_beside(decode):
                    replicas = replicas_for(prefill, decode, self.demand, self.room.gpus)
                    yield together(prefill, decode, self.demand, replicas, curve.admits)

    def _disaggregated(self, sizes: Iterable[tuple[int, Curves]], decodes: list[Curve]) -> Iterator[Offer]:
        cache_bytes = kv_footprint_bytes(self.curves.graph("decode", self.demand.prompt))
        for size, curves in sizes:
            for first, second in product([curves.prefill(self.prefill_on, size)], decodes):
                for prefill, decode in product(first.choices, second.choices):
                    offer = apart(
                        prefill, decode, self.demand, self.room, cache_bytes=cache_bytes, admits=second.admits
                    )
                    if offer is not None:
                        yield offer

    # -- which one ------------------------------------------------------------------------------------------------

    def choose(self, offers: list[Offer], modes: tuple[Mode, ...]) -> tuple[Offer, Offer | None]:
        """The best offer that meets the targets, with its plans evaluated, and the best of the other mode."""
        if not offers:
            self._explain_nothing()
        good = [offer for offer in offers if self.demand.met(**_seen(offer))]
        if not good:
            self._unreachable(offers)
        best = max(good, key=self._rank)
        others = [offer for offer in good if offer.mode != best.mode]
        return best.certified(), max(others, key=self._rank).certified() if others else None

    def _rank(self, offer: Offer) -> tuple[float, ...]:
        if self.demand.rate_per_s is not None:
            return (-offer.gpus, offer.output_tok_s, -offer.tpot_s)
        return (offer.output_tok_s, -offer.gpus, -offer.tpot_s)

    def _unreachable(self, offers: list[Offer]) -> NoReturn:
        near = min(offers, key=lambda offer: (max(self.demand.misses(**_seen(offer))), -offer.output_tok_s))
        raise UnreachableError(
            f"no service that was found has {self.demand.words()}",
            nearest=near,
            where=f"{self.curves.model} on {self.room.gpus} × {self.decode_on.name}",
            expected=f"what can be reached; the nearest is {near.mode}, with its first token after "
            f"{show_seconds(near.ttft_s)}, {show_seconds(near.tpot_s)} for each further one, "
            f"{near.rate_per_s:,.4g} requests a second on {near.gpus} GPUs",
            hint="ask for less, or give it more GPUs",
        )

    def _explain_nothing(self) -> NoReturn:
        if self.curves.watch.stopped_by != "complete":
            raise LimitReached("the time limit ended the work before the first offer", where="--time-limit")
        raise CapacityError(
            f"{self.curves.model} fits on no replicas at {self.demand.longest:,} tokens of context",
            where=f"{self.room.gpus} × {self.decode_on.name}",
            expected="room for a replica, or for one of each stage where they are apart",
            hint="use more GPUs, devices with more memory, or shorter requests",
        )


def _seen(offer: Offer) -> dict[str, float]:
    """What a demand may ask for, of an offer."""
    return {"ttft_s": offer.ttft_s, "tpot_s": offer.tpot_s, "rate_per_s": offer.rate_per_s}
