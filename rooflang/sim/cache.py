"""Runs by what they are a function of: two candidates with equal programs share one timeline, whatever their names."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from rooflang.sim.engine import Timeline, run
from rooflang.sim.program import Program

#: What the timeline depends on. Names, tensors and memories are left out: they say what is alive when, not when.
_DECIDES = (
    *("op_alpha_s", "pred_start", "pred", "component_start"),
    *("component_resource", "component_s", "component_cap", "component_is_net"),
)

#: Timelines of the least recent use go when all of them together are larger.
LARGEST_BYTES = 64 * 2**20


def content_hash(program: Program) -> bytes:
    """A digest (BLAKE2b, 128 bits) of everything in a program that decides when its operators run."""
    digest = hashlib.blake2b(len(program.resource_names).to_bytes(8, "little"), digest_size=16)
    for name in _DECIDES:
        array = np.ascontiguousarray(getattr(program, name))
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(array.data)
    return digest.digest()


@dataclass(slots=True, kw_only=True)
class TimelineCache:
    """Timelines by the content hash of their programs, at most `largest_bytes` of them. Threads may share one."""

    largest_bytes: int = LARGEST_BYTES
    hits: int = 0
    misses: int = 0
    held_bytes: int = 0
    _known: OrderedDict[bytes, Timeline] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, program: Program) -> Timeline:
        """The timeline of a program: one from before if there is one. Its arrays are read-only."""
        key = content_hash(program)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                self.hits += 1
                return known
        timeline = run(program)
        for array in _arrays(timeline):
            array.flags.writeable = False
        with self._lock:
            self.misses += 1
            if key not in self._known:
                self._known[key] = timeline
                self.held_bytes += _size_bytes(timeline)
            while self.held_bytes > self.largest_bytes and self._known:
                self.held_bytes -= _size_bytes(self._known.popitem(last=False)[1])
        return timeline

    def clear(self) -> None:
        """Forget everything, and count from zero."""
        with self._lock:
            self._known.clear()
            self.hits = self.misses = self.held_bytes = 0


def _arrays(timeline: Timeline) -> list[np.ndarray[Any, Any]]:
    values = (getattr(timeline, entry.name) for entry in fields(timeline))
    return [value for value in values if isinstance(value, np.ndarray)]


def _size_bytes(timeline: Timeline) -> int:
    return sum(array.nbytes for array in _arrays(timeline))


#: The cache that all simulations of a process share.
TIMELINES = TimelineCache()
