"""`Fields`: typed reading of a `config.json` that remembers what was read, so that the rest can be told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rooflang.errors import ModelError
from rooflang.models.common.config import LARGEST, MOST_LAYERS

#: Keys that move no shape and no byte in any architecture: tokenizer, training, numerics, generation, bookkeeping.
_IRRELEVANT = Path(__file__).parent / "irrelevant.json"


class Fields:
    """The fields of one JSON object. A field that is null is one that is absent, as in the published files.

    Every reader notes the key, so that `unread` says what nobody asked for. All raise `ModelError` with the key for a
    value of another kind, and for an absent one that has no default.
    """

    def __init__(self, values: Mapping[str, Any], where: str, path: str = "$") -> None:
        self.where = where
        self._values = {key: value for key, value in values.items() if value is not None}
        self._path = path
        self._read: set[str] = set()

    def has(self, key: str) -> bool:
        """Is the field there, and not null?"""
        return key in self._values

    def first(self, *keys: str) -> str:
        """The first of these keys that is there, else the first."""
        return next((key for key in keys if self.has(key)), keys[0])

    def count(self, key: str, default: int | None = None, *, least: int = 1, most: int = LARGEST) -> int:
        """A whole number, `least` to `most`."""
        expected = f"a whole number, {least} to {most:,}"
        value = self._take(key, default, expected)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(key, expected)
        return value

    def layers(self) -> int:
        """The number of layers, each of which is built."""
        return self.count("num_hidden_layers", most=MOST_LAYERS)

    def number(self, key: str, default: float | None = None) -> float:
        """A number."""
        value = self._take(key, default, "a number")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(key, "a number")
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        """True or false."""
        value = self._take(key, default, "true or false")
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self._take(key, default, "a string")
        if not isinstance(value, str):
            raise self._wrong(key, "a string")
        return value

    def one_of(self, key: str, known: Sequence[str], default: str | None = None) -> str:
        """One of the strings in `known`."""
        value = self.text(key, default)
        if value not in known:
            raise self._wrong(key, "one of " + ", ".join(known))
        return value

    def counts(self, key: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of whole numbers, 0 or more."""
        value = self._take(key, default, "a list of whole numbers")
        if not isinstance(value, (list, tuple)):
            raise self._wrong(key, "a list of whole numbers")
        if any(isinstance(v, bool) or not isinstance(v, int) or v < 0 for v in value):
            raise self._wrong(key, "whole numbers, 0 or more")
        return tuple(value)

    def words(self, key: str, known: Sequence[str], default: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of strings, each one of `known`."""
        value = self._take(key, default, "a list of strings")
        if not isinstance(value, (list, tuple)) or any(word not in known for word in value):
            raise self._wrong(key, "a list of " + ", ".join(known))
        return tuple(value)

    def part(self, key: str) -> Fields:
        """The object under the key; one without fields where there is none. It notes what is read of it by itself."""
        value = self._take(key, {}, "an object")
        if not isinstance(value, dict):
            raise self._wrong(key, "an object")
        return Fields(value, self.where, f"{self._path}.{key}")

    def assume(self, values: Mapping[str, Any]) -> None:
        """These values, where the file has none."""
        self._values = {**values, **self._values}

    def skip(self, *keys: str) -> None:
        """These keys are known to move no shape in this architecture."""
        self._read.update(keys)

    def fail(self, what: str, *, expected: str = "", hint: str = "") -> ModelError:
        """The error that says what is wrong with this file."""
        return ModelError(what, where=self.where, expected=expected, hint=hint)

    def unread(self) -> tuple[str, ...]:
        """Keys that nobody read and that are not known to be irrelevant, sorted."""
        irrelevant: list[str] = json.loads(_IRRELEVANT.read_text(encoding="utf-8"))
        return tuple(sorted(set(self._values) - self._read - set(irrelevant)))

    def raw(self) -> Mapping[str, Any]:
        """All fields as they are; notes none of them."""
        return self._values

    def _take(self, key: str, default: Any, expected: str) -> Any:
        self._read.add(key)
        if key in self._values:
            return self._values[key]
        if default is None:
            raise self.fail(f"no {self._name(key)}", expected=expected)
        return default

    def _wrong(self, key: str, expected: str) -> ModelError:
        return self.fail(f"{self._name(key)} is {self._values.get(key)!r}", expected=expected)

    def _name(self, key: str) -> str:
        return f"{self._path}.{key}"
