"""The store of a sweep: a SQLite file to which finished cases are appended, a row each, under their keys.

A row is written in one transaction and never changed, so that a process that is killed, or a disk that is full, loses
what was not finished and nothing else. It is written ahead (WAL), so that several sweeps may write to one store, each
case being kept once, while others read. The file has to lie on a disk of this machine.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import TracebackType

from rooflang.errors import StoreError
from rooflang.sweep.job import Row

#: Marks a file as a store of sweeps ("rlsw"), and says how it is laid out.
_APPLICATION = 0x726C7377
_LAYOUT = 1

#: How long a writer waits for another one.
_PATIENCE_S = 60.0

_COLUMNS = tuple(field.name for field in fields(Row))

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS cases (
    key TEXT PRIMARY KEY, asked TEXT NOT NULL, outcome TEXT NOT NULL, error TEXT NOT NULL, result TEXT NOT NULL,
    seconds REAL NOT NULL
);
CREATE TRIGGER IF NOT EXISTS cases_stay BEFORE UPDATE ON cases BEGIN SELECT RAISE(ABORT, 'rows are appended only'); END;
CREATE TRIGGER IF NOT EXISTS cases_last BEFORE DELETE ON cases BEGIN SELECT RAISE(ABORT, 'rows are appended only'); END;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_LAYOUT};
"""


class Store:
    """A store, open until `close` or the end of a `with`. Raises `StoreError` for a file that is something else, and
    whenever the system refuses to read or write."""

    def __init__(self, path: Path, *, make: bool = True) -> None:
        self.path = path
        if not make and not path.is_file():
            raise StoreError("there is no such file", where=str(path), expected="a store that `rooflang sweep` made")
        with self._told():
            self._link = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)
            self._open(make)

    def _open(self, make: bool) -> None:
        mark, layout = (
            self._link.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        tables = self._link.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (tables or mark or not make) and (mark, layout) != (_APPLICATION, _LAYOUT):
            self._link.close()
            raise StoreError("it is no store of this version", where=str(self.path), hint="name another file")
        self._link.execute("PRAGMA journal_mode = WAL")
        self._link.execute("PRAGMA synchronous = FULL")
        if not tables:
            self._link.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._link.close()

    def keys(self) -> frozenset[str]:
        """Of all cases that are finished."""
        with self._told():
            return frozenset(key for (key,) in self._link.execute("SELECT key FROM cases"))

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows, all or none of them; a case that is there already stays as it is."""
        values = [tuple(getattr(row, name) for name in _COLUMNS) for row in rows]
        places = ", ".join("?" * len(_COLUMNS))
        with self._told():
            self._link.execute("BEGIN IMMEDIATE")
            try:
                self._link.executemany(
                    f"INSERT INTO cases ({', '.join(_COLUMNS)}) VALUES ({places}) ON CONFLICT (key) DO NOTHING", values
                )
                self._link.execute("COMMIT")
            except BaseException:
                if self._link.in_transaction:
                    self._link.execute("ROLLBACK")
                raise

    def rows(self) -> Iterator[Row]:
        """All finished cases, by key."""
        with self._told():
            for values in self._link.execute(f"SELECT {', '.join(_COLUMNS)} FROM cases ORDER BY key"):
                yield Row(**dict(zip(_COLUMNS, values)))

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            full = getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
            stays = "what is stored stays; with room on the disk, the same command goes on from there"
            raise StoreError(str(error), where=str(self.path), hint=stays if full else "") from error
