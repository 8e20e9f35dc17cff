"""From a platform to its graph of parts: GPUs, memories, switches, NICs and CPUs, joined by directed links.

Nodes are `gpu0`, `hbm0`, `cpu0`, `dram0`, `pcie0`, `nic0`, `ssd0`, `switch0` (one per domain) and `switch-out` (between
all domains; on a platform with a spine `port0` for each NIC, `leaf0` for each pod, and `spine`), numbered over the
whole cluster, with the attribute `kind` and what they can do (`peaks`, `capacity_bytes`), NICs with the GPUs that they
are there for (`serves`). Edges are keyed by fabric
and carry `bandwidth_bytes_per_s`, `latency_s` and `half_duplex` (both directions share the bandwidth).
"""

from __future__ import annotations

from itertools import permutations
from math import ceil, lcm
from typing import TYPE_CHECKING

from rooflang.hw.schema import Platform

if TYPE_CHECKING:
    import networkx


def build_graph(platform: Platform, gpus: int, domain: int, pod: int | None = None) -> networkx.MultiDiGraph:
    """The hardware graph of `gpus` GPUs in scale-up domains of `domain`, which divides `gpus`; with a spine, in pods of
    `pod` domains (by default one pod).

    Links of bandwidth 0 are left out. Parts of a domain are never shared with another domain.
    """
    import networkx

    graph = networkx.MultiDiGraph(name=platform.name)
    graph.add_nodes_from({outer_switch(platform, gpu, domain, pod) for gpu in range(0, gpus, domain)}, kind="switch")
    if platform.spine:
        graph.add_node("spine", kind="switch")
    for index in range(gpus // domain):
        graph.add_node(f"switch{index}", kind="switch")
    for gpu in range(gpus):
        _add_gpu(graph, platform, gpu, domain)
        _add_host(graph, platform, gpu, domain)
        _add_nic(graph, platform, gpu, domain, pod)
        _add_ssd(graph, platform, gpu, domain)
    _add_cpu_links(graph, platform, gpus, domain)
    return graph


def shared_by(gpu: int, gpus_per_part: int, domain: int) -> int:
    """Number of the part that serves `gpu` when each serves `gpus_per_part` successive GPUs of one domain."""
    return gpu // domain * ceil(domain / gpus_per_part) + gpu % domain // gpus_per_part


def outer_switch(platform: Platform, gpu: int, domain: int, pod: int | None = None) -> str:
    """The switch between the domains that `gpu`'s NIC is plugged into: the only one, or that of its pod."""
    if platform.spine is None:
        return "switch-out"
    return f"leaf{0 if pod is None else gpu // (domain * pod)}"


def home_memory(platform: Platform, tier: str, gpu: int, domain: int) -> str:
    """The node that holds `gpu`'s share of a tier: its own HBM, its CPU's DRAM, its drive."""
    if tier == "hbm":
        return f"hbm{gpu}"
    if tier == "dram":
        return f"dram{shared_by(gpu, platform.cpu.gpus_per_cpu, domain)}"
    assert platform.ssd is not None
    return f"ssd{shared_by(gpu, platform.ssd.gpus_per_drive, domain)}"


def board_size(platform: Platform, domain: int) -> int:
    """GPUs of the smallest block that shares no CPU, switch, NIC or drive with the rest of its domain."""
    cpus = platform.cpu_link.cpus if platform.cpu_link else 1
    sizes = [platform.cpu.gpus_per_cpu * cpus, platform.nic.gpus_per_nic]
    if platform.pcie_switch:
        sizes.append(platform.pcie_switch.gpus_per_switch)
    if platform.ssd:
        sizes.append(platform.ssd.gpus_per_drive)
    return min(lcm(*sizes), domain)


def _add_gpu(graph: networkx.MultiDiGraph, platform: Platform, gpu: int, domain: int) -> None:
    hbm, scale_up = platform.hbm, platform.scale_up
    graph.add_node(f"gpu{gpu}", kind="gpu", domain=gpu // domain, peaks=platform.gpu.all_peaks())
    graph.add_node(f"hbm{gpu}", kind="hbm", capacity_bytes=float(hbm.capacity_bytes))
    _join(graph, f"gpu{gpu}", f"hbm{gpu}", "hbm", hbm.bandwidth_bytes_per_s, hbm.latency_s, half_duplex=True)
    switch = f"switch{gpu // domain}"
    _join(graph, f"gpu{gpu}", switch, scale_up.name, scale_up.bandwidth_bytes_per_s, scale_up.latency_s)


def _add_host(graph: networkx.MultiDiGraph, platform: Platform, gpu: int, domain: int) -> None:
    """The GPU's way to its CPU; the CPU and its DRAM come with the first GPU of theirs."""
    number = shared_by(gpu, platform.cpu.gpus_per_cpu, domain)
    cpu, dram = f"cpu{number}", f"dram{number}"
    if cpu not in graph:
        peaks = {dtype: float(peak) for dtype, peak in platform.cpu.peaks.items()}
        graph.add_node(cpu, kind="cpu", domain=gpu // domain, peaks=peaks)
        graph.add_node(dram, kind="dram", capacity_bytes=float(platform.dram.capacity_bytes))
        bandwidth_bytes_per_s, latency_s = platform.dram.bandwidth_bytes_per_s, platform.dram.latency_s
        _join(graph, cpu, dram, "dram", bandwidth_bytes_per_s, latency_s, half_duplex=True)
    if platform.c2c:
        _join(graph, f"gpu{gpu}", cpu, "c2c", platform.c2c.bandwidth_bytes_per_s, platform.c2c.latency_s)
    if pcie := platform.pcie_switch:
        switch = f"pcie{shared_by(gpu, pcie.gpus_per_switch, domain)}"
        if switch not in graph:
            graph.add_node(switch, kind="switch")
            _join(graph, switch, cpu, "pcie", pcie.cpu_bandwidth_bytes_per_s, pcie.latency_s)
        _join(graph, f"gpu{gpu}", switch, "pcie", pcie.gpu_bandwidth_bytes_per_s, pcie.latency_s)


def _add_nic(graph: networkx.MultiDiGraph, platform: Platform, gpu: int, domain: int, pod: int | None) -> None:
    """The NIC with its link out. What an oversubscribed spine leaves it is a link of its own: all NICs of a pod have
    equal shares of the way up."""
    nic = f"nic{shared_by(gpu, platform.nic.gpus_per_nic, domain)}"
    if nic not in graph:
        out = platform.scale_out
        graph.add_node(nic, kind="nic", serves=set())
        switch, rate = outer_switch(platform, gpu, domain, pod), out.bandwidth_bytes_per_s
        if spine := platform.spine:
            port = nic.replace("nic", "port")  # where the way to the pod and the way up part
            graph.add_node(port, kind="switch")
            _join(graph, nic, port, out.name, rate, out.latency_s)
            _join(graph, port, switch, out.name, rate, 0.0)
            _join(graph, port, "spine", spine.name, rate / spine.oversubscription, spine.latency_s)
        else:
            _join(graph, nic, switch, out.name, rate, out.latency_s)
    graph.nodes[nic]["serves"].add(f"gpu{gpu}")
    host = _attachment(platform, platform.nic.attach, gpu, domain)
    _join(graph, host, nic, "pcie", platform.nic.bandwidth_bytes_per_s, platform.nic.latency_s)


def _add_ssd(graph: networkx.MultiDiGraph, platform: Platform, gpu: int, domain: int) -> None:
    ssd = platform.ssd
    if ssd is None:
        return
    drive = home_memory(platform, "nvme", gpu, domain)
    if drive in graph:
        return
    graph.add_node(drive, kind="ssd", capacity_bytes=float(ssd.capacity_bytes))
    host = _attachment(platform, ssd.attach, gpu, domain)
    _link(graph, drive, host, "nvme", ssd.read_bytes_per_s, ssd.latency_s)
    _link(graph, host, drive, "nvme", ssd.write_bytes_per_s, ssd.latency_s)


def _add_cpu_links(graph: networkx.MultiDiGraph, platform: Platform, gpus: int, domain: int) -> None:
    link = platform.cpu_link
    if link is None:
        return
    cpus_per_domain = ceil(domain / platform.cpu.gpus_per_cpu)
    for base in range(0, gpus // domain * cpus_per_domain, cpus_per_domain):
        for first in range(0, cpus_per_domain, link.cpus):
            board = range(base + first, base + min(first + link.cpus, cpus_per_domain))
            for src, dst in permutations(board, 2):
                _link(graph, f"cpu{src}", f"cpu{dst}", link.name, link.bandwidth_bytes_per_s, link.latency_s)


def _attachment(platform: Platform, attach: str, gpu: int, domain: int) -> str:
    if attach == "gpu":
        return f"gpu{gpu}"
    if attach == "cpu":
        return f"cpu{shared_by(gpu, platform.cpu.gpus_per_cpu, domain)}"
    assert platform.pcie_switch is not None
    return f"pcie{shared_by(gpu, platform.pcie_switch.gpus_per_switch, domain)}"


def _join(
    graph: networkx.MultiDiGraph,
    one: str,
    other: str,
    fabric: str,
    bandwidth_bytes_per_s: float,
    latency_s: float,
    *,
    half_duplex: bool = False,
) -> None:
    _link(graph, one, other, fabric, bandwidth_bytes_per_s, latency_s, half_duplex=half_duplex)
    _link(graph, other, one, fabric, bandwidth_bytes_per_s, latency_s, half_duplex=half_duplex)


def _link(
    graph: networkx.MultiDiGraph,
    src: str,
    dst: str,
    fabric: str,
    bandwidth_bytes_per_s: float,
    latency_s: float,
    *,
    half_duplex: bool = False,
) -> None:
    # A part that serves several GPUs is joined once per GPU; the key makes the second time the same edge.
    if bandwidth_bytes_per_s > 0:
        graph.add_edge(
            src,
            dst,
            key=fabric,
            bandwidth_bytes_per_s=float(bandwidth_bytes_per_s),
            latency_s=float(latency_s),
            half_duplex=half_duplex,
        )
