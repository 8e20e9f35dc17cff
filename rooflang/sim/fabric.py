"""The links that ranks really use, found on routes through the hardware graph: own ports, shared NICs, detours.

A *lane* is what a rank asks of the fabric: (level, `out` or `in`), or (memory tier, `read` or `write`). Its route is a
list of directed links. A link is left out where it cannot be the slowest: another link of the route is no faster and
serves all of its users too. What remains on a healthy platform is one link a lane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from rooflang.hw.cluster import Cluster
from rooflang.hw.routes import Route, find_route
from rooflang.hw.schema import Platform
from rooflang.hw.topology import board_size, build_graph, home_memory, outer_switch, shared_by
from rooflang.sim.fleet import LinkOverride, Override

if TYPE_CHECKING:
    import networkx

#: (level or tier, direction)
Lane = tuple[str, str]
#: (source, destination, fabric); the two directions of a half-duplex link are one, its ends sorted
Edge = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fabric:
    """Links by number, and the lanes of ranks on them.

    `roles[role][rank]` is a link or -1, as `symmetry.rank_classes` takes it; `of_lane[lane]` lists the roles of a lane,
    one a link of its route. A lane that takes T seconds at the rate r of `cost.tiers.lane_bytes_per_s` keeps link l
    busy for T·r/`bytes_per_s[l]`. `extra_s[lane]` is what a detour adds to the latency of every rank.
    """

    names: tuple[str, ...]
    bytes_per_s: tuple[float, ...]
    roles: Mapping[str, tuple[int, ...]]
    of_lane: Mapping[Lane, tuple[str, ...]]
    extra_s: Mapping[Lane, tuple[float, ...]]

    def colours(self) -> list[tuple[str, float]]:
        """What tells links apart: the fabric and the bandwidth."""
        return [(name.split()[0], speed) for name, speed in zip(self.names, self.bytes_per_s)]


@lru_cache(maxsize=32)
def fabric(cluster: Cluster, lanes: tuple[Lane, ...], overrides: tuple[Override, ...]) -> Fabric:
    """The fabric for some lanes of every GPU. Raises `HardwareError` when failed links leave no route."""
    routes, speeds = _healthy(cluster, lanes)
    extra_s = {lane: [0.0] * cluster.gpus for lane in lanes}
    failed: set[Edge] = set()
    for override in overrides:
        if isinstance(override, LinkOverride):
            for gpu in override.gpus:
                for edge in _own_links(cluster, override.level, gpu):
                    if edge in speeds:
                        speeds[edge] *= override.factor
                    if not override.factor:
                        failed.add(edge)
    if failed:
        _reroute(cluster, routes, speeds, extra_s, failed)
    kept = _binding(routes, speeds)
    return _numbered(cluster, lanes, kept, speeds, extra_s)


# -- routes -----------------------------------------------------------------------------------------------------------


def _healthy(cluster: Cluster, lanes: Sequence[Lane]) -> tuple[dict[tuple[Lane, int], list[Edge]], dict[Edge, float]]:
    """The routes of every lane and GPU, as all boards are alike, and the bandwidth of each link on them."""
    board = board_size(cluster.platform, cluster.domain)
    stretch = min(cluster.domain, 2 * board)
    graph = build_graph(cluster.platform, 2 * stretch, stretch, pod=1)
    routes: dict[tuple[Lane, int], list[Edge]] = {}
    speeds: dict[Edge, float] = {}
    for lane in lanes:
        for place in range(board):
            route = _route(graph, cluster.platform, lane, place, stretch, pod=1)
            for gpu in range(place, cluster.gpus, 1):
                if gpu % cluster.domain % board == place:
                    edges = [_moved(edge, cluster, gpu - place) for edge in _edges(graph, route)]
                    routes[lane, gpu] = edges
                    speeds.update(zip(edges, (link.bandwidth_bytes_per_s for link in route.links)))
    return routes, speeds


def _route(graph: networkx.MultiDiGraph, platform: Platform, lane: Lane, gpu: int, domain: int, pod: int) -> Route:
    """From a GPU to the switch of a level (`out`, `in` the other way), or between it and its memory of a tier."""
    name, direction = lane
    if name == platform.scale_up.name:
        far = f"switch{gpu // domain}"
    elif name == platform.scale_out.name:
        far = outer_switch(platform, gpu, domain, pod)
    elif platform.spine and name == platform.spine.name:
        far = "spine"
    else:
        far = home_memory(platform, name, gpu, domain)
    near = f"gpu{gpu}"
    return find_route(graph, near, far) if direction in ("out", "write") else find_route(graph, far, near)


def _edges(graph: networkx.MultiDiGraph, route: Route) -> list[Edge]:
    edges: list[Edge] = []
    for link in route.links:
        ends = (link.src, link.dst)
        if graph[link.src][link.dst][link.fabric]["half_duplex"]:
            ends = (min(ends), max(ends))
        edges.append((*ends, link.fabric))
    return edges


def _moved(edge: Edge, cluster: Cluster, first: int) -> Edge:
    """The same link of the board whose first GPU is `first`."""
    return _node(edge[0], cluster, first), _node(edge[1], cluster, first), edge[2]


def _node(name: str, cluster: Cluster, first: int) -> str:
    kind = name.rstrip("0123456789")
    if kind == name:  # the one switch between all domains, or all pods
        return name
    if kind == "leaf":
        return outer_switch(cluster.platform, first, cluster.domain, cluster.pod)
    number = int(name[len(kind) :])
    if kind == "switch":
        return f"switch{number + first // cluster.domain}"
    return f"{kind}{number + shared_by(first, _gpus_per_part(cluster.platform, kind), cluster.domain)}"


def _gpus_per_part(platform: Platform, kind: str) -> int:
    if kind in ("cpu", "dram"):
        return platform.cpu.gpus_per_cpu
    if kind in ("nic", "port"):
        return platform.nic.gpus_per_nic
    if kind == "pcie" and platform.pcie_switch:
        return platform.pcie_switch.gpus_per_switch
    if kind == "ssd" and platform.ssd:
        return platform.ssd.gpus_per_drive
    return 1


def _own_links(cluster: Cluster, level: str, gpu: int) -> list[Edge]:
    """Both directions of the link that a GPU (or its NIC, or its NIC's port of a spine) has on a level."""
    platform = cluster.platform
    if level == platform.scale_up.name:
        near, far = f"gpu{gpu}", f"switch{gpu // cluster.domain}"
    else:
        number = shared_by(gpu, platform.nic.gpus_per_nic, cluster.domain)
        if level != platform.scale_out.name:
            near, far = f"port{number}", "spine"
        else:
            near, far = f"nic{number}", f"port{number}" if platform.spine else "switch-out"
    return [(near, far, level), (far, near, level)]


def _reroute(
    cluster: Cluster,
    routes: dict[tuple[Lane, int], list[Edge]],
    speeds: dict[Edge, float],
    extra_s: Mapping[Lane, list[float]],
    failed: set[Edge],
) -> None:
    """Give every lane that used a failed link the best route that is left."""
    whole = cluster.graph()
    graph = whole.copy()
    graph.remove_edges_from([edge for edge in failed if graph.has_edge(*edge)])
    for (lane, gpu), edges in routes.items():
        if failed.isdisjoint(edges):
            continue
        old = _route(whole, cluster.platform, lane, gpu, cluster.domain, cluster.pod)
        new = _route(graph, cluster.platform, lane, gpu, cluster.domain, cluster.pod)
        edges[:] = _edges(graph, new)
        extra_s[lane][gpu] = new.latency_s - old.latency_s
        for edge, link in zip(edges, new.links):
            speeds.setdefault(edge, link.bandwidth_bytes_per_s)


# -- links that can be the slowest ------------------------------------------------------------------------------------


def _binding(
    routes: Mapping[tuple[Lane, int], list[Edge]], speeds: Mapping[Edge, float]
) -> dict[tuple[Lane, int], list[Edge]]:
    """Of every route the links that no other link of it dominates."""
    users: dict[Edge, set[tuple[Lane, int]]] = defaultdict(set)
    for lane, edges in routes.items():
        for edge in edges:
            users[edge].add(lane)
    kept: dict[tuple[Lane, int], list[Edge]] = {}
    for lane, edges in routes.items():
        left: list[Edge] = []
        for edge in sorted(edges, key=lambda e: (speeds[e], -len(users[e]))):
            if not any(speeds[other] <= speeds[edge] and users[edge] <= users[other] for other in left):
                left.append(edge)
        kept[lane] = left
    return kept


def _numbered(
    cluster: Cluster,
    lanes: Iterable[Lane],
    routes: Mapping[tuple[Lane, int], list[Edge]],
    speeds: Mapping[Edge, float],
    extra_s: Mapping[Lane, list[float]],
) -> Fabric:
    numbers: dict[Edge, int] = {}
    roles: dict[str, tuple[int, ...]] = {}
    of_lane: dict[Lane, tuple[str, ...]] = {}
    for lane in lanes:
        hops = max((len(routes[lane, gpu]) for gpu in range(cluster.gpus)), default=0)
        names = [f"{lane[0]} {lane[1]} {hop}" for hop in range(hops)]
        for hop, name in enumerate(names):
            roles[name] = tuple(
                numbers.setdefault(edges[hop], len(numbers)) if hop < len(edges) else -1
                for gpu in range(cluster.gpus)
                for edges in [routes[lane, gpu]]
            )
        of_lane[lane] = tuple(names)
    return Fabric(
        names=tuple(f"{fabric} {src} → {dst}" for src, dst, fabric in numbers),
        bytes_per_s=tuple(speeds[edge] for edge in numbers),
        roles=roles,
        of_lane=of_lane,
        extra_s={lane: tuple(extra) for lane, extra in extra_s.items()},
    )
