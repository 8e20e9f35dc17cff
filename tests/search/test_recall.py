"""Keep or recompute: keys and values of latent attention in caches of their own, or computed from the latents again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflang.errors import PlacementError
from rooflang.hw import Cluster
from rooflang.ir import Graph, GraphBuilder
from rooflang.place.certificate import replay
from rooflang.search.api import optimize, simulate
from rooflang.search.evaluate import evaluate
from rooflang.search.problem import Problem
from rooflang.search.validate import evaluated


def latent_attention(batch: int, *, layers: int = 12, context: int = 65536, ffn: int = 0) -> Graph:
    """Layers that keep latents of 512, and may also keep the keys and values of 32 heads that follow from them; with
    `ffn` two products follow."""
    g = GraphBuilder("latent attention", batch=batch, context=context, hidden=4096, latent=512, head=32, kv=32,
                     key=128, value=128)  # fmt: skip
    x = g.input("x", "batch hidden")
    for layer in range(layers):
        g.block = n = f"layers.{layer}"
        q = g.op(f"{n}.q", "matmul", [x, g.weight(f"{n}.wq", "hidden head key", "fp8")], "batch head key")
        new = g.op(f"{n}.new", "matmul", [x, g.weight(f"{n}.wc", "hidden latent", "fp8")], "batch latent", "fp8")
        cache = g.cache(f"{n}.latent_cache", "batch context latent", "fp8")
        latents = g.op(f"{n}.latents", "kv_append", [new, cache], "batch context latent", "fp8")
        found = []
        for what in ("key", "value"):
            dims, w = f"batch context kv {what}", g.weight(f"{n}.w_{what}", f"latent kv {what}", "fp8")
            again = g.op(f"{n}.{what}_again", "matmul", [latents, w], dims, "fp8")
            step = g.op(f"{n}.{what}_step", "matmul", [new, w], f"batch kv {what}", "fp8")
            kept = g.op(f"{n}.{what}_kept", "kv_append", [step, g.cache(f"{n}.{what}_cache", dims, "fp8")], dims, "fp8")
            found.append(g.op(f"{n}.{what}", "recall", [again, kept], dims, "fp8"))
        a = g.op(f"{n}.attention", "grouped_attention", [q, *found], "batch head value")
        x = g.op(f"{n}.out", "matmul", [a, g.weight(f"{n}.wo", "head value hidden", "fp8")], "batch hidden")
        if ffn:
            up = g.op(f"{n}.up", "matmul", [x, g.weight(f"{n}.w1", f"hidden {g.dim('ffn', ffn)}", "fp8")], "batch ffn")
            x = g.op(f"{n}.down", "matmul", [up, g.weight(f"{n}.w2", "ffn hidden", "fp8")], "batch hidden")
    return g.build(x)


def removed(certificate: dict[str, object]) -> set[str]:
    kinds = certificate["kinds"]
    assert isinstance(kinds, list)
    return {step["dim"].rsplit("_", 1)[-1] for kind in kinds for step in kind["removed"]}


@pytest.mark.parametrize("gpus", [1, 2])
def test_what_fits_is_kept_and_what_does_not_is_computed_again(gpus: int) -> None:
    cluster = Cluster.of("b300", gpus)
    graph, few, many = latent_attention(1), 16 * gpus, 64 * gpus
    kept, again = optimize(graph, hardware=cluster, batch=[few, many], pp=1).points
    assert removed(dict(kept.certificate)) == {"kept"}
    assert "again" in removed(dict(again.certificate))
    for point in (kept, again):
        assert point.gap is not None and point.gap < 0.01
        once_more = simulate(graph, hardware=cluster, batch=point.batch, certificate=point.certificate)
        assert once_more.sim.step_s == point.sim.step_s
    # Request by request, keeping takes less time than computing again.
    assert kept.sim.step_s / few < again.sim.step_s / many


def test_computing_again_beats_caches_in_another_memory() -> None:
    """Of the ways to serve more requests than HBM has room for, optimize takes the faster one."""
    problem = Problem.of(latent_attention(1), hardware="b300", gpus=1)
    kept, again = optimize(problem.graph, hardware="b300", gpus=1, batch=[16, 64]).points
    assert "again" in removed(dict(again.certificate))
    plan = replay(kept.certificate, problem.blocks, problem.cluster)
    far = {
        name: replace(
            block,
            tiers={
                leaf.name: "dram" for leaf in problem.blocks.by_name[name].leaves if leaf.name.endswith("key_cache")
            },
        )
        for name, block in plan.blocks.items()
    }
    elsewhere = evaluate(problem, replace(plan, blocks=far), 64, overlap="perfect")
    assert elsewhere.sim.bottleneck == "dram read"
    assert again.sim.step_s < 0.1 * elsewhere.sim.step_s


def test_computing_again_serves_more_where_weights_leave_little_room() -> None:
    """Weights fill nine tenths of HBM and are read in every step, whatever the batch: requests that keep latents alone
    are so many more that computing keys and values again pays, on the frontier of all batch sizes."""
    graph = latent_attention(1, context=1024, ffn=2_800_000)
    frontier = optimize(graph, hardware="b300", gpus=1, disable_rules=["insert_identity"]).frontier
    best = max(frontier, key=lambda point: point.sim.tok_s_gpu)
    keeping = [point for point in frontier if removed(dict(point.certificate)) == {"kept"}]
    assert "again" in removed(dict(best.certificate))
    assert best.batch > max(point.batch for point in keeping)
    assert best.sim.tok_s_gpu > 3.0 * max(point.sim.tok_s_gpu for point in keeping)


def test_a_cache_that_holds_something_else_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.of(latent_attention(16, layers=1), hardware="b300", gpus=1)
    point = optimize(problem.graph, hardware="b300", gpus=1, batch=[16]).frontier[0]
    plan = replay(point.certificate, problem.blocks, problem.cluster)
    assert evaluated(plan, problem.blocks).to_json()["verdict"] == "equal"
    monkeypatch.setattr("rooflang.ir.evaluate._with_kept", lambda graph, leaves: leaves)
    with pytest.raises(PlacementError, match="differs"):
        evaluated(plan, problem.blocks)
