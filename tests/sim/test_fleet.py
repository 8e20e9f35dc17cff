"""Overrides of devices: what they change, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflang.errors import UnknownNameError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.sim.fleet import DeviceOverride, Fleet, LinkOverride

CLUSTER = Cluster.of("b300", 16)


def test_without_overrides_all_gpus_are_the_clusters_device() -> None:
    fleet = Fleet.of(CLUSTER)
    assert fleet.clusters == (CLUSTER,)
    assert fleet.colour == (0,) * 16


def test_factors_multiply_and_gpus_of_one_kind_share_a_colour() -> None:
    slow = DeviceOverride(gpus=(3, 5), compute=0.5, hbm=0.9)
    fleet = Fleet.of(CLUSTER, [slow, DeviceOverride(gpus=(5,), compute=0.5)])
    device, twice = fleet.clusters[fleet.colour[3]].device, fleet.clusters[fleet.colour[5]].device
    own = CLUSTER.device
    assert fleet.colour.count(0) == 14 and len(set(fleet.colour)) == 3
    assert device.peak("fp8") == own.peak("fp8") * 0.5
    assert device.hbm_bytes_per_s == own.hbm_bytes_per_s * 0.9
    assert twice.peak("bf16") == own.peak("bf16") * 0.25
    assert device.hbm_bytes == own.hbm_bytes


def test_another_device_takes_its_place_before_factors_apply() -> None:
    h200 = Cluster.of("h200", 8).device
    fleet = Fleet.of(CLUSTER, [DeviceOverride(gpus=(0,), device=h200, hbm=0.5)])
    found = fleet.clusters[fleet.colour[0]]
    assert found.device.name == h200.name
    assert found.device.hbm_bytes_per_s == h200.hbm_bytes_per_s * 0.5
    assert found != CLUSTER


def test_a_device_that_comes_later_is_as_it_is_sold() -> None:
    h200 = Cluster.of("h200", 8).device
    fleet = Fleet.of(CLUSTER, [DeviceOverride(gpus=(0,), hbm=0.5), DeviceOverride(gpus=(0,), device=h200)])
    assert fleet.clusters[fleet.colour[0]].device.hbm_bytes_per_s == h200.hbm_bytes_per_s


def test_links_do_not_change_the_device() -> None:
    assert Fleet.of(CLUSTER, [LinkOverride(gpus=(1,), level="ib", factor=0)]).colour == (0,) * 16


@pytest.mark.parametrize(
    "wrong",
    [
        DeviceOverride(gpus=(16,)),
        DeviceOverride(gpus=(-1,)),
        DeviceOverride(gpus=(0,), compute=0.0),
        DeviceOverride(gpus=(0,), hbm=float("inf")),
        LinkOverride(gpus=(0,), level="ib", factor=-0.5),
        LinkOverride(gpus=(0,), level="ib", factor=float("nan")),
    ],
)
def test_what_cannot_be_is_refused(wrong: DeviceOverride | LinkOverride) -> None:
    with pytest.raises(ValueRangeError):
        Fleet.of(CLUSTER, [wrong])


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="nvlnk"):
        Fleet.of(CLUSTER, [replace(LinkOverride(gpus=(0,), level="nvlnk", factor=0.5))])
