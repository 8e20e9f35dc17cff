"""What one GPU sees of the machine: the fabric levels that it talks over and the memory tiers that it can use.

Both are measured on routes through the graph of a small stretch of the cluster. All domains and all boards are alike,
so two domains and, in them, the GPUs of one board show every path and everything that paths share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflang.hw.routes import Route, fair_bytes_per_s, find_route
from rooflang.hw.schema import Platform
from rooflang.hw.topology import board_size, build_graph, home_memory

if TYPE_CHECKING:
    import networkx

TIERS = ("hbm", "dram", "nvme")


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A fabric level. `size` is how many members it joins: GPUs of a domain, domains of a pod (without a spine: of the
    cluster), pods of the cluster."""

    name: str
    size: int
    bytes_per_s: float
    """One way per GPU, while every GPU sends to a peer."""
    latency_s: float
    """From GPU to GPU: the latencies of the links on the route, added."""
    domain_cap_bytes_per_s: float = math.inf
    """The most that one collective gets out of a whole domain, where the platform's source states such a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A kind of memory as one GPU sees it.

    Rule for shared parts: all GPUs use the tier at once, each its own memory (its HBM, its CPU's DRAM, its drive); the
    GPUs whose routes use a link have equal shares of it, and the GPUs of one memory equal shares of its capacity.
    """

    name: str
    capacity_bytes: float
    read_bytes_per_s: float
    write_bytes_per_s: float
    latency_s: float
    half_duplex: bool
    """Whether reads and writes share the bandwidth."""


def measure(platform: Platform, domain: int, pod: int, pods: int) -> tuple[tuple[Level, ...], tuple[Tier, ...]]:
    """The levels, innermost first, and the tiers of a cluster of `pods` pods of `pod` domains of `domain` GPUs.

    Raises `HardwareError` when two GPUs, or a GPU and its memory, have no route.
    """
    board = board_size(platform, domain)
    # A second board, where the domain has one, gives the first one's last GPU its neighbour.
    stretch = min(domain, 2 * board)
    graph = build_graph(platform, 2 * stretch, stretch)
    levels = [
        _scale_up(graph, platform, board, stretch, domain),
        _between_domains(graph, platform, board, stretch, platform.scale_out.name, pod),
    ]
    if platform.spine:
        apart = build_graph(platform, 2 * stretch, stretch, pod=1)
        levels.append(_between_domains(apart, platform, board, stretch, platform.spine.name, pods))
    names = TIERS if platform.ssd else TIERS[:2]
    return tuple(levels), tuple(_tier(graph, platform, name, board, stretch) for name in names)


def _scale_up(graph: networkx.MultiDiGraph, platform: Platform, board: int, stretch: int, domain: int) -> Level:
    fabric = platform.scale_up
    if domain == 1:
        # Nobody to talk to: the fabric's own figures, GPU to switch to GPU.
        bytes_per_s, latency_s = float(fabric.bandwidth_bytes_per_s), 2 * float(fabric.latency_s)
    else:
        bytes_per_s, latency_s = _send(graph, [(gpu, (gpu + 1) % stretch) for gpu in range(board)])
    return Level(name=fabric.name, size=domain, bytes_per_s=bytes_per_s, latency_s=latency_s)


def _between_domains(
    graph: networkx.MultiDiGraph, platform: Platform, board: int, stretch: int, name: str, size: int
) -> Level:
    bytes_per_s, latency_s = _send(graph, [(gpu, gpu + stretch) for gpu in range(board)])
    cap = platform.scale_out.domain_cap_bytes_per_s
    return Level(
        name=name,
        size=size,
        bytes_per_s=bytes_per_s,
        latency_s=latency_s,
        domain_cap_bytes_per_s=math.inf if cap is None else float(cap),
    )


def _send(graph: networkx.MultiDiGraph, pairs: list[tuple[int, int]]) -> tuple[float, float]:
    """The slowest sender's bandwidth and the longest latency while all pairs of GPUs send."""
    routes = [find_route(graph, f"gpu{src}", f"gpu{dst}") for src, dst in pairs]
    return min(fair_bytes_per_s(route, routes) for route in routes), max(route.latency_s for route in routes)


def _tier(graph: networkx.MultiDiGraph, platform: Platform, name: str, board: int, stretch: int) -> Tier:
    """The tier as seen from GPU 0, whose CPU and drive serve at least as many GPUs as any other's."""
    homes = [home_memory(platform, name, gpu, stretch) for gpu in range(board)]
    reads, writes = _ways_home(graph, homes)
    return Tier(
        name=name,
        capacity_bytes=graph.nodes[homes[0]]["capacity_bytes"] / homes.count(homes[0]),
        read_bytes_per_s=fair_bytes_per_s(reads[0], reads),
        write_bytes_per_s=fair_bytes_per_s(writes[0], writes),
        latency_s=max(reads[0].latency_s, writes[0].latency_s),
        half_duplex=_half_duplex(graph, reads[0]),
    )


def tier_bytes_per_s(platform: Platform, name: str, domain: int, gpus: int) -> tuple[float, float]:
    """(reading, writing): what a GPU gets of a tier at most while all of its own block of `gpus` successive GPUs use it
    at once, and nobody else does.

    Of blocks that do not tile a board only so many successive GPUs are sure to be in one block as their sizes have in
    common. Raises `HardwareError` when a GPU and its memory have no route.
    """
    board = board_size(platform, domain)
    stretch = min(domain, 2 * board)
    graph = build_graph(platform, 2 * stretch, stretch)
    homes = [home_memory(platform, name, gpu, stretch) for gpu in range(board)]
    together = math.gcd(board, gpus)
    fastest = []
    for ways in _ways_home(graph, homes):
        runs = (ways[first : first + together] for first in range(0, board, together))
        fastest.append(max(fair_bytes_per_s(route, run) for run in runs for route in run))
    return fastest[0], fastest[1]


def _ways_home(graph: networkx.MultiDiGraph, homes: list[str]) -> tuple[list[Route], list[Route]]:
    """The routes by which the first GPUs read from the memories that are theirs, and those by which they write."""
    reads = [find_route(graph, home, f"gpu{gpu}") for gpu, home in enumerate(homes)]
    return reads, [find_route(graph, f"gpu{gpu}", home) for gpu, home in enumerate(homes)]


def _half_duplex(graph: networkx.MultiDiGraph, route: Route) -> bool:
    first = route.links[0]
    return bool(graph[first.src][first.dst][first.fabric]["half_duplex"])
