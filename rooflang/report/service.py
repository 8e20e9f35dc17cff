"""A planned service as text."""

from __future__ import annotations

from rooflang.report.frontier import show_inputs, show_origin
from rooflang.report.layout import facts, table
from rooflang.report.numbers import show_count, show_dollars, show_memory, show_rate
from rooflang.report.plans import show_mesh, show_plan
from rooflang.service import Offer, Pool, ServicePlan
from rooflang.units import show_seconds


def show_service(plan: ServicePlan, command: str) -> str:
    """What was asked, the best offer, its pools and their plans, the other mode beside it, and how to do it again."""
    demand = plan.demand
    asked = f"{demand.isl:,} tokens in, {demand.osl:,} out; asked for: {demand.words()}"
    parts = [f"{show_inputs(plan.inputs)}\n  {asked}", show_offers(plan)]
    for offer in offers(plan):
        parts.append(f"{offer.mode}\n{_pools(offer)}")
    parts.extend(_plans(plan.best))
    rows = [("looked at", f"{plan.looked_at:,} services")]
    if plan.other is None:
        found = "meets the targets" if plan.stopped_by == "complete" else "that meets the targets was found by then"
        rows.append(("note", f"no service of the other mode {found}, or none was asked for"))
    rows.append(("stopped by", f"{plan.stopped_by}, after {show_seconds(plan.seconds)}"))
    return "\n\n".join([*parts, facts(rows, indent=""), show_origin(plan.inputs, command)])


def offers(plan: ServicePlan) -> list[Offer]:
    """The best one, and the best of the other mode where there is one."""
    return [plan.best, *([plan.other] if plan.other else [])]


def show_offers(plan: ServicePlan) -> str:
    """The best service, and the best of the other mode, a row each."""
    return table(*offers_table(plan))


def offers_table(plan: ServicePlan) -> tuple[list[str], list[list[str]]]:
    """The heads and the rows of that table."""
    rows = []
    for offer in offers(plan):
        rows.append(
            [
                offer.mode,
                str(offer.gpus),
                show_rate(offer.rate_per_s),
                show_rate(offer.output_tok_s),
                show_rate(offer.tok_s_gpu),
                show_seconds(offer.ttft_s),
                show_seconds(offer.tpot_s),
                str(offer.decode.concurrency),
                *([show_dollars(offer.usd_per_million(plan.gpu_hour_usd))] if plan.gpu_hour_usd else []),
            ]
        )
    heads = ["<service", "GPUs", "requests/s", "tok/s out", "tok/s/GPU", "first token", "each further", "in flight"]
    return [*heads, *(["$/M tok out"] if plan.gpu_hour_usd else [])], rows


def _pools(offer: Offer) -> str:
    rows = [_pool("prefill", offer.prefill), _pool("decode", offer.decode)]
    text = table(
        ("<stage", "replicas", "GPUs each", "batch", "PP", "mesh", "step", "holds at most", "<peak of memory"), rows
    )
    if offer.mode == "disaggregated":
        ratio = f"{offer.prefill.gpus} : {offer.decode.gpus} GPUs"
        text += f"\nprefill to decode {ratio}; a cache is sent in {show_seconds(offer.transfer_s)}"
    return text


def _pool(stage: str, pool: Pool) -> tuple[str, ...]:
    choice = pool.choice
    point = choice.point
    return (
        stage,
        str(pool.replicas),
        str(choice.gpus),
        show_count(point.batch),
        str(point.pp),
        show_mesh(point.mesh),
        show_seconds(choice.step_s),
        show_count(pool.replicas * pool.admits) if pool.admits else "",
        show_memory(point.sim.peak_bytes, point.sim.capacity_bytes),
    )


def _plans(offer: Offer) -> list[str]:
    return [
        f"{stage}, for each replica\n" + show_plan(pool.choice.point, [pool.choice.point.origin])
        for stage, pool in (("prefill", offer.prefill), ("decode", offer.decode))
    ]
