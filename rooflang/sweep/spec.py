"""What a sweep computes, as a TOML file: lists whose product is searched, and how to search."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from rooflang.errors import RooflangError, UnknownNameError, ValueRangeError
from rooflang.search.effort import Depth
from rooflang.search.goal import Objective
from rooflang.search.method import Search
from rooflang.sim.result import Overlap
from rooflang.units import parse, parse_count

#: A count as a number, or as text such as "64k".
Count = int | str

#: A quantity as a number in SI, or as text with a unit.
Amount = float | int | str


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table of the file. Keys are checked before it is decoded, so that a wrong one is told with the nearest."""


class ClusterSpec(_Table, frozen=True, kw_only=True):
    """`hardware` is a platform by name, or a file by a path relative to the sweep's. `gpus` lists numbers of GPUs;
    `max_gpus` lets the search choose up to that many. `gpu_hour_usd` is the price of a GPU's hour."""

    hardware: str
    gpus: tuple[Count, ...] = ()
    max_gpus: Count | None = None
    gpu_hour_usd: float | int | None = None


class ObjectiveSpec(_Table, frozen=True, kw_only=True):
    """What is looked for, as `optimize` takes it. With `max_ttft` it is computed for prefill only, with `max_tpot` for
    decode only."""

    objective: Objective = "frontier"
    min_user: float | int | None = None
    max_ttft: Amount | None = None
    max_tpot: Amount | None = None


class SearchSpec(_Table, frozen=True, kw_only=True):
    """How to search, as `optimize` takes it, the same for all cases."""

    search: Search = "egraph"
    overlap: Overlap = "perfect"
    batch: tuple[Count, ...] = ()
    pp: int | None = None
    fix: tuple[str, ...] = ()
    disable_rules: tuple[str, ...] = ()
    effort: Depth = "full"
    gap: float | None = None
    node_limit: Count | None = None
    memory_limit: Amount | None = None
    time_limit: Amount | None = None
    seed: int = 0


class Spec(_Table, frozen=True, kw_only=True):
    """A sweep. `models` are names, `config.json` files or `.rl` graphs, paths relative to the sweep's file. Graphs have
    their own stage and context. `assume` changes fields of each of the profiles in `assumptions`."""

    models: tuple[str, ...]
    clusters: tuple[ClusterSpec, ...]
    stages: tuple[str, ...] = ("decode",)
    contexts: tuple[Count, ...] = ()
    assumptions: tuple[str, ...] = ("physical",)
    assume: dict[str, Any] = {}
    objectives: tuple[ObjectiveSpec, ...] = (ObjectiveSpec(),)
    search: SearchSpec = SearchSpec()


_Record = TypeVar("_Record", bound=_Table)


def read_spec(path: Path) -> Spec:
    """Read a sweep's file. Raises `RooflangError` for what cannot be read, `UnknownNameError` for a key that there is
    not, `ValueRangeError` for a value of another type or an empty list."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise RooflangError(f"cannot read it: {error.strerror}", where=str(path), expected="a TOML file") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RooflangError(f"it is no TOML: {error}", where=str(path), expected="a TOML file") from error
    _check_keys(data, Spec, str(path))
    try:
        spec = msgspec.convert(data, Spec)
    except msgspec.ValidationError as error:
        raise ValueRangeError(
            str(error).replace("$.", ""), where=str(path), hint="docs/sweeps.md has an example"
        ) from error
    for name in ("models", "clusters", "stages", "assumptions", "objectives"):
        if not getattr(spec, name):
            raise ValueRangeError("the list is empty, so that there is nothing to compute", where=f"{path}: {name}")
    return spec


def _check_keys(data: Mapping[str, Any], record: type[_Table], where: str) -> None:
    """Refuse keys that a table, or one below it, does not have, and words that they do not take."""
    hints = get_type_hints(record)
    for key, value in data.items():
        if key not in record.__struct_fields__:
            raise UnknownNameError("key", key, record.__struct_fields__, where=where)
        if get_origin(hints[key]) is Literal and isinstance(value, str) and value not in get_args(hints[key]):
            raise UnknownNameError(key, value, get_args(hints[key]), where=f"{where}: {key}")
        inner = next((kind for kind in (hints[key], *get_args(hints[key])) if _is_table(kind)), None)
        if inner is None:
            continue
        for index, each in enumerate(value if isinstance(value, list) else [value]):
            place = f"{where}: {key}[{index}]" if isinstance(value, list) else f"{where}: {key}"
            if isinstance(each, dict):
                _check_keys(each, inner, place)


def _is_table(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, _Table)


def count(value: Count, where: str) -> int:
    """A number of something, 1 or more. Raises `UnitError`, `ValueRangeError`."""
    number = parse_count(value, where=where)
    if number < 1:
        raise ValueRangeError(f"{value} is not possible", where=where, expected="1 or more")
    return number


def seconds(value: Amount, where: str) -> float:
    """A time; text without a unit is refused. Raises `UnitError`."""
    return parse(value, "s", where=where)


def amount_of_bytes(value: Amount, where: str) -> float:
    """An amount of memory. Raises `UnitError`."""
    return parse(value, "bytes", where=where)
