"""Dijkstra on 1/bandwidth, the best parallel fabric per hop, failed links, fair shares."""

from __future__ import annotations

import math

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import HardwareError
from rooflang.hw import Cluster
from rooflang.hw.routes import fair_bytes_per_s, find_route

Edges = list[tuple[str, str, str, float, float]]


def graph_of(edges: Edges) -> networkx.MultiDiGraph:
    graph = networkx.MultiDiGraph()
    for src, dst, fabric, bandwidth, latency in edges:
        graph.add_edge(src, dst, key=fabric, bandwidth_bytes_per_s=bandwidth, latency_s=latency)
    return graph


def test_the_wider_path_wins_over_the_shorter() -> None:
    graph = graph_of([("a", "b", "slow", 1.0, 0.0), ("a", "c", "fast", 10.0, 2.0), ("c", "b", "fast", 5.0, 3.0)])
    route = find_route(graph, "a", "b")
    assert route.nodes == ("a", "c", "b")
    assert route.bytes_per_s == 5.0
    assert route.latency_s == 5.0
    assert [(link.src, link.dst, link.fabric) for link in route.links] == [("a", "c", "fast"), ("c", "b", "fast")]


def test_best_parallel_fabric() -> None:
    graph = graph_of([("a", "b", "pcie", 1.0, 0.1), ("a", "b", "nvlink", 9.0, 0.5), ("a", "b", "other", 9.0, 0.7)])
    (link,) = find_route(graph, "a", "b").links
    assert (link.fabric, link.bandwidth_bytes_per_s, link.latency_s) == ("nvlink", 9.0, 0.5)


def test_direction_matters() -> None:
    graph = graph_of([("a", "b", "x", 1.0, 0.0)])
    with pytest.raises(HardwareError, match="no route from b to a"):
        find_route(graph, "b", "a")


def test_a_link_of_bandwidth_0_is_absent() -> None:
    graph = graph_of([("a", "b", "nvlink", 0.0, 0.1), ("a", "b", "pcie", 2.0, 0.5)])
    assert find_route(graph, "a", "b").links[0].fabric == "pcie"
    graph["a"]["b"]["pcie"]["bandwidth_bytes_per_s"] = 0.0
    with pytest.raises(HardwareError, match="no route") as caught:
        find_route(graph, "a", "b")
    assert "0 GB/s" in caught.value.hint


def test_failed_nvlink_goes_round() -> None:
    graph = Cluster.of("b300", 8).graph().copy()
    assert find_route(graph, "gpu0", "gpu1").nodes == ("gpu0", "switch0", "gpu1")
    graph["gpu0"]["switch0"]["nvlink"]["bandwidth_bytes_per_s"] = 0.0
    route = find_route(graph, "gpu0", "gpu1")
    assert route.nodes[1] == "pcie0"
    assert route.bytes_per_s < 900e9
    assert find_route(graph, "gpu1", "gpu0").bytes_per_s == 900e9  # only one direction failed


def test_to_itself() -> None:
    route = find_route(graph_of([("a", "b", "x", 1.0, 0.0)]), "a", "a")
    assert (route.nodes, route.links, route.latency_s, route.bytes_per_s) == (("a",), (), 0.0, math.inf)


def test_unknown_node() -> None:
    with pytest.raises(HardwareError, match="no node 'gpu8'") as caught:
        Cluster.of("b300", 8).route("gpu0", "gpu8")
    assert "8 of kind gpu" in caught.value.expected


@given(st.lists(st.tuples(*[st.sampled_from("abcde")] * 2, st.sampled_from("xy"), st.integers(0, 6)), max_size=25))
def test_no_simple_path_is_better(drawn: list[tuple[str, str, str, int]]) -> None:
    graph = graph_of([(src, dst, fabric, float(width), 0.5) for src, dst, fabric, width in drawn if src != dst])
    graph.add_nodes_from("ab")

    def cost(nodes: list[str]) -> float:
        widths = [
            max(edge["bandwidth_bytes_per_s"] for edge in graph[src][dst].values())
            for src, dst in zip(nodes, nodes[1:])  # noqa: RUF007
        ]
        return sum(1 / width if width else math.inf for width in widths)

    best = min((cost(path) for path in networkx.all_simple_paths(graph, "a", "b")), default=math.inf)
    if best == math.inf:
        with pytest.raises(HardwareError):
            find_route(graph, "a", "b")
    else:
        route = find_route(graph, "a", "b")
        assert cost(list(route.nodes)) == pytest.approx(best)
        assert route.bytes_per_s == min(link.bandwidth_bytes_per_s for link in route.links)
        assert route.latency_s == pytest.approx(0.5 * len(route.links))


def test_fair_share() -> None:
    graph = graph_of(
        [("a", "s", "x", 4.0, 0.0), ("b", "s", "x", 4.0, 0.0), ("c", "s", "x", 1.0, 0.0), ("s", "m", "x", 6.0, 0.0)]
    )
    routes = [find_route(graph, node, "m") for node in "abc"]
    assert [fair_bytes_per_s(route, routes) for route in routes] == [2.0, 2.0, 1.0]
    assert fair_bytes_per_s(routes[0], routes[:1]) == 4.0
