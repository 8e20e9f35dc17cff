"""Platforms as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rooflang.hw import Cluster, Platform
from rooflang.hw.schema import Section
from rooflang.report.drawing import draw
from rooflang.report.layout import facts, paragraph, table
from rooflang.units import show_bytes, show_seconds


def show_platforms(platforms: Sequence[Platform]) -> str:
    """One row a platform."""
    rows = []
    for platform in platforms:
        rows.append(
            (
                platform.name,
                show_bytes(platform.hbm.capacity_bytes),
                _per_s(platform.hbm.bandwidth_bytes_per_s),
                _per_s(platform.scale_up.bandwidth_bytes_per_s),
                str(platform.scale_up.largest),
                platform.description,
            )
        )
    return table(("<name", "HBM", "HBM rate", "scale-up", "domain", "<description"), rows)


def show_platform(platform: Platform) -> str:
    """The parts drawn as a tree; peaks, fabric levels and memory tiers as one GPU sees them in a cluster of two full
    domains, and the sources."""
    pods = platform.spine.domains if platform.spine else 1
    cluster = Cluster.of(platform, 2 * pods * platform.scale_up.largest)
    peaks = [
        (
            dtype,
            f"{peak / 1e12:,.1f} TFLOP/s",
            f"runs as {platform.gpu.emulated[dtype]}" if dtype in platform.gpu.emulated else "",
        )
        for dtype, peak in cluster.device.peaks.items()
    ]
    levels = [
        (level.name, str(level.size), _per_s(level.bytes_per_s), show_seconds(level.latency_s), members)
        for level, members in zip(cluster.levels, _members(platform), strict=True)
    ]
    tiers = [
        (
            tier.name,
            show_bytes(tier.capacity_bytes),
            _per_s(tier.read_bytes_per_s),
            _per_s(tier.write_bytes_per_s),
            show_seconds(tier.latency_s),
            "reads and writes share the rate" if tier.half_duplex else "reads and writes at once",
        )
        for tier in cluster.tiers
    ]
    return "\n\n".join(
        (
            paragraph(f"{platform.name}: {platform.description}", then="  ") + f"\nGPU: {platform.gpu.name}",
            draw(platform),
            table(("<dtype", "dense peak", "<note"), peaks),
            table(("<fabric", "joins", "each way per GPU", "latency", "<members"), levels),
            table(("<memory", "per GPU", "read", "write", "latency", "<note"), tiers),
            "Sources\n" + facts(_sources(platform)),
        )
    )


def platforms_json(platforms: Sequence[Platform]) -> dict[str, Any]:
    """Every number of the hardware files under its SI name, with its source, as JSON-ready data."""
    return {"schema": "rooflang.hardware/1", "platforms": [_plain(platform) for platform in platforms]}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return {name: _plain(each) for name, each in fields.items() if each is not None}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return float(value) if isinstance(value, float) else value


def _members(platform: Platform) -> tuple[str, ...]:
    if platform.spine is None:
        return "GPUs of a domain", "domains, any number of them"
    return "GPUs of a domain", "domains of a pod", "pods, any number of them"


def _per_s(bytes_per_s: float) -> str:
    return f"{show_bytes(bytes_per_s)}/s"


def _sources(platform: Platform) -> list[tuple[str, str]]:
    sections = ((name, getattr(platform, name)) for name in platform.__struct_fields__)
    return [(name, section.source) for name, section in sections if isinstance(section, Section)]
