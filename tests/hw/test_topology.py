"""The graph has the parts and links that a platform describes, and shares nothing between domains."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import networkx
import pytest

from rooflang.hw import load_platform
from rooflang.hw.topology import board_size, build_graph, shared_by


def kinds(graph: networkx.MultiDiGraph) -> Counter[str]:
    return Counter(kind for _, kind in graph.nodes(data="kind"))


@pytest.mark.parametrize(
    ("name", "gpus", "domain", "cpus", "switches"),
    [
        ("b300", 16, 8, 4, 1 + 2 + 16),  # InfiniBand, NVSwitch per node, PCIe switch per GPU
        ("h200", 8, 8, 2, 1 + 1 + 8),
        ("gb300", 16, 8, 8, 1 + 2),
        ("gh200", 8, 8, 8, 1 + 1),
    ],
)
def test_parts(name: str, gpus: int, domain: int, cpus: int, switches: int) -> None:
    graph = build_graph(load_platform(name), gpus, domain)
    assert kinds(graph) == {
        "gpu": gpus, "hbm": gpus, "nic": gpus, "ssd": gpus, "cpu": cpus, "dram": cpus, "switch": switches,
    }  # fmt: skip
    assert networkx.is_strongly_connected(graph)


@pytest.mark.parametrize("name", ["b300", "h200", "gb300", "gh200"])
def test_every_link_goes_both_ways(name: str) -> None:
    graph = build_graph(load_platform(name), 8, 4)
    for src, dst, fabric, data in graph.edges(keys=True, data=True):
        back = graph[dst][src][fabric]
        assert data["bandwidth_bytes_per_s"] > 0
        assert data["latency_s"] == back["latency_s"]
        if fabric != "nvme":
            assert data == back
        assert data["half_duplex"] == (fabric in ("hbm", "dram"))


def test_drives_read_faster_than_they_write() -> None:
    graph = build_graph(load_platform("b300"), 8, 8)
    assert graph["ssd3"]["pcie3"]["nvme"]["bandwidth_bytes_per_s"] == 14e9
    assert graph["pcie3"]["ssd3"]["nvme"]["bandwidth_bytes_per_s"] == 7e9


@pytest.mark.parametrize("name", ["b300", "h200", "gb300", "gh200"])
def test_domains_meet_only_at_the_outer_switch(name: str) -> None:
    graph = build_graph(load_platform(name), 16, 4)
    graph.remove_node("switch-out")
    parts = list(networkx.weakly_connected_components(graph))
    gpus = sorted(sorted(int(node[3:]) for node in part if node.startswith("gpu")) for part in parts)
    assert gpus == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]


def test_cpu_links_stay_on_their_board() -> None:
    pairs = {
        (src, dst)
        for src, dst in build_graph(load_platform("gb300"), 16, 8).edges()
        if src.startswith("cpu") and dst.startswith("cpu")
    }
    assert pairs == {
        (f"cpu{a}", f"cpu{b}") for a, b in [(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4), (6, 7), (7, 6)]
    }


def test_a_part_used_node_has_only_the_cpus_it_needs() -> None:
    assert kinds(build_graph(load_platform("b300"), 4, 4))["cpu"] == 1
    assert kinds(build_graph(load_platform("b300"), 5, 5))["cpu"] == 2


def test_shared_parts(user_file: Path) -> None:
    platform = load_platform(user_file)
    graph = build_graph(platform, 8, 4)
    assert kinds(graph) == {"gpu": 8, "hbm": 8, "nic": 4, "cpu": 2, "dram": 2, "switch": 1 + 2 + 4}
    assert set(graph.successors("pcie1")) == {"gpu2", "gpu3", "cpu0", "nic1"}
    assert graph.degree("switch0") == 0  # a fabric of bandwidth 0 is not there


def test_shared_by_starts_anew_in_each_domain() -> None:
    assert [shared_by(gpu, 2, 3) for gpu in range(6)] == [0, 0, 1, 2, 2, 3]


@pytest.mark.parametrize(("name", "board"), [("b300", 8), ("h200", 8), ("gb300", 4), ("gh200", 1)])
def test_board_size(name: str, board: int) -> None:
    assert board_size(load_platform(name), 64) == board
    assert board_size(load_platform(name), 1) == 1
