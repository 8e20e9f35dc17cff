"""`Reference`: the executable meaning of an operator kind, on the whole or on any share of its dims.

A reference sees arrays and, in `Where`, which global indices of every label they hold. It never sees the mesh: that a
rank owns rows 6 to 9 of a vocabulary matters to it, why it does so does not. Arrays are float64; ids are int64.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rooflang.errors import UnknownNameError
from rooflang.ir.exact import einsum
from rooflang.ir.op import KIND_MODULES, Op

Array = NDArray[Any]
Arrays = Sequence[Array]

#: A partial result or a summary: arrays that are combined together.
State = tuple[Array, ...]

#: An id that stands for nothing, where fewer entries exist than are chosen.
NO_ID = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A rank's share of every dim: ascending global indices by label (all where it is whole), and full sizes."""

    ids: Mapping[str, Array]
    sizes: Mapping[str, int]


@lru_cache(maxsize=4096)
def _all_ids(size: int) -> Array:
    ids = np.arange(size)
    ids.flags.writeable = False
    return ids


def whole(sizes: Mapping[str, int]) -> Where:
    """Where everything is."""
    return Where(ids={label: _all_ids(size) for label, size in sizes.items()}, sizes=sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What ranks exchange before they go on locally (STAT): `of` one share, `merge` of two shares'."""

    of: Callable[[Op, Where, Arrays], State]
    merge: Callable[[Op, State, State], State]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """How partial states (FOLD) become the output: `combine` two, `finish` the last one.

    `dims(op)` are the labels of each array of a state; an axis that is no label of the output is called `""`.
    """

    combine: Callable[[Op, State, State], State]
    finish: Callable[[Op, State], Array]
    dims: Callable[[Op], tuple[tuple[str, ...], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The meaning of one kind.

    `run(op, where, summary, operands)` computes the share `where` of the output: one array in the output's dims, or, if
    the kind has a `fold`, the arrays of a state. `summary` is the merged summary of all shares, `()` without one.
    `ids(op)` says which operands hold indices, and of which label.
    """

    run: Callable[[Op, Where, State, Arrays], State]
    summary: Summary | None = None
    fold: Fold | None = None
    ids: Callable[[Op], Mapping[int, str]] = field(default=lambda op: {})

    def full(self, op: Op, sizes: Mapping[str, int], *operands: Array) -> Array:
        """The whole output from whole operands; `sizes` has the extents of all labels of the operator."""
        return self.share(op, whole(sizes), *operands)

    def share(self, op: Op, where: Where, *operands: Array) -> Array:
        """One share of the output, computed from that share of the operands alone."""
        summary = self.summary.of(op, where, operands) if self.summary else ()
        state = self.run(op, where, summary, operands)
        return self.fold.finish(op, state) if self.fold else state[0]


#: References by kind; modules of the same names as those of the kinds fill it.
_REFERENCES: dict[str, Reference] = {}


def define(kind: str, reference: Reference) -> None:
    """Enter the reference of a kind."""
    _REFERENCES[kind] = reference


def plain(compute: Callable[[Op, Where, Arrays], Array]) -> Reference:
    """The reference of a kind that needs neither summary nor fold."""
    return Reference(run=lambda op, where, summary, operands: (compute(op, where, operands),))


@lru_cache(maxsize=1)
def _load() -> None:
    for module in KIND_MODULES:
        importlib.import_module(f"rooflang.ir.reference.{module}")


def reference(kind: str) -> Reference:
    """The reference of a kind. Raises `UnknownNameError`."""
    _load()
    if kind not in _REFERENCES:
        raise UnknownNameError("operator kind", kind, _REFERENCES)
    return _REFERENCES[kind]


def references() -> Mapping[str, Reference]:
    """The references of all kinds by name."""
    _load()
    return dict(_REFERENCES)


# -- arrays by label --------------------------------------------------------------------------------------------------


def spread(array: Array, dims: Sequence[str], target: Sequence[str]) -> Array:
    """The array with its axes in the order of `target`; labels that it lacks become axes of extent 1."""
    order = [dims.index(label) for label in target if label in dims]
    moved = array.transpose(order)
    return moved.reshape([array.shape[dims.index(label)] if label in dims else 1 for label in target])


def product(
    left: Array, left_dims: Sequence[str], right: Array, right_dims: Sequence[str], out: Sequence[str]
) -> Array:
    """Sum of products over the labels that `out` lacks."""
    number = {label: i for i, label in enumerate(dict.fromkeys((*left_dims, *right_dims)))}
    return einsum(
        left, [number[d] for d in left_dims], right, [number[d] for d in right_dims], [number[d] for d in out]
    )
