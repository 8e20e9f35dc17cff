"""The GPUs as they really are: what some of them have in place of the cluster's device or of its links."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rooflang.errors import ValueRangeError
from rooflang.hw.cluster import Cluster, Device


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOverride:
    """GPUs that are not the cluster's device.

    `device` is what they are instead (default: the same device); `compute` and `hbm` multiply its peaks and the
    bandwidth of its HBM (0.9: throttled by a tenth).
    """

    gpus: tuple[int, ...]
    device: Device | None = field(default=None, hash=False)
    compute: float = 1.0
    hbm: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOverride:
    """GPUs whose own link on a fabric level has `factor` times its bandwidth, in both directions; 0 is a failed link.

    Traffic of a failed link goes over the best route that is left, and shares the links on it with their owners.
    """

    gpus: tuple[int, ...]
    level: str
    factor: float


Override = DeviceOverride | LinkOverride


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The devices of a cluster. `colour[gpu]` indexes `clusters`: a cluster whose every device is like that GPU."""

    clusters: tuple[Cluster, ...]
    colour: tuple[int, ...]

    @classmethod
    def of(cls, cluster: Cluster, overrides: Sequence[Override] = ()) -> Fleet:
        """The fleet after all overrides, later ones on top of earlier ones. Raises `ValueRangeError` for a GPU that
        does not exist or a factor that cannot be, `UnknownNameError` for a level that does not exist."""
        changes: list[tuple[DeviceOverride, ...]] = [()] * cluster.gpus
        for override in overrides:
            _check(cluster, override)
            if isinstance(override, DeviceOverride):
                for gpu in override.gpus:
                    changes[gpu] = (*changes[gpu], override)
        known: dict[tuple[DeviceOverride, ...], int] = {(): 0}
        colour = tuple(known.setdefault(change, len(known)) for change in changes)
        return cls(clusters=tuple(_changed(cluster, change) for change in known), colour=colour)


def _check(cluster: Cluster, override: Override) -> None:
    for gpu in override.gpus:
        if not 0 <= gpu < cluster.gpus:
            raise ValueRangeError(f"GPU {gpu}", where="override", expected=f"0 to {cluster.gpus - 1}")
    if isinstance(override, LinkOverride):
        cluster.level(override.level)
        if not 0 <= override.factor < float("inf"):
            raise ValueRangeError(f"link factor {override.factor}", where="override", expected="0 (failed) or more")
    elif not (0 < override.compute < float("inf") and 0 < override.hbm < float("inf")):
        raise ValueRangeError(
            f"device factors {override.compute}, {override.hbm}", where="override", expected="positive numbers"
        )


def _changed(cluster: Cluster, changes: tuple[DeviceOverride, ...]) -> Cluster:
    """A cluster of such devices. Its digest says so, as equal digests mean equal clusters."""
    if not changes:
        return cluster
    device = cluster.device
    for change in changes:
        device = change.device or device
        device = replace(
            device,
            peaks={dtype: peak * change.compute for dtype, peak in device.peaks.items()},
            hbm_bytes_per_s=device.hbm_bytes_per_s * change.hbm,
        )
    return with_device(cluster, device)


def with_device(cluster: Cluster, device: Device) -> Cluster:
    """The same cluster with another device in every place."""
    numbers = (device.hbm_bytes, device.hbm_bytes_per_s, device.dram_bytes, device.ssd_bytes)
    text = f"{cluster.digest} {device.name} {sorted(device.peaks.items())} {numbers}"
    return replace(cluster, device=device, digest=hashlib.sha256(text.encode()).hexdigest())
