"""Platforms with a spine: pods of domains, and an oversubscribed way between them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rooflang
from rooflang.assumptions import PHYSICAL
from rooflang.cost.network import all_to_all, collective
from rooflang.errors import HardwareError, PlacementError
from rooflang.hw import Cluster, Mesh, load_platform
from rooflang.hw import schema as hw_schema
from rooflang.place.certificate import replay
from rooflang.search.evaluate import evaluate
from rooflang.search.problem import Problem
from rooflang.sim.fabric import fabric
from rooflang.sim.fleet import LinkOverride
from rooflang.sim.result import Overlap

SPINE = """
[spine]
name = "spine"
domains = 4
oversubscription = 2.5
latency = "0.7 us"
source = "made up"
"""


@pytest.fixture
def platform(tmp_path: Path) -> hw_schema.Platform:
    preset = Path(hw_schema.__file__).parent / "presets" / "h100.toml"
    path = tmp_path / "pods.toml"
    path.write_text(preset.read_text(encoding="utf-8").replace('name = "h100"', 'name = "pods"', 1) + SPINE)
    return load_platform(path)


def test_levels_agree_with_routes(platform: hw_schema.Platform) -> None:
    cluster = Cluster.of(platform, 3 * 4 * 8)
    inside, pod, spine = cluster.levels
    assert [level.size for level in cluster.levels] == [8, 4, 3]
    assert (pod.name, spine.name) == ("ib", "spine")
    assert spine.bytes_per_s == pytest.approx(pod.bytes_per_s / 2.5)
    assert spine.latency_s == pytest.approx(pod.latency_s + 2 * 0.7e-6)
    for peer, level in ((7, inside), (8, pod), (31, pod), (32, spine), (95, spine)):
        route = cluster.route("gpu0", f"gpu{peer}")
        assert (route.bytes_per_s, route.latency_s) == pytest.approx((level.bytes_per_s, level.latency_s))
        assert cluster.level_between(0, peer) == level


def test_a_single_pod_has_no_way_to_another(platform: hw_schema.Platform) -> None:
    cluster = Cluster.of(platform, 16)
    assert [level.size for level in cluster.levels] == [8, 2, 1]
    flat = Cluster.of("h100", 16)
    assert [(level.bytes_per_s, level.latency_s) for level in cluster.levels[:2]] == [
        (level.bytes_per_s, level.latency_s) for level in flat.levels
    ]


def test_pods_come_whole(platform: hw_schema.Platform) -> None:
    with pytest.raises(HardwareError, match="5 into pods of 4"):
        Cluster.of(platform, 40)


def test_an_axis_over_three_levels(platform: hw_schema.Platform) -> None:
    cluster = Cluster.of(platform, 64)
    assert Mesh.lay(cluster, [64]).level_sizes(["x"]) == {"nvlink": 8, "ib": 4, "spine": 2}
    assert Mesh.lay(cluster, [4, 16]).level_sizes(["x"]) == {"ib": 2, "spine": 2}
    with pytest.raises(PlacementError):
        Mesh.lay(Cluster.of(platform, 96), [96], stages=2)  # a stage of one pod and a half


def test_names_differ(tmp_path: Path, platform: hw_schema.Platform) -> None:
    preset = Path(hw_schema.__file__).parent / "presets" / "h100.toml"
    path = tmp_path / "twice.toml"
    path.write_text(preset.read_text(encoding="utf-8") + SPINE.replace('"spine"', '"ib"'))
    with pytest.raises(HardwareError, match="two fabrics of one name"):
        load_platform(path)


def test_the_spine_costs_and_is_bounded(platform: hw_schema.Platform) -> None:
    """Two pods: the frontier is bounded as ever, and no plan is faster than where the fabric is flat."""
    g = rooflang.GraphBuilder("mlp", batch=4096, hidden=8192, ffn=32768)
    up = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w1", "hidden ffn")], "batch ffn")
    down = g.op("down", "matmul", [up, g.weight("w2", "ffn hidden")], "batch hidden")
    graph = g.build(down)
    found = {}
    for name, cluster in (("pods", Cluster.of(platform, 64)), ("flat", Cluster.of("h100", 64))):
        (best,) = rooflang.optimize(graph, hardware=cluster, pp=1, batch=[4096]).frontier
        assert best.bound_s is not None and best.bound_s <= best.sim.step_s
        found[name] = best
    assert found["pods"].sim.step_s >= found["flat"].sim.step_s
    steps = []
    for cluster in (Cluster.of(platform, 64), Cluster.of("h100", 64)):
        layout = rooflang.Layout.start(graph, cluster, mesh=[2, 32]).split_kernel("up", "ffn", axis="x")
        steps.append(rooflang.simulate_layout(layout.split_kernel("down", "ffn", axis="x")).sim.step_s)
    assert steps[0] > 1.5 * steps[1]  # an all-reduce between the pods, which stands between 2.5 times less


def test_a_collective_over_pods_loads_the_nics_with_both(platform: hw_schema.Platform) -> None:
    """However the NIC's bytes are split between the pod and the spine, they are those of a flat fabric."""
    pods, flat = Cluster.of(platform, 64), Cluster.of("h100", 64)
    for name in ("all_gather", "all_reduce", "reduce_scatter"):
        over = collective(pods, {"nvlink": 8, "ib": 4, "spine": 2}, name, 1e9, PHYSICAL)
        level = collective(flat, {"nvlink": 8, "ib": 8}, name, 1e9, PHYSICAL)
        assert over["nvlink"] == level["nvlink"]
        assert over["ib"] == pytest.approx(level["ib"])
    whole = all_to_all(pods, {"nvlink": 8, "ib": 4, "spine": 2}, 1e9)
    assert whole["ib"] == pytest.approx(all_to_all(flat, {"nvlink": 8, "ib": 8}, 1e9)["ib"])
    assert whole["spine"] == pytest.approx(1e9 / 2 / (50e9 / 2.5))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pods=st.sampled_from([1, 2]),
    oversubscription=st.sampled_from([1.0, 7.0]),
    sizes=st.tuples(st.sampled_from([64, 4096]), st.sampled_from([1024, 4096]), st.sampled_from([2048, 16384])),
    normed=st.booleans(),
    overlap=st.sampled_from(["perfect", "none"]),
)
def test_steps_over_a_spine_are_bounded_and_the_same_on_every_rank(
    platform: hw_schema.Platform,
    pods: int,
    oversubscription: float,
    sizes: tuple[int, int, int],
    normed: bool,
    overlap: Overlap,
) -> None:
    assert platform.spine is not None
    spine = msgspec.structs.replace(platform.spine, domains=pods, oversubscription=oversubscription)
    cluster = Cluster.of(msgspec.structs.replace(platform, spine=spine), 32)
    batch, hidden, ffn = sizes
    g = rooflang.GraphBuilder("mlp", batch=batch, hidden=hidden, ffn=ffn)
    up = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w1", "hidden ffn")], "batch ffn")
    x = g.op("down", "matmul", [up, g.weight("w2", "ffn hidden")], "batch hidden")
    graph = g.build(g.op("norm", "rms_norm", [x], "batch hidden", over="hidden") if normed else x)
    problem = Problem.of(graph, hardware=cluster)
    for point in rooflang.optimize(graph, hardware=cluster, batch=[batch], overlap=overlap).points:
        assert point.bound_s is not None and point.bound_s <= point.sim.step_s
        plan = replay(point.certificate, problem.blocks, cluster)
        explicit = evaluate(problem, plan, batch, overlap=overlap, explicit=True)
        assert explicit.sim.step_s == pytest.approx(point.sim.step_s, rel=1e-9)


def test_what_fails_below_a_spine_is_gone_around(platform: hw_schema.Platform) -> None:
    """Through the NIC of a neighbour; the way inside the pod stays where only that up has failed."""
    cluster = Cluster.of(platform, 64)
    lanes = tuple((level.name, direction) for level in cluster.levels for direction in ("out", "in"))

    def links(level: str) -> dict[str, list[str]]:
        found = fabric(cluster, lanes, (LinkOverride(gpus=(3,), level=level, factor=0.0),))
        return {
            lane: [found.names[link] for role in found.of_lane[lane, "out"] if (link := found.roles[role][3]) >= 0]
            for lane in ("ib", "spine")
        }

    up, out = links("spine"), links("ib")
    assert up["ib"] == ["ib nic3 → port3"]
    assert "spine port0 → spine" in up["spine"] and "nvlink gpu3 → switch0" in up["spine"]
    assert "ib nic0 → port0" in out["ib"] and "spine port0 → spine" in out["spine"]
