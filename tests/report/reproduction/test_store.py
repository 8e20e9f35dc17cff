"""What is kept is found again for the same question only, and is whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflang.report.reproduction.store import Kept, Store


def test_what_was_put_is_found_under_its_key(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("part/one", "k1", Kept(data={"value": 1.5}, cpu_s=2.0))
    assert store.get("part/one", "k1") == Kept(data={"value": 1.5}, cpu_s=2.0)
    assert store.get("part/one", "k2") is None
    assert store.get("part/two", "k1") is None
    store.put("part/one", "k2", Kept(data={"value": 2.5}))
    assert store.get("part/one", "k2") == Kept(data={"value": 2.5})
    assert [path.name for path in (tmp_path / "results" / "part").iterdir()] == ["one.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "other", "key": "k1", "data": {}}', '{"schema": "rooflang.reproduced/2"}']
)
def test_anything_else_in_the_file_is_no_result(tmp_path: Path, text: str) -> None:
    store = Store(tmp_path)
    store.put("one", "k1", Kept(data={}))
    (tmp_path / "results" / "one.json").write_text(text, encoding="utf-8")
    assert store.get("one", "k1") is None


def test_a_number_that_json_has_not_is_not_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        store.put("one", "k1", Kept(data={"value": float("inf")}))
    assert store.get("one", "k1") is None


def test_without_a_folder_nothing_is_kept() -> None:
    Store(None).put("one", "k1", Kept(data={}))
    assert Store(None).get("one", "k1") is None
