"""Routes through a hardware graph: Dijkstra on 1/bandwidth, the best parallel fabric on each hop."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflang.errors import HardwareError

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One directed edge of the hardware graph."""

    src: str
    dst: str
    fabric: str
    bandwidth_bytes_per_s: float
    latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path through the hardware graph; from a node to itself it has no links, no latency and no limit."""

    nodes: tuple[str, ...]
    links: tuple[Link, ...]

    @property
    def bytes_per_s(self) -> float:
        """Bandwidth of the bottleneck, as if nothing else used the route."""
        return min((link.bandwidth_bytes_per_s for link in self.links), default=math.inf)

    @property
    def latency_s(self) -> float:
        """Sum of the latencies of the links."""
        return math.fsum(link.latency_s for link in self.links)


#: By which part a NIC that is there for others is taken to be slower: GPUs on one switch or CPU each use their own.
_FOREIGN = 1e-6


def find_route(graph: networkx.MultiDiGraph, src: str, dst: str) -> Route:
    """The route from `src` to `dst` that minimises the sum of 1/bandwidth over its hops.

    Edges carry `bandwidth_bytes_per_s` and `latency_s` and are keyed by fabric. An edge of bandwidth 0 has failed and
    is not taken. Of equally good paths the one over the own NIC of a GPU at its end wins, else the one found first,
    which depends only on the order of the graph's edges. Raises `HardwareError` when a node does not exist or no path
    is left.
    """
    import networkx

    for node in (src, dst):
        if node not in graph:
            kinds = Counter(str(kind) for _, kind in graph.nodes(data="kind"))
            known = ", ".join(f"{count} of kind {kind}" for kind, count in sorted(kinds.items()))
            raise HardwareError(
                f"no node {node!r} in the hardware graph",
                expected=f"one of its {len(graph)} nodes ({known}), such as {next(iter(graph), '')!r}",
            )

    def hop(_near: str, far: str, fabrics: Mapping[str, Mapping[str, Any]]) -> float | None:
        best = max(edge["bandwidth_bytes_per_s"] for edge in fabrics.values())
        serves = graph.nodes[far].get("serves", ())
        foreign = _FOREIGN if serves and src not in serves and dst not in serves else 0.0
        return (1 + foreign) / best if best > 0 else None

    try:
        nodes = networkx.dijkstra_path(graph, src, dst, weight=hop)
    except networkx.NetworkXNoPath as error:
        raise HardwareError(
            f"no route from {src} to {dst}",
            expected="a path of links with a bandwidth above 0",
            hint="a bandwidth of '0 GB/s' means that the link is not there",
        ) from error
    links = tuple(_best_fabric(graph, *pair) for pair in pairwise(nodes))
    return Route(nodes=tuple(nodes), links=links)


def _best_fabric(graph: networkx.MultiDiGraph, src: str, dst: str) -> Link:
    """The fastest of the parallel edges of a hop; of equally fast ones the one with the least latency."""
    fabrics = (
        Link(
            src=src,
            dst=dst,
            fabric=fabric,
            bandwidth_bytes_per_s=edge["bandwidth_bytes_per_s"],
            latency_s=edge["latency_s"],
        )
        for fabric, edge in graph[src][dst].items()
    )
    return min(fabrics, key=lambda link: (-link.bandwidth_bytes_per_s, link.latency_s, link.fabric))


def fair_bytes_per_s(route: Route, all_routes: Iterable[Route]) -> float:
    """What `route` gets when all of `all_routes` (itself among them) move data at once.

    Every link is shared equally by the routes that use it; the slowest share decides.
    """
    users = Counter((link.src, link.dst, link.fabric) for each in all_routes for link in each.links)
    shares: Sequence[float] = [
        link.bandwidth_bytes_per_s / users[link.src, link.dst, link.fabric] for link in route.links
    ]
    return min(shares, default=math.inf)
