"""Every bad file is refused with the file, the key, what was expected and a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflang.errors import HardwareError
from rooflang.hw import load_platform


def refusal(path: Path, text: str) -> HardwareError:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HardwareError) as caught:
        load_platform(path)
    return caught.value


@pytest.mark.parametrize(
    ("old", "new", "key", "what"),
    [
        ('bandwidth = "1 TB/s"', 'bandwith = "1 TB/s"', "hbm.bandwith", "unknown key"),
        ('[dram]', '[dramm]', "dramm", "unknown key"),
        ('[hbm]\ncapacity = "48 GB"', "[hbm]", "hbm.capacity", "missing key"),
        ('source = "not built"', "", "scale_up.source", "missing key"),
        ('source = "not built"', 'source = ""', "scale_up.source", "length"),
        ('bandwidth = "1 TB/s"', 'bandwidth = "1 TBps"', "hbm.bandwidth", "TBps"),
        ('bandwidth = "1 TB/s"', 'bandwidth = "1 TB"', "hbm.bandwidth", "bytes_per_s"),
        ('bandwidth = "1 TB/s"', 'bandwidth = "fast"', "hbm.bandwidth", "cannot read"),
        ('bandwidth = "1 TB/s"', "bandwidth = 1000", "hbm.bandwidth", "no unit"),
        ('bandwidth = "1 TB/s"', 'bandwidth = "-1 TB/s"', "hbm.bandwidth", "negative"),
        ('bandwidth = "1 TB/s"', 'bandwidth = "1e999 TB/s"', "hbm.bandwidth", "not a size"),
        ('latency = "300 ns"', 'latency = "-1 us"', "hbm.latency", "negative"),
        ('latency = "300 ns"', 'latency = "1 min"', "hbm.latency", "min"),
        ('capacity = "48 GB"', 'capacity = "0 GB"', "hbm.capacity", "positive"),
        ('"100 TFLOP/s"', '"0 TFLOP/s"', "gpu.peaks.bf16", "positive"),
        ('"100 TFLOP/s"', '"100 TB/s"', "gpu.peaks.bf16", "TB/s"),
        ("gpus_per_cpu = 4", "gpus_per_cpu = 0", "cpu.gpus_per_cpu", ">= 1"),
        ("gpus_per_cpu = 4", 'gpus_per_cpu = "four"', "cpu.gpus_per_cpu", "int"),
        ('attach = "pcie_switch"', 'attach = "thunderbolt"', "nic.attach", "thunderbolt"),
    ],
)  # fmt: skip
def test_bad_value(tmp_path: Path, user_text: str, old: str, new: str, key: str, what: str) -> None:
    assert old in user_text
    path = tmp_path / "bad.toml"
    error = refusal(path, user_text.replace(old, new, 1))
    assert error.where == f"{path}: {key}"
    assert what in error.what
    assert error.hint or error.expected
    assert str(path) in str(error)
    assert key in str(error)


def test_expected_and_hints(tmp_path: Path, user_text: str) -> None:
    path = tmp_path / "bad.toml"
    unknown = refusal(path, user_text.replace('bandwidth = "1 TB/s"', 'bandwith = "1 TB/s"'))
    assert "capacity, bandwidth, latency" in unknown.expected
    assert "'bandwidth'" in unknown.hint
    section = refusal(path, user_text + '[sdd]\nsource = "x"\n')
    assert "'ssd'" in section.hint
    optional = refusal(path, user_text + '[ssd]\nsource = "x"\nread = "1 GB/s"\n')
    assert "read_bandwidth" in optional.expected
    assert "where the numbers come from" in refusal(path, user_text.replace('source = "not built"', "")).hint
    assert "a number and a unit" in refusal(path, user_text.replace('"1 TB/s"', '"1 TBps"')).expected
    attached = refusal(path, user_text.replace('attach = "pcie_switch"', 'attach = "thunderbolt"'))
    assert attached.expected == "one of gpu, cpu, pcie_switch"
    assert "400 Gb/s is 50 GB/s" in refusal(path, user_text.replace('"50 GB/s"', '"400 Gb/s"')).hint


def test_the_refused_entry_of_a_mapping_is_named(tmp_path: Path, user_text: str) -> None:
    error = refusal(
        tmp_path / "bad.toml", user_text.replace('{ bf16 = "100 TFLOP/s" }', '{ bf16 = "1 TFLOP/s", fp8 = 7 }')
    )
    assert error.where.endswith("gpu.peaks.fp8")


def test_not_toml(tmp_path: Path) -> None:
    error = refusal(tmp_path / "bad.toml", "name = \n")
    assert "not TOML" in error.what
    assert "line 1" in error.what


def test_unreadable(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.toml", tmp_path):
        with pytest.raises(HardwareError, match="cannot read the file") as caught:
            load_platform(path)
        assert caught.value.where == str(path)
    path = tmp_path / "latin1.toml"
    path.write_bytes(b'name = "\xe9"')
    with pytest.raises(HardwareError, match="cannot read the file"):
        load_platform(path)


def test_empty_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "empty.toml", "").where.endswith(": name")
