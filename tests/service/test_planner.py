"""Services that are found obey the balances that they are planned by, and the targets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import msgspec
import pytest

import rooflang
from rooflang.errors import CapacityError, RooflangError, UnreachableError, ValueRangeError
from rooflang.hw import Cluster, load_platform
from rooflang.hw.decode import Bytes, Seconds
from rooflang.hw.schema import Spine
from rooflang.models.measure import kv_footprint_bytes
from rooflang.search.method import Method
from rooflang.search.point import Found
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.service import Demand, Offer, ServicePlan, plan_service
from rooflang.service.curves import Curves, plan_of, relabelled, weights_of
from rooflang.service.disaggregated import Room, apart

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


def test_caches_are_sent_over_the_innermost_fabric_that_joins_all_gpus(free: ServicePlan, llama: Path) -> None:
    offer = offers(free)["disaggregated"]
    model = rooflang.models.load(llama)
    graph = model.build(rooflang.Workload(stage="decode", context=1024, batch=1), rooflang.profile("physical"))
    cache = kv_footprint_bytes(graph)
    assert cache == 2 * 2 * 8 * 128 * 2 * 1024
    prefill, decode = offer.prefill.choice, offer.decode.choice
    assert (prefill.gpus, decode.gpus) == (1, 1)
    sent = prefill.point.batch * cache
    assert offer.transfer_s == pytest.approx(sent / 450e9, rel=0.01)

    def within(gpus: int, cluster: Cluster) -> float:
        one, two = (replace(choice, problem=replace(choice.problem, cluster=cluster)) for choice in (prefill, decode))
        moved = apart(one, two, Demand(isl=1000, osl=101), Room(gpus=gpus), cache_bytes=cache, admits=0)
        assert moved is not None and (moved.gpus > 8) is (gpus > 8)
        return moved.transfer_s

    assert within(8, prefill.problem.cluster) == offer.transfer_s
    assert within(16, prefill.problem.cluster) == pytest.approx(sent / 50e9, rel=1e-3)
    spine = Spine(name="spine", domains=2, oversubscription=4.0, latency_s=Seconds(1e-6), source="a test")
    pods = Cluster.of(msgspec.structs.replace(prefill.problem.cluster.platform, spine=spine), 1)
    assert within(16, pods) == pytest.approx(sent / 50e9, rel=1e-3)
    assert within(64, pods) == pytest.approx(4 * sent / 50e9, rel=1e-3)


def test_links_carry_what_a_service_sends(free: ServicePlan) -> None:
    offer = offers(free)["disaggregated"]
    prefill, decode = offer.prefill.choice, offer.decode.choice
    slow = apart(prefill, decode, Demand(isl=1000, osl=101), Room(gpus=2), cache_bytes=1e12, admits=0)
    assert slow is not None
    assert slow.rate_per_s == pytest.approx(0.45)
    assert slow.rate_per_s < offer.rate_per_s


def test_what_a_prefill_step_works_on_fits_beside_all_caches(free: ServicePlan) -> None:
    offer = offers(free)["aggregated"]
    prefill, decode = offer.prefill.choice, offer.decode.choice
    (works_on,) = prefill.works_on_bytes
    caches = prefill.point.batch * 2 * 2 * 8 * 128 * 2 * 1024
    assert caches < works_on < prefill.point.sim.peak_bytes - 2e9  # its weights take more than that
    assert decode.point.sim.peak_bytes + works_on <= decode.point.sim.capacity_bytes
    assert prefill.fits_beside(decode)
    assert not replace(prefill, works_on_bytes=(79e9,)).fits_beside(decode)


@pytest.mark.parametrize("gpus", [1, 3, 7])
def test_a_rate_that_was_told_can_be_asked_for(gpus: int) -> None:
    for per_s in (0.1, 1 / 3, 7.7):
        demand = Demand(isl=1, osl=2, rate_per_s=gpus * per_s)
        assert demand.replicas(per_s) == gpus
        assert demand.met(ttft_s=1.0, tpot_s=1.0, rate_per_s=per_s * gpus * (1 - 1e-15))
        assert not demand.met(ttft_s=1.0, tpot_s=1.0, rate_per_s=per_s * gpus * 0.999)


def test_no_replica_is_looked_at_that_has_no_room_for_the_weights(free: ServicePlan) -> None:
    curves = Curves(
        model="llama-3.3-70b",
        demand=free.demand,
        assumptions="physical",
        method=Method(),
        watch=Progress(),
    )
    assert curves.sizes(load_platform("h100"), 16) == (2, 4, 8, 16)
    assert curves.sizes(load_platform("h100"), 1) == (1,)


def test_a_limit_of_time_is_shared_by_the_sizes_of_replicas(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still, so that nobody uses its share up: each has its part of what is left for all."""
    shares: list[tuple[int, str, float]] = []
    searching = Method.run

    def search(self: Method, problem: Problem, watch: Progress) -> Found:
        shares.append((problem.cluster.gpus, problem.stage, watch.limit_s))
        return searching(self, problem, watch)

    monkeypatch.setattr("rooflang.search.progress.time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr(Method, "run", search)
    plan = plan_service(llama, **{**ASKED, "gpus": 2}, time_limit_s=60.0)
    assert plan.stopped_by == "complete"
    # Two sizes, each with decode, prefill beside it, and prefill apart: six parts.
    assert [limit_s for _, stage, limit_s in shares if stage == "decode"] == [10.0, 15.0]
    assert shares[-2:] == [(1, "prefill", 30.0), (2, "prefill", 60.0)]


def test_ctrl_c_keeps_the_offers_so_far(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(Curves, "prefill", interrupted)
    plan = plan_service(llama, **{**ASKED, "gpus": 1})
    assert plan.stopped_by == "interrupted"
    assert plan.best.mode == "aggregated"
    with pytest.raises(KeyboardInterrupt):
        plan_service(llama, **ASKED, mode="disaggregated")


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


def test_weights_are_the_same_under_other_labels() -> None:
    """Decode absorbs the products of MLA, so that a weight has other dims there than in prefill."""
    model = rooflang.models.load("deepseek-v2-lite")
    decode, prefill = (
        model.build(rooflang.Workload(stage=stage, context=1024, batch=1), rooflang.profile("physical"))
        for stage in ("decode", "prefill")
    )
    held = {"layers.3.wkv_b_values": frozenset({("R", "head"), ("value", "R")}), "head.head_w": frozenset({("vocab",)})}
    assert relabelled(held, decode, prefill) == {
        "layers.3.wkv_b_values": frozenset({("R", "key_head"), ("value", "R")}),
        "head.head_w": frozenset({("vocab",)}),
    }


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
        {"ttft_s": "2s"},
        {"gpus": 0},
        {"gpus": "8"},
        {"gpus": 1.5},
        {"mode": "mixed"},
        {"prefill_hardware": "b200"},
        {"mode": "aggregated", "prefill_gpus": 1},
    ],
)
def test_what_cannot_be_asked(llama: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(RooflangError):
        plan_service(llama, **{**ASKED, **wrong})


def test_requests_longer_than_the_model_takes(llama: Path) -> None:
    with pytest.raises(ValueRangeError, match="longer than") as caught:
        plan_service(llama, **{**ASKED, "isl": 131072})
    assert caught.value.where == "--isl, --osl"


def test_json(free: ServicePlan) -> None:
    data = free.to_json()
    assert data["schema"] == "rooflang.service/1"
    assert data["best"]["decode"]["admission_limit"] == free.best.decode.replicas * free.best.decode.admits
    with pytest.raises(ValueRangeError):
        plan_service("llama-3.1-8b", **{**ASKED, "isl": -5})


def test_accepted_drafts_make_tokens_and_prompts_draft_none() -> None:
    drafting = replace(rooflang.profile("physical"), draft_tokens=1, accepted_tokens=1.5)
    demand = Demand(isl=1000, osl=101)
    curves = Curves(model="deepseek-v3", demand=demand, assumptions=drafting, method=Method(), watch=Progress())
    h200 = load_platform("h200")
    assert curves.problem(h200, 8, "prefill", 1024).assumptions == rooflang.profile("physical")
    assert curves.problem(h200, 8, "decode", 1024).tokens == 1.5
