"""The shipped presets hold the published numbers, each with a source; files of a user's own load by path."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import rooflang.hw.schema as schema
from rooflang.errors import HardwareError, UnknownNameError
from rooflang.hw import Cluster, load_platform, platform_names

PRESETS = Path(schema.__file__).parent / "presets"
PAPER = ("b300", "gb300", "gh200", "h200")
CATALOGUE = (
    "a100", "b200", "gb200", "h100", "h20", "l4", "l40s", "mi300x", "mi355x", "rtx-4090", "rtx-pro-6000", "tpu-v6e",
)  # fmt: skip

# The RoofLang paper (arXiv 2609.12551), Table 5: TFLOP/s fp4, fp8, bf16, fp32 (TF32); HBM GB and GB/s; NVLink GB/s
# and scope; InfiniBand GB/s. 989.5 and 494.5 are printed as 989 and 495.
TABLE_5 = {
    "h200": (1979, 1979, 989.5, 494.5, 144, 4800, 450, 8, 50),
    "gh200": (1979, 1979, 989.5, 494.5, 144, 4900, 450, 256, 50),
    "b300": (13500, 4500, 2250, 1125, 288, 7750, 900, 8, 100),
    "gb300": (15000, 5000, 2500, 1250, 288, 8000, 900, 72, 100),
}


def test_names() -> None:
    assert platform_names() == tuple(sorted((*PAPER, *CATALOGUE)))


@pytest.mark.parametrize("name", CATALOGUE)
def test_catalogue(name: str) -> None:
    """Wider operands are never faster, and two domains can be built."""
    platform = load_platform(name)
    peaks = platform.gpu.all_peaks()
    assert peaks["fp4"] >= peaks["fp8"] >= peaks["bf16"] >= peaks["fp32"] > 0
    cluster = Cluster.of(platform, 2 * platform.scale_up.largest)
    inside, outside = cluster.levels
    assert cluster.device.hbm_bytes_per_s > inside.bytes_per_s > outside.bytes_per_s


@pytest.mark.parametrize("name", PAPER)
def test_table_5(name: str) -> None:
    platform = load_platform(name)
    peaks = platform.gpu.all_peaks()
    fp4, fp8, bf16, fp32, hbm_gb, hbm, nvlink, scope, ib = TABLE_5[name]
    assert peaks == {"fp4": fp4 * 1e12, "fp8": fp8 * 1e12, "bf16": bf16 * 1e12, "fp32": fp32 * 1e12}
    assert platform.hbm.capacity_bytes == hbm_gb * 1e9
    assert platform.hbm.bandwidth_bytes_per_s == hbm * 1e9
    assert platform.scale_up.bandwidth_bytes_per_s == nvlink * 1e9
    assert platform.scale_up.largest == scope
    assert platform.scale_out.bandwidth_bytes_per_s == ib * 1e9


@pytest.mark.parametrize("name", PAPER)
def test_hopper_emulates_fp4(name: str) -> None:
    assert load_platform(name).gpu.emulated == ({"fp4": "fp8"} if name in ("h200", "gh200") else {})


def numbers_without_source(table: dict[str, Any], path: str, sourced: bool) -> list[str]:
    """Paths of numbers (bare, or text that starts with a digit) in tables without a source of theirs or above."""
    sourced = sourced or bool(str(table.get("source", "")).strip())
    found = []
    for key, value in table.items():
        here = f"{path}.{key}"
        if isinstance(value, dict):
            found += numbers_without_source(value, here, sourced)
        elif not sourced and (isinstance(value, int | float) or str(value)[:1].isdigit()):
            found.append(here)
    return found


@pytest.mark.parametrize("name", platform_names())
def test_every_number_has_a_source(name: str) -> None:
    table = tomllib.loads((PRESETS / f"{name}.toml").read_text(encoding="utf-8"))
    assert numbers_without_source(table, name, sourced=False) == []
    for section in table.values():
        if isinstance(section, dict):
            known = (
                "Table 5",
                "published presets",
                "data sheet",
                "white paper",
                "PCIe",
                "documentation",
                "assumed",
                "NVIDIA Grace",
                "AMD Infinity Fabric",
                "resellers",
            )
            assert any(name in section["source"] for name in known), section["source"]


def test_the_source_walk_finds_a_bare_number() -> None:
    table = {"a": {"b": "3 GB", "c": {"d": 1}}, "e": {"f": "3 GB", "source": "x", "g": {"h": 1}}}
    assert numbers_without_source(table, "t", sourced=False) == ["t.a.b", "t.a.c.d"]


@pytest.mark.parametrize("name", platform_names())
def test_quantities_carry_units(name: str) -> None:
    """Bare numbers in a preset are counts."""
    table = tomllib.loads((PRESETS / f"{name}.toml").read_text(encoding="utf-8"))
    bare = {key for section in table.values() if isinstance(section, dict) for key, value in section.items()
            if isinstance(value, int | float) and not isinstance(value, bool)}  # fmt: skip
    assert bare <= {
        "largest",
        "multiple_of",
        "gpus_per_cpu",
        "gpus_per_nic",
        "gpus_per_switch",
        "gpus_per_drive",
        "cpus",
    }


def test_name_in_any_case() -> None:
    assert load_platform("B300") == load_platform("b300")


def test_unknown_name_suggests() -> None:
    with pytest.raises(UnknownNameError, match="b30") as caught:
        load_platform("b30")
    assert "b300" in caught.value.hint
    assert "gh200" in caught.value.expected


def test_user_file_by_path(user_file: Path) -> None:
    for given in (user_file, str(user_file)):
        platform = load_platform(given)
        assert platform.name == "pcie-box"
        assert platform.hbm.latency_s == pytest.approx(300e-9)
        assert platform.ssd is None


@pytest.mark.parametrize("name", platform_names())
def test_preset_loads_by_path(name: str) -> None:
    assert load_platform(PRESETS / f"{name}.toml") == load_platform(name)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('name = "card"', 'name = "card"\nemulated = { fp4 = "fp8" }', "gpu.emulated.fp4"),
        ('name = "card"', 'name = "card"\nemulated = { bf16 = "bf16" }', "gpu.emulated.bf16"),
        ("largest = 4", "largest = 4\nmultiple_of = 3", "scale_up.largest"),
        ("gpus_per_switch = 2", "gpus_per_switch = 3", "pcie_switch.gpus_per_switch"),
        ("[cpu]", '[c2c]\nbandwidth = "9 GB/s"\nlatency = "1 us"\nsource = "x"\n[cpu]', "pcie_switch, c2c"),
    ],
)  # fmt: skip
def test_sections_that_disagree(tmp_path: Path, user_text: str, old: str, new: str, key: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(user_text.replace(old, new), encoding="utf-8")
    with pytest.raises(HardwareError) as caught:
        load_platform(path)
    assert caught.value.where == f"{path}: {key}"
    assert caught.value.expected


def test_attachment_to_a_missing_switch(tmp_path: Path) -> None:
    text = (PRESETS / "gb300.toml").read_text(encoding="utf-8")
    for old, key in (('attach = "gpu"', "nic.attach"), ('attach = "cpu"', "ssd.attach")):
        path = tmp_path / "bad.toml"
        path.write_text(text.replace(old, 'attach = "pcie_switch"'), encoding="utf-8")
        with pytest.raises(HardwareError) as caught:
            load_platform(path)
        assert caught.value.where == f"{path}: {key}"
