"""The parts of a platform as a tree: what is inside what, how many there are, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rooflang.hw import Platform
from rooflang.units import show_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part in words, with the parts inside it."""

    words: str
    inside: tuple[Part, ...] = field(default=())


def draw(platform: Platform) -> str:
    """One domain of a platform in full, and what joins it to others; rates are one way."""
    import networkx

    tree = networkx.Graph()
    for path, part in _walk(_cluster(platform), ()):
        tree.add_node(path, label=part.words)
        if path:
            tree.add_edge(path[:-1], path)
    return "\n".join(networkx.generate_network_text(tree, sources=[()]))


def _walk(part: Part, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Part]]:
    yield path, part
    for number, inner in enumerate(part.inside):
        yield from _walk(inner, (*path, number))


def _cluster(platform: Platform) -> Part:
    up, out, spine = platform.scale_up, platform.scale_out, platform.spine
    domain = Part(
        words=f"domain: {up.largest} GPUs on {up.name}, {_rate(up.bandwidth_bytes_per_s)} each",
        inside=tuple(_hosts(platform)),
    )
    if spine is None:
        return Part(words=f"domains on {out.name}, {_rate(out.bandwidth_bytes_per_s)} a NIC", inside=(domain,))
    pod = Part(
        words=f"pod: {spine.domains} domains on {out.name}, {_rate(out.bandwidth_bytes_per_s)} a NIC",
        inside=(domain,),
    )
    share = out.bandwidth_bytes_per_s / spine.oversubscription
    return Part(words=f"pods on {spine.name}, {_rate(share)} a NIC", inside=(pod,))


def _hosts(platform: Platform) -> Iterator[Part]:
    cpu, dram, link = platform.cpu, platform.dram, platform.cpu_link
    cpus = -(-platform.scale_up.largest // cpu.gpus_per_cpu)
    joined = f", each {link.cpus} joined by {link.name}, {_rate(link.bandwidth_bytes_per_s)}" if link else ""
    memory = f"DRAM: {show_bytes(dram.capacity_bytes)} at {_rate(dram.bandwidth_bytes_per_s)}"
    served = min(cpu.gpus_per_cpu, platform.scale_up.largest)
    yield Part(words=f"{_counted(cpus, cpu.name)}{joined}", inside=(Part(words=memory), *_below_cpu(platform, served)))


def _below_cpu(platform: Platform, gpus: int) -> Iterator[Part]:
    pcie = platform.pcie_switch
    if pcie is None:
        assert platform.c2c is not None
        yield _gpu(platform, gpus, f"c2c, {_rate(platform.c2c.bandwidth_bytes_per_s)}")
        yield from _devices(platform, gpus, "cpu")
        return
    switches = -(-gpus // pcie.gpus_per_switch)
    below = min(gpus, pcie.gpus_per_switch)
    inside = (
        _gpu(platform, below, f"PCIe, {_rate(pcie.gpu_bandwidth_bytes_per_s)}"),
        *_devices(platform, below, "pcie_switch"),
    )
    yield Part(words=f"{_counted(switches, 'PCIe switch')}, {_rate(pcie.cpu_bandwidth_bytes_per_s)} up", inside=inside)
    yield from _devices(platform, gpus, "cpu")


def _gpu(platform: Platform, count: int, link: str) -> Part:
    hbm = platform.hbm
    words = f"{_counted(count, 'GPU')} ({link}): {show_bytes(hbm.capacity_bytes)} of HBM at "
    return Part(words=words + _rate(hbm.bandwidth_bytes_per_s), inside=tuple(_devices(platform, count, "gpu")))


def _devices(platform: Platform, gpus: int, attach: str) -> Iterator[Part]:
    """The NICs and drives that are plugged in here, for that many GPUs."""
    nic, ssd = platform.nic, platform.ssd
    if nic.attach == attach:
        count = -(-gpus // nic.gpus_per_nic)
        yield Part(words=f"{_counted(count, nic.name)} (PCIe, {_rate(nic.bandwidth_bytes_per_s)})")
    if ssd and ssd.attach == attach:
        rates = f"reads {_rate(ssd.read_bytes_per_s)}, writes {_rate(ssd.write_bytes_per_s)}"
        count = -(-gpus // ssd.gpus_per_drive)
        yield Part(words=f"{_counted(count, 'drive')}: {show_bytes(ssd.capacity_bytes)}, {rates}")


def _counted(count: int, name: str) -> str:
    return name if count == 1 else f"{count} × {name}"


def _rate(bytes_per_s: float) -> str:
    return f"{show_bytes(bytes_per_s)}/s"
