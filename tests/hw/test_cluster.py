"""Domain sizes, devices, errors and fingerprints of clusters."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import HardwareError, UnknownNameError
from rooflang.hw import Cluster, load_platform
from rooflang.units import parse


@pytest.mark.parametrize(
    ("name", "gpus", "domain"),
    [
        ("b300", 8, 8), ("b300", 256, 8), ("b300", 3, 3), ("b300", 1, 1), ("h200", 64, 8), ("h200", 7, 7),
        ("gb300", 4, 4), ("gb300", 8, 8), ("gb300", 64, 64), ("gb300", 72, 72), ("gb300", 128, 64), ("gb300", 144, 72),
        ("gb300", 76, 4), ("gh200", 8, 8), ("gh200", 256, 256), ("gh200", 512, 256), ("gh200", 257, 1),
    ],
)  # fmt: skip
def test_domain(name: str, gpus: int, domain: int) -> None:
    cluster = Cluster.of(name, gpus)
    assert (cluster.gpus, cluster.domain, cluster.domains) == (gpus, domain, gpus // domain)


@given(st.integers(1, 600), st.sampled_from(["gb300", "gh200"]))
def test_domain_is_the_largest_that_divides(gpus: int, name: str) -> None:
    largest, step = {"gb300": (72, 4), "gh200": (256, 1)}[name]
    fitting = [size for size in range(step, largest + 1, step) if gpus % size == 0]
    if fitting:
        assert Cluster.of(name, gpus).domain == max(fitting)
    else:
        with pytest.raises(HardwareError, match="GPUs that do not factor"):
            Cluster.of(name, gpus)


@pytest.mark.parametrize(
    ("name", "gpus", "hint"),
    [
        ("b300", 12, "8 or 16"), ("h200", 9, "8 or 16"), ("gb300", 6, "4 or 8"), ("gb300", 2, "4 would do"),
        ("gh200", 0, "1 would do"), ("b300", -8, "8 would do"),
    ],
)  # fmt: skip
def test_gpus_that_do_not_factor(name: str, gpus: int, hint: str) -> None:
    with pytest.raises(HardwareError, match="GPUs that do not factor") as caught:
        Cluster.of(name, gpus)
    assert caught.value.where == name
    assert hint in caught.value.hint
    assert "multiple" in caught.value.expected


def test_domain_asked_for() -> None:
    cluster = Cluster.of("gb300", 64, domain=8)
    assert (cluster.domain, cluster.domains) == (8, 8)
    assert cluster.route("gpu0", "gpu8").bytes_per_s == 100e9
    assert Cluster.of("b300", 8, domain=4).domains == 2


@pytest.mark.parametrize(
    ("name", "gpus", "domain", "what"),
    [
        ("gb300", 64, 6, "cannot be built"), ("gb300", 144, 144, "cannot be built"), ("b300", 16, 0, "cannot be built"),
        ("b300", 16, 5, "GPUs that do not factor: 16 into domains of 5"), ("gb300", 64, 12, "GPUs that do not factor"),
        ("b300", 0, 8, "GPUs that do not factor"),
    ],
)  # fmt: skip
def test_domain_refused(name: str, gpus: int, domain: int, what: str) -> None:
    with pytest.raises(HardwareError, match=what) as caught:
        Cluster.of(name, gpus, domain=domain)
    assert caught.value.expected


def test_device() -> None:
    device = Cluster.of("gb300", 64).device
    assert device.peak("fp4") == 15e15
    assert (device.hbm_bytes, device.hbm_bytes_per_s) == (288e9, 8e12)
    assert (device.dram_bytes, device.ssd_bytes) == (240e9, 256e12)
    hopper = Cluster.of("h200", 8).device
    assert hopper.peak("fp4") == hopper.peak("fp8") == 1979e12
    assert dict(hopper.emulated) == {"fp4": "fp8"}


def test_dtype_without_a_peak() -> None:
    with pytest.raises(HardwareError, match="dtype without a peak on the device: 'int8'") as caught:
        Cluster.of("b300", 8).device.peak("int8")
    assert caught.value.where == "NVIDIA B300 SXM"
    assert "fp8" in caught.value.expected


def test_tier_and_level_by_name(user_file: Path) -> None:
    cluster = Cluster.of(user_file, 4)
    assert cluster.tier("hbm").capacity_bytes == cluster.device.hbm_bytes
    assert cluster.device.ssd_bytes == 0
    with pytest.raises(HardwareError, match="no memory tier 'nvme'") as caught:
        cluster.tier("nvme")
    assert caught.value.expected == "one of hbm, dram"
    assert cluster.level("ib").size == 1
    with pytest.raises(UnknownNameError, match="unknown fabric level 'ibb'"):
        cluster.level("ibb")


def test_from_name_file_or_record(user_file: Path) -> None:
    assert Cluster.of("b300", 8) == Cluster.of(load_platform("b300"), 8)
    assert Cluster.of(str(user_file), 4) == Cluster.of(user_file, 4)
    with pytest.raises(UnknownNameError):
        Cluster.of("b400", 8)


def test_unreachable_gpus(tmp_path: Path, user_text: str) -> None:
    path = tmp_path / "cut.toml"
    path.write_text(user_text.replace('cpu_bandwidth = "20 GB/s"', 'cpu_bandwidth = "0 GB/s"'), encoding="utf-8")
    with pytest.raises(HardwareError, match="no route from dram0 to gpu0"):
        Cluster.of(path, 4)


def test_fingerprint(tmp_path: Path, user_text: str) -> None:
    def of(text: str, gpus: int = 4, domain: int | None = None) -> str:
        path = tmp_path / "box.toml"
        path.write_text(text, encoding="utf-8")
        return Cluster.of(path, gpus, domain=domain).fingerprint()

    base = of(user_text)
    assert len(base) == 64
    assert base == of(user_text)
    assert base == of(user_text.replace("made up", "measured").replace("four cards", "4 cards"))
    assert base == of(user_text.replace('"1 TB/s"', '"1000 GB/s"'))
    for old in ('"48 GB"', '"32 GB/s"', '"1 TB/s"', '"300 ns"', "gpus_per_nic = 2", '"100 TFLOP/s"', '"card"'):
        new = old.replace(" = 2", " = 1") if "=" in old else old.replace('"', '"4', 1)
        assert base != of(user_text.replace(old, new)), old
    assert base != of(user_text, gpus=8)
    assert base != of(user_text, domain=2)


def test_hash_and_equality() -> None:
    assert len({Cluster.of("b300", 8), Cluster.of("b300", 8), Cluster.of("b300", 16)}) == 2
    assert Cluster.of("b300", 8) != "b300"
    assert str(Cluster.of("b300", 16)) == "b300 × 16, in domains of 8"


def test_pickles() -> None:
    cluster = Cluster.of("gb300", 128)
    again = pickle.loads(pickle.dumps(cluster))
    assert again == cluster
    assert (again.levels, again.tiers, again.device, again.platform) == (
        cluster.levels, cluster.tiers, cluster.device, cluster.platform,
    )  # fmt: skip
    assert again.route("gpu0", "gpu64") == cluster.route("gpu0", "gpu64")


def test_graph_is_shared_and_frozen() -> None:
    cluster = Cluster.of("b300", 8)
    assert cluster.graph() is Cluster.of("b300", 8).graph()
    with pytest.raises(Exception, match="Frozen"):
        cluster.graph().remove_node("gpu0")


def test_importing_hardware_does_not_import_networkx() -> None:
    code = "import sys, rooflang.hw; sys.exit(any(name in sys.modules for name in ('networkx', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_table_of_decimal_units() -> None:
    assert Cluster.of("b300", 8).device.hbm_bytes == parse("288 GB", "bytes") == 288e9
