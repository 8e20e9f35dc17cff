"""Saturations on disk: a program that was saturated once is not saturated again, whatever batch, context or cluster it
is priced for.

They lie in `$ROOFLANG_CACHE`, else `$XDG_CACHE_HOME/rooflang`, else `~/.cache/rooflang`; `ROOFLANG_CACHE=off` turns
this off. A file is named by a digest of all that its content depends on, and written in one step. What cannot be read,
or is not what its name says, is as good as absent, and so is a directory that cannot be written to.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from rooflang.eqsat.frozen import Limits, SaturationStats, StopReason
from rooflang.eqsat.program import Program
from rooflang.eqsat.prune import Pruned

#: Goes up when `prune`, or the form of the files, changes.
FORMAT = 1

#: When all files together are larger, those that were used longest ago go.
LARGEST_BYTES = 256 * 2**20

_OFF = "off"


class _Entry(msgspec.Struct, frozen=True):
    """What a file holds; `key` is what it was made from, so that a file under a wrong name is found out."""

    key: str
    pruned: Pruned
    stats: SaturationStats


def directory() -> Path | None:
    """Where saturations are kept; None where they are not."""
    given = os.environ.get("ROOFLANG_CACHE", "")
    if given == _OFF:
        return None
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "rooflang"
    except RuntimeError:  # there is no home
        return None


def load(text: Program, axes: int, limits: Limits) -> tuple[Pruned, SaturationStats] | None:
    """The saturation of a program, if it is there."""
    place = directory()
    if place is None:
        return None
    key = _key(text, axes, limits)
    path = place / f"{key}.json"
    try:
        entry = msgspec.json.decode(path.read_bytes(), type=_Entry)
        os.utime(path)
    except (OSError, msgspec.MsgspecError):
        return None
    return (entry.pruned, entry.stats) if entry.key == key else None


def store(text: Program, axes: int, limits: Limits, pruned: Pruned, stats: SaturationStats) -> None:
    """Keep a saturation; one that the time cut off would not come out again and is not kept."""
    place = directory()
    if place is None or stats.stop is StopReason.TIME_LIMIT:
        return
    key = _key(text, axes, limits)
    with suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(_Entry(key=key, pruned=pruned, stats=stats)))
            os.replace(temporary, place / f"{key}.json")
        except BaseException:
            os.unlink(temporary)
            raise
        _make_room(place)


def _make_room(place: Path) -> None:
    found = [(entry.stat().st_mtime, entry.stat().st_size, entry) for entry in place.glob("*.json")]
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= LARGEST_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= size


def _key(text: Program, axes: int, limits: Limits) -> str:
    """A digest (BLAKE2b, 128 bits) of the program, which has all rules in it, of the limits and of what runs it."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (*text.commands, *text.rules, str(axes), repr(limits), str(FORMAT), _version("egglog")):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
