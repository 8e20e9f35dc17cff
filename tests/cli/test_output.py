"""JSON is written whole or not at all, and a path that cannot be written is refused before any work."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rooflang.cli.output import JsonTarget, apart, tell
from rooflang.errors import RooflangError, ValueRangeError

DATA = {"plan": "batch→8", "value": 0.1}


def target(path: Path | str) -> JsonTarget:
    return JsonTarget.of(str(path), where="--json")


def test_a_file_holds_the_data_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    target(tmp_path / "out.json").write(DATA)
    text = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert json.loads(text) == DATA
    assert "→" in text
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_it_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    target(tmp_path / "out.json").write(DATA)
    (tmp_path / "other").touch()
    assert (tmp_path / "out.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RooflangError, match="No space left on device"):
        target(path).write(DATA)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.json"]


def test_what_is_no_json_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        target(tmp_path / "out.json").write({"bound": float("inf")})
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "out.json")
    target(tmp_path / "link").write(DATA)
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8")) == DATA


def test_a_device_is_written_to_and_not_replaced() -> None:
    target(os.devnull).write(DATA)
    assert not Path(os.devnull).is_file()


def test_standard_output_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    target("-").write(DATA)
    text = capsys.readouterr().out
    assert json.loads(text) == DATA
    assert text.isascii()


@pytest.mark.parametrize(
    ("name", "reason"), [("no/out.json", "no folder"), (".", "it is a folder"), ("", "the name is empty")]
)
def test_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueRangeError, match=reason) as caught:
        target(name)
    assert caught.value.where == "--json"
    assert "- for standard output" in caught.value.expected


def test_what_is_printed_comes_before_the_file_that_a_full_disk_may_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RooflangError, match="No space left on device"):
        tell(target(tmp_path / "out.json"), lambda: DATA, lambda: "the frontier")
    assert capsys.readouterr().out == "the frontier\n"


@pytest.mark.parametrize("other", ["MODEL", "--trace"])
def test_a_file_has_one_use(tmp_path: Path, other: str) -> None:
    path = tmp_path / "config.json"
    read = {"MODEL": path} if other == "MODEL" else {}
    written = {"--json": path} | ({"--trace": path} if other == "--trace" else {})
    with pytest.raises(ValueRangeError, match=f"'config.json' is taken by {other}"):
        apart(read=read, written=written)
    apart(read=read, written={"--json": tmp_path / "out.json", "--html": None})


def test_a_device_can_be_named_twice() -> None:
    apart(read={}, written={"--json": Path("/dev/null"), "--trace": Path("/dev/null")})
