"""Saturations on disk: equal to fresh ones, found again, and harmless when they are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflang.eqsat import cache
from rooflang.eqsat.frozen import Limits
from rooflang.eqsat.program import Program, program
from rooflang.eqsat.saturate import saturated
from rooflang.ir.blocks import split_blocks
from rooflang.ir.graph import GraphBuilder
from rooflang.rules.theory import Theory


def text_of(hidden: str = "hidden") -> Program:
    g = GraphBuilder("mlp", **{"batch": 8, hidden: 16, "ffn": 32})
    x = g.op("up", "matmul", [g.input("x", f"batch {hidden}"), g.weight("w", f"{hidden} ffn")], "batch ffn")
    (kind,) = split_blocks(g.build(g.op("act", "activation", [x], "batch ffn"))).kinds
    return program(Theory.of(kind, 1, fused=True), frozenset())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROOFLANG_CACHE", str(tmp_path / "kept"))
    saturated.cache_clear()
    return tmp_path / "kept"


def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    saturated.cache_clear()
    monkeypatch.setattr("rooflang.eqsat.engine.Engine", None)  # would fail if it were called


def test_what_was_saturated_is_read_back(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = saturated(text_of(), 1, Limits())
    (path,) = place.iterdir()
    assert path.suffix == ".json"
    no_engine(monkeypatch)
    assert saturated(text_of(), 1, Limits()) == fresh


def test_names_and_extents_are_no_part_of_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = saturated(text_of(), 1, Limits())
    no_engine(monkeypatch)
    assert saturated(text_of("width"), 1, Limits()) == fresh


@pytest.mark.parametrize("damage", [b"", b"{", b'{"key": 1}', None])
def test_a_damaged_file_is_made_anew(place: Path, damage: bytes | None) -> None:
    fresh, _ = saturated(text_of(), 1, Limits())
    (path,) = place.iterdir()
    path.write_bytes(path.read_bytes()[:-40] if damage is None else damage)
    saturated.cache_clear()
    again, _ = saturated(text_of(), 1, Limits())
    assert again == fresh and cache.load(text_of(), 1, Limits()) is not None
    assert [entry.name for entry in place.iterdir()] == [path.name]


def test_a_file_under_another_name_is_found_out(place: Path) -> None:
    saturated(text_of(), 1, Limits())
    (path,) = place.iterdir()
    other = Limits(nodes=5)
    path.rename(place / f"{cache._key(text_of(), 1, other)}.json")
    assert cache.load(text_of(), 1, other) is None


def test_other_rules_axes_and_limits_are_other_files() -> None:
    text = text_of()
    keys = {
        cache._key(text, 1, Limits()),
        cache._key(text, 2, Limits()),
        cache._key(text, 1, Limits(nodes=7)),
        cache._key(Program(commands=text.commands[:-1], rules=text.rules), 1, Limits()),
        cache._key(Program(commands=text.commands, rules=text.rules[:-1]), 1, Limits()),
    }
    assert len(keys) == 5


def test_a_place_that_cannot_be_written_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("ROOFLANG_CACHE", str(file))
    saturated.cache_clear()
    assert saturated(text_of(), 1, Limits())[1].total_enodes > 0


def test_it_can_be_turned_off_and_follows_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROOFLANG_CACHE", "off")
    assert cache.directory() is None
    monkeypatch.delenv("ROOFLANG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == tmp_path / "rooflang"


def test_the_oldest_files_make_room(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = saturated(text_of(), 1, Limits())
    monkeypatch.setattr(cache, "LARGEST_BYTES", sum(entry.stat().st_size for entry in place.iterdir()))
    cache.store(text_of(), 1, Limits(nodes=10**9), *first)
    assert len(list(place.iterdir())) == 1
