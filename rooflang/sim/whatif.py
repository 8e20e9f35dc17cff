"""Machines that are better in one thing: HBM, one fabric level, latencies, the peak of one dtype."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from rooflang.cost.model import CostModel, peaks_needed
from rooflang.hw.cluster import Cluster
from rooflang.hw.decode import BytesPerS
from rooflang.hw.schema import Platform
from rooflang.place.lower import PlacedGraph
from rooflang.sim.fleet import with_device


def variants(placed: PlacedGraph, cost: CostModel, factor: float) -> Iterator[tuple[str, CostModel]]:
    """(what is better, the cost model then) for each thing that the graph uses; `factor` above 1 is better."""
    cluster, device = cost.cluster, cost.cluster.device
    faster = replace(device, hbm_bytes_per_s=device.hbm_bytes_per_s * factor)
    yield "HBM bandwidth", replace(cost, cluster=with_device(cluster, faster))
    for level in cluster.levels:
        if level.size > 1:
            yield f"{level.name} bandwidth", replace(cost, cluster=_wider(cluster, level.name, factor))
    yield "latencies", replace(cost, cluster=_quicker(cluster, factor))
    carriers: dict[str, list[str]] = {}
    for dtype in sorted(peaks_needed(placed.blocks.graph)):
        carriers.setdefault(device.emulated.get(dtype, dtype), []).append(dtype)
    for carrier in carriers:
        alike = {carrier, *(dtype for dtype, carried_by in device.emulated.items() if carried_by == carrier)}
        peaks = {dtype: peak * (factor if dtype in alike else 1.0) for dtype, peak in device.peaks.items()}
        yield f"{carrier} peak", replace(cost, cluster=with_device(cluster, replace(device, peaks=peaks)))


def _wider(cluster: Cluster, level: str, factor: float) -> Cluster:
    """The cluster of a platform with a faster fabric; what else lies on its routes stays, and may be the limit then."""
    wide = Cluster.of(_with_fabric(cluster.platform, level, factor), cluster.gpus, domain=cluster.domain)
    return with_device(wide, cluster.device)


def _with_fabric(platform: Platform, level: str, factor: float) -> Platform:
    if level == platform.scale_up.name:
        up = platform.scale_up
        faster = msgspec.structs.replace(up, bandwidth_bytes_per_s=BytesPerS(up.bandwidth_bytes_per_s * factor))
        return msgspec.structs.replace(platform, scale_up=faster)
    out, spine = platform.scale_out, platform.spine
    if spine is not None and level == spine.name:
        # Less than 1 would mean that the way up is wider than the NICs, which are the limit then.
        eased = max(1.0, spine.oversubscription / factor)
        return msgspec.structs.replace(platform, spine=msgspec.structs.replace(spine, oversubscription=eased))
    cap = out.domain_cap_bytes_per_s
    wider = msgspec.structs.replace(
        out,
        bandwidth_bytes_per_s=BytesPerS(out.bandwidth_bytes_per_s * factor),
        domain_cap_bytes_per_s=None if cap is None else BytesPerS(cap * factor),
    )
    return msgspec.structs.replace(platform, scale_out=wider)


def _quicker(cluster: Cluster, factor: float) -> Cluster:
    levels = tuple(replace(level, latency_s=level.latency_s / factor) for level in cluster.levels)
    digest = hashlib.sha256(f"{cluster.digest} latencies / {factor}".encode()).hexdigest()
    return replace(cluster, levels=levels, digest=digest)
