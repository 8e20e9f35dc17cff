"""Levels and tiers agree with routes through the full graph, and with the published latencies."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflang.hw import Cluster, Tier, load_platform, platform_names
from rooflang.hw.topology import home_memory

CASES = [("b300", 16), ("h200", 24), ("gb300", 8), ("gb300", 128), ("gh200", 8), ("gh200", 514)]


@pytest.mark.parametrize(
    ("name", "gpus", "inside_us", "outside_us"),
    [("b300", 16, 1.0, 4.0), ("h200", 16, 1.0, 4.0), ("gb300", 128, 1.0, 3.0), ("gh200", 512, 1.0, 4.0)],
)
def test_path_latencies(name: str, gpus: int, inside_us: float, outside_us: float) -> None:
    inside, outside = Cluster.of(name, gpus).levels
    assert inside.latency_s == pytest.approx(inside_us * 1e-6, rel=1e-12)
    assert outside.latency_s == pytest.approx(outside_us * 1e-6, rel=1e-12)


@pytest.mark.parametrize(("name", "gpus"), CASES)
def test_levels_agree_with_routes(name: str, gpus: int) -> None:
    cluster = Cluster.of(name, gpus)
    inside, outside = cluster.levels
    assert (inside.name, outside.name) == ("nvlink", "ib")
    assert (inside.size, outside.size) == (cluster.domain, cluster.domains)
    for peer in sorted({1, cluster.domain // 2, cluster.domain - 1}):
        route = cluster.route("gpu0", f"gpu{peer}")
        assert (route.bytes_per_s, route.latency_s) == (inside.bytes_per_s, inside.latency_s)
    if cluster.domains > 1:
        for peer in (cluster.domain, gpus - 1):
            route = cluster.route("gpu0", f"gpu{peer}")
            assert (route.bytes_per_s, route.latency_s) == (outside.bytes_per_s, outside.latency_s)
    else:
        up, down = cluster.route("gpu0", "switch-out"), cluster.route("switch-out", "gpu0")
        assert up.bytes_per_s == down.bytes_per_s == outside.bytes_per_s
        assert up.latency_s + down.latency_s == pytest.approx(outside.latency_s)


def test_other_node_of_b300_goes_by_pcie_and_infiniband() -> None:
    route = Cluster.of("b300", 16).route("gpu0", "gpu9")
    assert route.nodes == ("gpu0", "pcie0", "nic0", "switch-out", "nic9", "pcie9", "gpu9")


def test_other_domain_of_gb300_goes_by_the_gpus_own_nic() -> None:
    route = Cluster.of("gb300", 128).route("gpu0", "gpu65")
    assert route.nodes == ("gpu0", "nic0", "switch-out", "nic65", "gpu65")


def test_a_single_gpu_still_has_both_levels() -> None:
    inside, outside = Cluster.of("h200", 1).levels
    assert (inside.size, inside.bytes_per_s, inside.latency_s) == (1, 450e9, 1e-6)
    assert (outside.size, outside.bytes_per_s) == (1, 50e9)
    assert outside.latency_s == pytest.approx(4e-6)


def test_domain_cap() -> None:
    assert Cluster.of("gb300", 128).level("ib").domain_cap_bytes_per_s == 800e9
    assert Cluster.of("b300", 16).level("ib").domain_cap_bytes_per_s == float("inf")


# GB and GB/s and µs by hand: DRAM goes at the slower of the GPU's own link and its share of the CPU's memory.
TIERS: dict[tuple[str, int], list[tuple[str, float, float, float, float]]] = {
    ("b300", 8): [("hbm", 288, 7750, 7750, 0.5), ("dram", 1536 / 4, 64, 64, 1.1), ("nvme", 256e3, 14, 7, 50.5)],
    ("b300", 2): [("hbm", 288, 7750, 7750, 0.5), ("dram", 1536 / 2, 64, 64, 1.1), ("nvme", 256e3, 14, 7, 50.5)],
    ("h200", 8): [("hbm", 144, 4800, 4800, 0.5), ("dram", 1536 / 4, 64, 64, 1.1), ("nvme", 30.72e3, 14, 7, 50.5)],
    ("gb300", 64): [("hbm", 288, 8000, 8000, 0.5), ("dram", 480 / 2, 192, 192, 0.6), ("nvme", 256e3, 14, 7, 50.5)],
    ("gh200", 8): [("hbm", 144, 4900, 4900, 0.5), ("dram", 480, 450, 450, 0.6), ("nvme", 30.72e3, 14, 7, 50.5)],
}  # fmt: skip


@pytest.mark.parametrize(("name", "gpus"), TIERS)
def test_tiers(name: str, gpus: int) -> None:
    cluster = Cluster.of(name, gpus)
    assert len(cluster.tiers) == 3
    for tier, (kind, gb, read, write, us) in zip(cluster.tiers, TIERS[name, gpus]):
        assert tier.name == kind
        assert tier.capacity_bytes == pytest.approx(gb * 1e9, rel=1e-12)
        assert tier.read_bytes_per_s == pytest.approx(read * 1e9, rel=1e-12)
        assert tier.write_bytes_per_s == pytest.approx(write * 1e9, rel=1e-12)
        assert tier.latency_s == pytest.approx(us * 1e-6, rel=1e-12)
        assert tier.half_duplex == (kind != "nvme")


@pytest.mark.parametrize(("name", "gpus"), TIERS)
def test_a_stage_of_whole_boards_gets_what_all_get(name: str, gpus: int) -> None:
    cluster = Cluster.of(name, gpus)
    for tier in cluster.tiers:
        assert cluster.tier_bytes_per_s(tier.name, 8) == (tier.read_bytes_per_s, tier.write_bytes_per_s)


@pytest.mark.parametrize(("gpus", "dram"), [(1, 384), (2, 192), (3, 384), (4, 192), (6, 192)])
def test_a_stage_of_one_gpu_has_its_cpus_memory_for_itself(gpus: int, dram: float) -> None:
    """Of every three successive GPUs of GB300, two to a CPU, one may have a CPU of its own."""
    cluster = Cluster.of("gb300", 12)
    assert cluster.tier_bytes_per_s("dram", gpus) == pytest.approx((dram * 1e9, dram * 1e9), rel=1e-12)
    assert cluster.tier_bytes_per_s("nvme", gpus) == pytest.approx((14e9, 7e9), rel=1e-12)


@pytest.mark.parametrize(("name", "gpus"), CASES)
def test_tiers_agree_with_routes(name: str, gpus: int) -> None:
    """The route is the bound; what a memory's users get together is no more than it has."""
    cluster = Cluster.of(name, gpus)
    for tier in cluster.tiers:
        homes = [home_memory(cluster.platform, tier.name, gpu, cluster.domain) for gpu in range(cluster.domain)]
        read = cluster.route(homes[0], "gpu0")
        assert tier.read_bytes_per_s <= read.bytes_per_s
        assert tier.latency_s == read.latency_s
        users = homes.count(homes[0])
        assert tier.capacity_bytes * users == cluster.graph().nodes[homes[0]]["capacity_bytes"]
        assert tier.read_bytes_per_s * users <= read.links[0].bandwidth_bytes_per_s


def test_shared_nic_switch_and_memory(user_file: Path) -> None:
    cluster = Cluster.of(user_file, 8)
    inside, outside = cluster.levels
    # Without NVLink the pairs talk through their NICs, which are wider than the CPU's uplinks.
    assert cluster.route("gpu1", "gpu2").nodes == ("gpu1", "pcie0", "nic0", "switch-out", "nic1", "pcie1", "gpu2")
    assert inside.bytes_per_s == 32e9
    assert inside.latency_s == pytest.approx(4e-6)
    assert outside.bytes_per_s == 25e9  # two GPUs on a NIC of 50 GB/s
    assert cluster.tier("dram") == Tier(
        name="dram",
        capacity_bytes=100e9,
        read_bytes_per_s=10e9,  # two GPUs on an uplink of 20 GB/s; the memory alone would give 100 / 4
        write_bytes_per_s=10e9,
        latency_s=cluster.route("dram0", "gpu0").latency_s,
        half_duplex=True,
    )
    assert [tier.name for tier in cluster.tiers] == ["hbm", "dram"]


@pytest.mark.parametrize("name", platform_names())
def test_gpus_that_share_a_switch_or_a_cpu_use_a_nic_each(name: str) -> None:
    platform = load_platform(name)
    cluster = Cluster.of(platform, 2 * platform.scale_up.largest)
    rate = float(platform.scale_out.bandwidth_bytes_per_s) / platform.nic.gpus_per_nic
    assert cluster.levels[1].bytes_per_s == pytest.approx(rate)
    last = cluster.domain - 1
    assert f"nic{last // platform.nic.gpus_per_nic}" in cluster.route(f"gpu{last}", f"gpu{last + cluster.domain}").nodes
