"""Services that are found obey the balances that they are planned by, and the targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import rooflang
from rooflang.errors import CapacityError, RooflangError, UnreachableError, ValueRangeError
from rooflang.hw import load_platform
from rooflang.hw.decode import Bytes
from rooflang.models.measure import kv_footprint_bytes
from rooflang.service import Offer, ServicePlan, plan_service
from rooflang.service.curves import plan_of, weights_of

ASKED: dict[str, Any] = {"hardware": "h100", "gpus": 2, "isl": 1000, "osl": 101}


@pytest.fixture(scope="module")
def free(llama: Path) -> ServicePlan:
    return plan_service(llama, **ASKED)


def offers(plan: ServicePlan) -> dict[str, Offer]:
    assert plan.other is not None
    return {offer.mode: offer for offer in (plan.best, plan.other)}


def test_aggregated_replicas_are_always_busy(free: ServicePlan) -> None:
    offer = offers(free)["aggregated"]
    prefill, decode = offer.prefill.choice, offer.decode.choice
    rate = offer.rate_per_s / offer.decode.replicas
    busy = rate * prefill.step_s / prefill.point.batch + rate * 100 * decode.step_s / decode.point.batch
    assert busy == pytest.approx(1.0)
    # Little's law: requests in flight = arrivals × time in decode
    assert offer.decode.concurrency == pytest.approx(offer.rate_per_s * 100 * offer.tpot_s)
    assert offer.tpot_s > decode.latency_s
    assert offer.gpus == 2


def test_disaggregated_pools_are_balanced(free: ServicePlan) -> None:
    offer = offers(free)["disaggregated"]
    prefill, decode = offer.prefill, offer.decode
    prompts = prefill.replicas * prefill.choice.point.batch / prefill.choice.step_s
    answers = decode.replicas * decode.choice.point.batch / decode.choice.step_s / 100
    assert offer.rate_per_s == pytest.approx(min(prompts, answers))
    assert offer.tpot_s == decode.choice.latency_s
    assert prefill.gpus + decode.gpus == offer.gpus <= 2


def test_caches_are_sent_over_the_outer_fabric(free: ServicePlan, llama: Path) -> None:
    offer = offers(free)["disaggregated"]
    model = rooflang.models.load(llama)
    graph = model.build(rooflang.Workload(stage="decode", context=1024, batch=1), rooflang.profile("physical"))
    assert kv_footprint_bytes(graph) == 2 * 2 * 8 * 128 * 2 * 1024
    sent = offer.prefill.choice.point.batch * kv_footprint_bytes(graph)
    links = min(offer.prefill.choice.gpus, offer.decode.choice.gpus)
    assert offer.transfer_s == pytest.approx(sent / (links * 50e9) + 4e-6, rel=1e-3)


def test_caches_fit_at_their_fullest_and_are_timed_at_their_mean(free: ServicePlan) -> None:
    choice = free.best.decode.choice
    assert choice.problem.context == 1280  # 1,101 tokens in pages of 256
    assert choice.point.sim.peak_bytes <= choice.point.sim.capacity_bytes
    assert choice.step_s <= choice.point.sim.step_s
    assert free.best.decode.admits >= choice.concurrency


def test_aggregated_prefill_reads_the_weights_where_decode_holds_them(free: ServicePlan) -> None:
    offer = offers(free)["aggregated"]
    held = weights_of(plan_of(offer.decode.choice.point, offer.decode.choice.problem), offer.decode.choice.problem)
    read = weights_of(plan_of(offer.prefill.choice.point, offer.prefill.choice.problem), offer.prefill.choice.problem)
    assert held.keys() == read.keys()
    assert all(read[name] <= held[name] for name in read)
    assert offer.prefill.choice.point.mesh == offer.decode.choice.point.mesh


def test_plans_are_evaluated(free: ServicePlan) -> None:
    for pool in (free.best.prefill, free.best.decode):
        assert pool.choice.point.certificate["evaluated"]["verdict"] == "equal"


def test_targets_are_met_and_cost_throughput(free: ServicePlan, llama: Path) -> None:
    tight = plan_service(llama, **ASKED, ttft_s=free.best.ttft_s / 3, tpot_s=free.best.tpot_s / 3)
    assert tight.best.ttft_s <= free.best.ttft_s / 3
    assert tight.best.tpot_s <= free.best.tpot_s / 3
    assert tight.best.output_tok_s < free.best.output_tok_s


def test_a_rate_is_reached_on_the_fewest_gpus(free: ServicePlan, llama: Path) -> None:
    plan = plan_service(llama, **ASKED, rate_per_s=free.best.rate_per_s / 3)
    assert plan.best.gpus == 1
    assert plan.best.rate_per_s >= free.best.rate_per_s / 3


def test_what_cannot_be_reached_names_the_nearest(llama: Path) -> None:
    with pytest.raises(UnreachableError, match="no service that was found has at most 1 µs") as caught:
        plan_service(llama, **ASKED, tpot_s=1e-6)
    assert "the nearest is" in caught.value.expected
    assert isinstance(caught.value.nearest, Offer)


def test_prefill_on_another_kind_of_gpu(llama: Path) -> None:
    plan = plan_service(llama, **ASKED, prefill_hardware="b200", prefill_gpus=1)
    assert plan.best.mode == "disaggregated"
    assert plan.other is None
    assert plan.best.prefill.choice.problem.cluster.platform.name == "b200"
    assert plan.best.decode.gpus <= 2
    assert plan.inputs["hash"] != plan_service(llama, **ASKED, mode="disaggregated").inputs["hash"]


def test_no_room(llama: Path) -> None:
    h100 = load_platform("h100")
    small = msgspec.structs.replace(
        h100,
        hbm=msgspec.structs.replace(h100.hbm, capacity_bytes=Bytes(1e9)),
        dram=msgspec.structs.replace(h100.dram, capacity_bytes=Bytes(1e9)),
    )
    with pytest.raises(CapacityError, match="fits on no replicas"):
        plan_service(llama, **{**ASKED, "hardware": small})
    with pytest.raises(CapacityError, match="fits on no replicas"):
        plan_service(llama, **{**ASKED, "gpus": 1}, mode="disaggregated")


@pytest.mark.parametrize(
    "wrong",
    [
        {"isl": 0},
        {"osl": 1},
        {"tpot_s": float("nan")},
        {"rate_per_s": -1.0},
        {"gpus": 0},
        {"mode": "mixed"},
        {"prefill_hardware": "b200"},
        {"mode": "aggregated", "prefill_gpus": 1},
    ],
)
def test_what_cannot_be_asked(llama: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(RooflangError):
        plan_service(llama, **{**ASKED, **wrong})


def test_json(free: ServicePlan) -> None:
    data = free.to_json()
    assert data["schema"] == "rooflang.service/1"
    assert data["best"]["decode"]["admission_limit"] == free.best.decode.replicas * free.best.decode.admits
    with pytest.raises(ValueRangeError):
        plan_service("llama-3.1-8b", **{**ASKED, "isl": -5})
