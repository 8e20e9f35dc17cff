"""The drawing of a platform shows every part, with its count and rate."""

from __future__ import annotations

from rooflang.hw import load_platform, platform_names
from rooflang.report.drawing import draw


def test_h200() -> None:
    assert draw(load_platform("h200")).splitlines() == [
        "╙── domains on ib, 50 GB/s a NIC",
        "    └── domain: 8 GPUs on nvlink, 450 GB/s each",
        "        └── 2 × Intel Xeon 6767P, each 2 joined by qpi, 192 GB/s",
        "            ├── DRAM: 1.536 TB at 332.8 GB/s",
        "            └── 4 × PCIe switch, 64 GB/s up",
        "                ├── GPU (PCIe, 64 GB/s): 144 GB of HBM at 4.8 TB/s",
        "                ├── ConnectX-7 (PCIe, 64 GB/s)",
        "                └── drive: 30.72 TB, reads 14 GB/s, writes 7 GB/s",
    ]


def test_nics_hang_where_they_are_attached() -> None:
    at_gpu, at_cpu = draw(load_platform("gb300")), draw(load_platform("l4"))
    assert "│   └── 2 × ConnectX-8 (PCIe, 128 GB/s)" in at_gpu
    assert "└── ConnectX-6 (PCIe, 32 GB/s)" in at_cpu.splitlines()[-1]


def test_every_platform_is_drawn() -> None:
    for name in platform_names():
        platform = load_platform(name)
        text = draw(platform)
        assert text.count("GPU (") == 1
        assert text.count(platform.nic.name) == 1
        assert ("drive" in text) == (platform.ssd is not None)
