"""A cluster: a platform built for a GPU count."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rooflang.errors import HardwareError, UnknownNameError
from rooflang.hw.levels import Level, Tier, measure, tier_bytes_per_s
from rooflang.hw.routes import Route, find_route
from rooflang.hw.schema import Platform, load_platform
from rooflang.hw.topology import build_graph
from rooflang.units import whole

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU with the memory that is its own or its share."""

    name: str
    peaks: Mapping[str, float]
    """Dense FLOP/s per dtype, emulated dtypes included."""
    emulated: Mapping[str, str]
    """Dtype without hardware of its own -> the dtype at whose rate it runs."""
    hbm_bytes: float
    hbm_bytes_per_s: float
    dram_bytes: float
    ssd_bytes: float
    """0 on a platform without drives."""

    def peak(self, dtype: str) -> float:
        """FLOP/s of `dtype`; `HardwareError` when the device has none."""
        if dtype not in self.peaks:
            raise HardwareError(
                f"dtype without a peak on the device: {dtype!r}",
                where=self.name,
                expected="one of " + ", ".join(sorted(self.peaks)),
                hint="give the platform's [gpu] table a peak for it, or an emulated dtype that carries it",
            )
        return self.peaks[dtype]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cluster:
    """GPUs 0 … gpus-1 in scale-up domains of `domain` successive GPUs. Build one with `Cluster.of`.

    Two clusters are equal when their fingerprints are: the same numbers, whatever the prose of their files.
    """

    platform: Platform = field(repr=False)
    gpus: int
    domain: int
    pod: int
    """Domains in a pod; all of them on a platform without a spine."""
    device: Device = field(repr=False)
    levels: tuple[Level, ...] = field(repr=False)
    """Innermost first: inside a domain, between domains, on a platform with a spine between pods (each of size 1 when
    there is only one)."""
    tiers: tuple[Tier, ...] = field(repr=False)
    """Nearest first: hbm, dram, and nvme where the platform has drives."""
    digest: str = field(repr=False)

    @classmethod
    def of(cls, platform: str | Path | Platform, gpus: int, *, domain: int | None = None) -> Cluster:
        """`gpus` GPUs of a platform (its name, file or record), in domains of `domain` (by default as it is sold).

        Raises `HardwareError` when the GPUs do not factor into domains, or the platform is not well formed, and
        `UnknownNameError` for a platform that does not exist.
        """
        record = platform if isinstance(platform, Platform) else load_platform(platform)
        gpus = whole(gpus, where="--gpus", least=None)
        size = _domain_size(record, gpus) if domain is None else _checked_domain(record, gpus, domain)
        pod = _pod_size(record, gpus // size)
        levels, tiers = measure(record, size, pod, gpus // size // pod)
        capacities = {tier.name: tier.capacity_bytes for tier in tiers}
        device = Device(
            name=record.gpu.name,
            peaks=record.gpu.all_peaks(),
            emulated=dict(record.gpu.emulated),
            hbm_bytes=capacities["hbm"],
            hbm_bytes_per_s=tiers[0].read_bytes_per_s,
            dram_bytes=capacities["dram"],
            ssd_bytes=capacities.get("nvme", 0.0),
        )
        return cls(
            platform=record,
            gpus=gpus,
            domain=size,
            pod=pod,
            device=device,
            levels=levels,
            tiers=tiers,
            digest=_digest(record, gpus, size),
        )

    @property
    def domains(self) -> int:
        """How many scale-up domains there are."""
        return self.gpus // self.domain

    def level(self, name: str) -> Level:
        """The fabric level called `name`; `UnknownNameError` when there is none."""
        for level in self.levels:
            if level.name == name:
                return level
        raise UnknownNameError("fabric level", name, (level.name for level in self.levels), where=self.platform.name)

    def level_between(self, gpu: int, other: int) -> Level:
        """The level over which two GPUs talk."""
        domain, peer = gpu // self.domain, other // self.domain
        if domain == peer:
            return self.levels[0]
        return self.levels[1] if domain // self.pod == peer // self.pod else self.levels[-1]

    def tier(self, name: str) -> Tier:
        """The memory tier `hbm`, `dram` or `nvme` as one GPU sees it; `HardwareError` when there is none."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        raise HardwareError(
            f"no memory tier {name!r}",
            where=self.platform.name,
            expected="one of " + ", ".join(tier.name for tier in self.tiers),
        )

    def tier_bytes_per_s(self, name: str, gpus: int) -> tuple[float, float]:
        """(reading, writing): what a GPU gets of a tier while a block of `gpus` successive GPUs, a pipeline stage, uses
        it and the others do not. It is what `tier` says where a stage has whole boards. Raises `HardwareError`."""
        return _tier_bytes_per_s(self, self.tier(name).name, gpus)

    def graph(self) -> networkx.MultiDiGraph:
        """Every part and every link (`rooflang.hw.topology` names them), frozen; `.copy()` one to change it."""
        return _graph(self)

    def route(self, src: str, dst: str) -> Route:
        """The route between two nodes of the graph; `HardwareError` when a node does not exist or there is none."""
        return find_route(self.graph(), src, dst)

    def fingerprint(self) -> str:
        """SHA-256, in hex, of the GPU count, the domain size and the platform without its prose."""
        return self.digest

    def __str__(self) -> str:
        return f"{self.platform.name} × {self.gpus}, in domains of {self.domain}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cluster) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=8)
def _graph(cluster: Cluster) -> networkx.MultiDiGraph:
    import networkx

    return networkx.freeze(build_graph(cluster.platform, cluster.gpus, cluster.domain, cluster.pod))


@lru_cache(maxsize=256)
def _tier_bytes_per_s(cluster: Cluster, name: str, gpus: int) -> tuple[float, float]:
    return tier_bytes_per_s(cluster.platform, name, cluster.domain, gpus)


def _digest(platform: Platform, gpus: int, domain: int) -> str:
    numbers = msgspec.to_builtins(platform, enc_hook=float)
    del numbers["description"]
    for section in numbers.values():
        if isinstance(section, dict):
            del section["source"]
    text = msgspec.json.encode({"platform": numbers, "gpus": gpus, "domain": domain}, order="sorted")
    return hashlib.sha256(text).hexdigest()


def _domain_size(platform: Platform, gpus: int) -> int:
    """The largest domain that the platform allows and that divides the GPUs."""
    scale_up = platform.scale_up
    if scale_up.fixed_size and gpus >= scale_up.largest:
        sizes = [scale_up.largest]
    else:
        sizes = [size for size in range(min(scale_up.largest, gpus), 0, -1) if size % scale_up.multiple_of == 0]
    for size in sizes:
        if gpus % size == 0:
            return size
    raise _do_not_factor(platform, gpus)


def _pod_size(platform: Platform, domains: int) -> int:
    """Domains in a pod: those of a full one, or all where they are fewer."""
    spine = platform.spine
    if spine is None or domains <= spine.domains:
        return domains
    if domains % spine.domains:
        raise HardwareError(
            f"domains that do not factor: {domains} into pods of {spine.domains}",
            where=platform.name,
            expected=f"a multiple of spine.domains = {spine.domains} domains, or fewer",
        )
    return spine.domains


def _checked_domain(platform: Platform, gpus: int, domain: int) -> int:
    scale_up = platform.scale_up
    if gpus < 1:
        raise _do_not_factor(platform, gpus)
    if domain < 1 or domain > scale_up.largest or domain % scale_up.multiple_of:
        raise HardwareError(
            f"a domain of {domain} GPUs cannot be built",
            where=platform.name,
            expected=f"a multiple of {scale_up.multiple_of}, at most {scale_up.largest}",
            hint="for another fabric, copy the platform's file, change [scale_up] and pass its path",
        )
    if gpus % domain:
        raise HardwareError(
            f"GPUs that do not factor: {gpus} into domains of {domain}",
            where=platform.name,
            expected=f"a number of GPUs that {domain} divides",
        )
    return domain


def _do_not_factor(platform: Platform, gpus: int) -> HardwareError:
    scale_up = platform.scale_up
    step = scale_up.largest if scale_up.fixed_size else scale_up.multiple_of
    fewer = f", or fewer than {step}" if scale_up.fixed_size else ""
    below = max(gpus // step * step, step)
    return HardwareError(
        f"GPUs that do not factor: {gpus} into {scale_up.name} domains",
        where=platform.name,
        expected=f"a positive multiple of {step}{fewer}",
        hint=f"{below} would do" if below >= gpus else f"{below} or {below + step} would do",
    )
