"""The hardware file: one TOML table per part of a platform, every table with the `source` of its numbers.

Quantities are text with units (`"7750 GB/s"`), bandwidths are one way, gigabytes decimal. Keys without a default are
required, keys that are not listed here are refused. A platform is a recipe: `Cluster.of` builds it for a GPU count.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from rooflang.errors import HardwareError, UnknownNameError
from rooflang.hw.decode import Bytes, BytesPerS, FlopPerS, Seconds, read_toml

_PRESETS = Path(__file__).parent / "presets"

Count = Annotated[int, Meta(ge=1)]
Text = Annotated[str, Meta(min_length=1)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file. `source` says where its numbers come from; without one the file is refused."""

    source: Text


class Gpu(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[gpu]`: dense peaks per dtype; `emulated` maps a dtype without hardware of its own to the one it runs at."""

    name: Text
    peaks: dict[str, FlopPerS]
    emulated: dict[str, str] = {}

    def all_peaks(self) -> dict[str, float]:
        """FLOP/s per dtype, emulated dtypes at the peak of the dtype that carries them."""
        own = {dtype: float(peak) for dtype, peak in self.peaks.items()}
        return own | {dtype: own[carrier] for dtype, carrier in self.emulated.items()}


class Hbm(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[hbm]`, one per GPU. Reads and writes share the bandwidth (half duplex)."""

    capacity_bytes: Bytes = field(name="capacity")
    bandwidth_bytes_per_s: BytesPerS = field(name="bandwidth")
    latency_s: Seconds = field(name="latency")


class ScaleUp(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[scale_up]`: the fabric of one domain (NVLink): each GPU has one link to one ideal switch.

    A cluster takes the largest domain of at most `largest` GPUs, a multiple of `multiple_of`, that divides its GPU
    count. With `fixed_size` every domain is full, except that a cluster smaller than `largest` is one part-used domain.
    """

    name: Text
    bandwidth_bytes_per_s: BytesPerS = field(name="bandwidth")
    latency_s: Seconds = field(name="latency")
    largest: Count
    multiple_of: Count = 1
    fixed_size: bool = False


class ScaleOut(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[scale_out]`: the fabric between domains (InfiniBand): each NIC has one link to one ideal switch.

    `domain_cap` is the most that a collective gets out of one domain, where a source states such a limit; routes do
    not know it.
    """

    name: Text
    bandwidth_bytes_per_s: BytesPerS = field(name="bandwidth")
    latency_s: Seconds = field(name="latency")
    domain_cap_bytes_per_s: BytesPerS | None = field(name="domain_cap", default=None)


class Spine(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[spine]`: joins pods of `domains` scale-up domains, where the fabric between domains is not flat.

    A NIC's share of the way up is its bandwidth divided by `oversubscription`; `latency` is what the way over the
    spine adds to each half of the route. Rails need no words here: GPU k of a domain talks to GPU k of another one.
    """

    name: Text
    domains: Count
    oversubscription: Annotated[float, Meta(ge=1)] = 1.0
    latency_s: Seconds = field(name="latency")


class Nic(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[nic]`: what a NIC is plugged into, and that link."""

    name: Text
    attach: Literal["gpu", "cpu", "pcie_switch"]
    bandwidth_bytes_per_s: BytesPerS = field(name="bandwidth")
    latency_s: Seconds = field(name="latency")
    gpus_per_nic: Count = 1


class Cpu(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[cpu]`: the hosts; successive GPUs of a domain share one. `peaks` may be empty: no op is placed on a CPU."""

    name: Text
    gpus_per_cpu: Count
    peaks: dict[str, FlopPerS] = {}


class CpuLink(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[cpu_link]`: joins each `cpus` successive CPUs of a domain pairwise (the sockets of a board)."""

    name: Text
    cpus: Annotated[int, Meta(ge=2)]
    bandwidth_bytes_per_s: BytesPerS = field(name="bandwidth")
    latency_s: Seconds = field(name="latency")


class PcieSwitch(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[pcie_switch]`: GPU to CPU through a PCIe switch; both hops have the latency."""

    gpus_per_switch: Count
    gpu_bandwidth_bytes_per_s: BytesPerS = field(name="gpu_bandwidth")
    cpu_bandwidth_bytes_per_s: BytesPerS = field(name="cpu_bandwidth")
    latency_s: Seconds = field(name="latency")


class C2c(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[c2c]`: GPU to CPU by a link of their own (NVLink-C2C)."""

    bandwidth_bytes_per_s: BytesPerS = field(name="bandwidth")
    latency_s: Seconds = field(name="latency")


class Dram(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[dram]`, one per CPU. Reads and writes share the bandwidth (half duplex)."""

    capacity_bytes: Bytes = field(name="capacity")
    bandwidth_bytes_per_s: BytesPerS = field(name="bandwidth")
    latency_s: Seconds = field(name="latency")


class Ssd(Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[ssd]`: a drive for each `gpus_per_drive` successive GPUs, plugged into their CPU or PCIe switch."""

    attach: Literal["cpu", "pcie_switch"]
    capacity_bytes: Bytes = field(name="capacity")
    read_bytes_per_s: BytesPerS = field(name="read_bandwidth")
    write_bytes_per_s: BytesPerS = field(name="write_bandwidth")
    latency_s: Seconds = field(name="latency")
    gpus_per_drive: Count = 1


class Platform(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole hardware file. Exactly one of `pcie_switch` and `c2c` joins a GPU to its CPU."""

    name: Text
    description: Text
    gpu: Gpu
    hbm: Hbm
    scale_up: ScaleUp
    scale_out: ScaleOut
    nic: Nic
    cpu: Cpu
    dram: Dram
    cpu_link: CpuLink | None = None
    pcie_switch: PcieSwitch | None = None
    c2c: C2c | None = None
    ssd: Ssd | None = None
    spine: Spine | None = None


def platform_names() -> tuple[str, ...]:
    """The names that `load_platform` knows, sorted."""
    return tuple(sorted(path.stem for path in _PRESETS.glob("*.toml")))


def load_platform(name_or_path: str | Path) -> Platform:
    """A shipped platform by name (any case), or a hardware file by path (a `Path`, or text ending in `.toml`).

    Raises `UnknownNameError` for a name that no preset has and `HardwareError` for a file that is not well formed.
    """
    if isinstance(name_or_path, Path) or str(name_or_path).endswith(".toml"):
        path = Path(name_or_path)
    elif str(name_or_path).lower() in platform_names():
        path = _PRESETS / f"{name_or_path.lower()}.toml"
    else:
        raise UnknownNameError("hardware", str(name_or_path), platform_names())
    platform = read_toml(path, Platform)
    _check(platform, path)
    return platform


def _check(platform: Platform, path: Path) -> None:
    """What one key alone cannot say: the sections must agree with each other."""
    gpu, scale_up = platform.gpu, platform.scale_up
    for dtype, carrier in gpu.emulated.items():
        if dtype in gpu.peaks or carrier not in gpu.peaks:
            raise HardwareError(
                f"{dtype!r} cannot be emulated at the rate of {carrier!r}",
                where=f"{path}: gpu.emulated.{dtype}",
                expected="a dtype without a peak, carried by one of " + ", ".join(sorted(gpu.peaks)),
            )
    fabrics = [part.name for part in (scale_up, platform.scale_out, platform.spine) if part]
    if len(set(fabrics)) < len(fabrics):
        raise HardwareError(
            f"two fabrics of one name: {', '.join(fabrics)}",
            where=f"{path}: scale_up.name, scale_out.name" + (", spine.name" if platform.spine else ""),
            expected="a name of its own for each",
        )
    if scale_up.largest % scale_up.multiple_of:
        raise HardwareError(
            f"the largest domain ({scale_up.largest}) is not a multiple of {scale_up.multiple_of}",
            where=f"{path}: scale_up.largest",
            expected=f"a multiple of scale_up.multiple_of = {scale_up.multiple_of}",
        )
    if (platform.pcie_switch is None) == (platform.c2c is None):
        raise HardwareError(
            "a GPU needs exactly one way to its CPU",
            where=f"{path}: pcie_switch, c2c",
            expected="either a [pcie_switch] or a [c2c] table",
        )
    if platform.pcie_switch is None:
        for key, part in (("nic", platform.nic), ("ssd", platform.ssd)):
            if part is not None and part.attach == "pcie_switch":
                raise HardwareError(
                    "attached to a PCIe switch that the platform does not have",
                    where=f"{path}: {key}.attach",
                    expected="'cpu'" if key == "ssd" else "'cpu' or 'gpu'",
                    hint="or add a [pcie_switch] table",
                )
    elif platform.cpu.gpus_per_cpu % platform.pcie_switch.gpus_per_switch:
        raise HardwareError(
            f"a switch of {platform.pcie_switch.gpus_per_switch} GPUs would belong to two CPUs",
            where=f"{path}: pcie_switch.gpus_per_switch",
            expected=f"a divisor of cpu.gpus_per_cpu = {platform.cpu.gpus_per_cpu}",
        )
