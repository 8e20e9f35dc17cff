"""Links of lanes: one each on a healthy platform, shared NICs, memory beside the NIC, and detours around failures."""

from __future__ import annotations

import msgspec
import pytest

from rooflang.errors import HardwareError
from rooflang.hw import Cluster
from rooflang.hw.decode import BytesPerS
from rooflang.hw.routes import find_route
from rooflang.hw.schema import load_platform
from rooflang.sim.fabric import Fabric, Lane, fabric
from rooflang.sim.fleet import LinkOverride, Override

OUT_AND_IN = (("nvlink", "out"), ("nvlink", "in"), ("ib", "out"), ("ib", "in"))


def links(found: Fabric, lane: Lane, gpu: int) -> list[str]:
    numbers = [found.roles[role][gpu] for role in found.of_lane[lane]]
    return [found.names[number] for number in numbers if number >= 0]


@pytest.mark.parametrize("platform", ["b300", "gb300", "gh200", "h200"])
def test_a_healthy_gpu_has_one_link_of_its_own_for_each_lane(platform: str) -> None:
    cluster = Cluster.of(platform, 512)
    found = fabric(cluster, OUT_AND_IN, ())
    for lane in OUT_AND_IN:
        own = {tuple(links(found, lane, gpu)) for gpu in range(512)}
        assert len(own) == 512 and all(len(names) == 1 for names in own)
        speeds = {found.bytes_per_s[found.roles[role][gpu]] for role in found.of_lane[lane] for gpu in range(512)}
        assert speeds == {cluster.level(lane[0]).bytes_per_s}
        assert set(found.extra_s[lane]) == {0.0}


def test_links_are_those_of_the_clusters_own_graph() -> None:
    cluster = Cluster.of("gb300", 144)
    found = fabric(cluster, OUT_AND_IN, ())
    for gpu in (0, 5, 71, 72, 143):
        for lane in OUT_AND_IN:
            far = "switch-out" if lane[0] == "ib" else f"switch{gpu // 72}"
            ends = (f"gpu{gpu}", far) if lane[1] == "out" else (far, f"gpu{gpu}")
            route = find_route(cluster.graph(), *ends)
            slowest = min(route.links, key=lambda link: link.bandwidth_bytes_per_s)
            assert links(found, lane, gpu) == [f"{slowest.fabric} {slowest.src} → {slowest.dst}"]


def test_gpus_that_share_a_nic_share_its_link() -> None:
    platform = load_platform("b300")
    assert platform.pcie_switch is not None
    nic = msgspec.structs.replace(platform.nic, gpus_per_nic=2, bandwidth_bytes_per_s=BytesPerS(400e9))
    switch = msgspec.structs.replace(platform.pcie_switch, gpus_per_switch=2)
    cluster = Cluster.of(msgspec.structs.replace(platform, nic=nic, pcie_switch=switch), 16)
    found = fabric(cluster, (("ib", "out"),), ())
    ways = [links(found, ("ib", "out"), gpu) for gpu in range(16)]
    shared = [next(name for name in way if "nic" in name and "switch-out" in name) for way in ways]
    assert shared[0] == shared[1] != shared[2] == shared[3]
    assert cluster.level("ib").bytes_per_s < 100e9


def test_host_memory_and_nic_meet_on_the_pcie_link_into_the_gpu() -> None:
    cluster = Cluster.of("b300", 16)
    found = fabric(cluster, (*OUT_AND_IN, ("dram", "read")), ())
    both = set(links(found, ("dram", "read"), 9)) & set(links(found, ("ib", "in"), 9))
    assert both == {"pcie pcie9 → gpu9"}
    assert not set(links(found, ("dram", "read"), 9)) & set(links(found, ("ib", "out"), 9))
    on_dram = [gpu for gpu in range(16) if "dram cpu1 → dram1" in links(found, ("dram", "read"), gpu)]
    assert on_dram == [4, 5, 6, 7]


def test_a_narrow_link_is_its_own() -> None:
    cluster = Cluster.of("b300", 16)
    found = fabric(cluster, OUT_AND_IN, (LinkOverride(gpus=(3,), level="ib", factor=0.25),))
    speeds = [found.bytes_per_s[found.roles["ib out 0"][gpu]] for gpu in range(16)]
    assert speeds == [25e9 if gpu == 3 else 100e9 for gpu in range(16)]


def test_a_failed_nic_link_sends_its_traffic_over_a_neighbours() -> None:
    cluster = Cluster.of("b300", 16)
    found = fabric(cluster, OUT_AND_IN, (LinkOverride(gpus=(0,), level="ib", factor=0),))
    assert links(found, ("ib", "out"), 0) == [
        "ib nic1 → switch-out",
        "nvlink gpu0 → switch0",
        "nvlink switch0 → gpu1",
    ]
    assert links(found, ("ib", "out"), 1) == ["ib nic1 → switch-out"]
    assert found.extra_s["ib", "out"][0] == pytest.approx(1e-6)
    assert found.extra_s["ib", "out"][1] == 0.0
    assert not any("nic0" in name for name in found.names)


def test_failures_that_leave_no_way_are_an_error() -> None:
    cluster = Cluster.of("b300", 16)
    dead: tuple[Override, ...] = (LinkOverride(gpus=tuple(range(16)), level="ib", factor=0),)
    with pytest.raises(HardwareError, match="no route from gpu0 to switch-out"):
        fabric(cluster, OUT_AND_IN, dead)
