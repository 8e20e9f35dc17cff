"""The store: rows stay, stand once, and survive whatever ends a writer."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflang.errors import StoreError
from rooflang.sweep.job import Row
from rooflang.sweep.store import Store


def row(key: str, result: str = "{}") -> Row:
    return Row(key=key, asked="{}", outcome="done", error="", result=result, seconds=0.5)


def test_rows_come_back(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.add([row("b"), row("a", "→")])
        assert list(store.rows()) == [row("a", "→"), row("b")]
    with Store(tmp_path / "s", make=False) as again:
        assert again.keys() == {"a", "b"}


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), max_size=6))
def test_the_first_row_of_a_key_stays(batches: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s") as one, Store(Path(folder) / "s") as other:
        first: dict[str, str] = {}
        for number, batch in enumerate(batches):
            for key in batch:
                first.setdefault(key, str(number))
            (one if number % 2 else other).add([row(key, str(number)) for key in batch])
        assert {r.key: r.result for r in one.rows()} == {r.key: r.result for r in other.rows()} == first


def test_rows_are_appended_only(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.add([row("a")])
    link = sqlite3.connect(tmp_path / "s")
    for change in ("UPDATE cases SET result = ''", "DELETE FROM cases"):
        with pytest.raises(sqlite3.Error, match="appended only"):
            link.execute(change)
    link.close()


def test_all_rows_of_a_job_or_none(tmp_path: Path) -> None:
    bad = Row(key="b", asked="{}", outcome="done", error="", result=None, seconds=0.0)  # type: ignore[arg-type]
    with Store(tmp_path / "s") as store:
        store.add([row("a")])
        with pytest.raises(StoreError):
            store.add([row("c"), bad])
        assert store.keys() == {"a"}
        store.add([row("d")])
        assert store.keys() == {"a", "d"}


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("dear diary" * 100, encoding="utf-8")
    with pytest.raises(StoreError, match="not a database"):
        Store(tmp_path / "text")
    link = sqlite3.connect(tmp_path / "other")
    link.execute("CREATE TABLE precious (x)")
    link.commit()
    link.close()
    with pytest.raises(StoreError, match="no store of this version"):
        Store(tmp_path / "other")
    with pytest.raises(StoreError, match="no such file"):
        Store(tmp_path / "none", make=False)
    with pytest.raises(StoreError):
        Store(tmp_path / "no folder" / "s")


def test_what_is_read_is_not_made_a_store(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with pytest.raises(StoreError, match="it is no store"):
        Store(path, make=False)
    assert path.read_bytes() == b""
