"""A hardware file of a user's own: GPUs without NVLink, in pairs on a PCIe switch and a NIC, four to a CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

USER_FILE = """
name = "pcie-box"
description = "four cards in a box"

[gpu]
name = "card"
peaks = { bf16 = "100 TFLOP/s" }
source = "made up"

[hbm]
capacity = "48 GB"
bandwidth = "1 TB/s"
latency = "300 ns"
source = "made up"

[scale_up]
name = "nvlink"
bandwidth = "0 GB/s"
latency = "0.5 us"
largest = 4
source = "not built"

[scale_out]
name = "ib"
bandwidth = "50 GB/s"
latency = "1 us"
source = "made up"

[nic]
name = "nic"
attach = "pcie_switch"
bandwidth = "64 GB/s"
latency = "0.5 us"
gpus_per_nic = 2
source = "made up"

[pcie_switch]
gpus_per_switch = 2
gpu_bandwidth = "32 GB/s"
cpu_bandwidth = "20 GB/s"
latency = "0.5 us"
source = "made up"

[cpu]
name = "host"
gpus_per_cpu = 4
source = "made up"

[dram]
capacity = "400 GB"
bandwidth = "100 GB/s"
latency = "0.1 us"
source = "made up"
"""


@pytest.fixture
def user_text() -> str:
    """The text of a complete file, to be changed by a test."""
    return USER_FILE


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    """The file itself."""
    path = tmp_path / "box.toml"
    path.write_text(USER_FILE, encoding="utf-8")
    return path
