"""Results of jobs, one JSON file each, under the hash of everything that they depend on."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = "rooflang.reproduced/2"

#: Below the folder of the report.
_RESULTS = "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A result, and the processor time that it took."""

    data: dict[str, Any]
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Store:
    """The results that a folder keeps; without a folder nothing is kept."""

    folder: Path | None

    def get(self, name: str, key: str) -> Kept | None:
        """The result that was kept for the same question; anything else in its file is none."""
        if self.folder is None:
            return None
        try:
            found = json.loads(self._file(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(found, dict) or found.get("schema") != SCHEMA or found.get("key") != key:
            return None
        data = found.get("data")
        return Kept(data=data, cpu_s=float(found.get("cpu_s", 0.0))) if isinstance(data, dict) else None

    def put(self, name: str, key: str, kept: Kept) -> None:
        """Keep a result; who reads meanwhile sees what was there before, or all of it."""
        if self.folder is None:
            return
        path = self._file(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {"schema": SCHEMA, "name": name, "key": key, "cpu_s": round(kept.cpu_s, 3), "data": kept.data}
        text = json.dumps(told, indent=1, allow_nan=False)
        partial = path.with_name(f".{os.getpid()}.{path.name}")
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)

    def _file(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / _RESULTS / f"{name}.json"
