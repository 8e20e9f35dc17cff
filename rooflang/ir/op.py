"""Operators: instances (`Op`) of kinds (`OpKind`) that declare a dims signature, a cost formula and a reference."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rooflang.assumptions import Assumptions
from rooflang.errors import UnknownNameError
from rooflang.ir.cut import Cut
from rooflang.ir.tensor import DTYPES, Num, Tensor

Sizes = Mapping[str, Num]


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operator: kind, operands in order, the one tensor it produces, and the attributes that its kind documents.

    `block` names the repeated unit that it belongs to (`layers.7`), `compute` the peak rate that its FLOPs run at
    (default: the weight's, else the first operand's), `group` the word under which reports add it up.
    """

    name: str
    kind: str
    operands: tuple[Tensor, ...]
    output: Tensor
    attrs: tuple[tuple[str, Any], ...] = ()
    block: str = ""
    group: str = ""
    compute: str = ""

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute of that name, or `default`."""
        for key, value in self.attrs:
            if key == name:
                return value
        return default

    @property
    def peak(self) -> str:
        """Name of the device's peak rate that this operator computes at."""
        if self.compute:
            return self.compute
        weights = [t for t in self.operands if t.role == "weight"]
        source = weights[0] if weights else (self.operands[0] if self.operands else self.output)
        return DTYPES[source.dtype].peak

    @property
    def labels(self) -> tuple[str, ...]:
        """Every dim label of operands and output, in order of first use."""
        return tuple(dict.fromkeys(d for t in (*self.operands, self.output) for d in t.dims))


def _no_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {}


def _read_all(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    return 1.0


def _write_all(op: Op, local: Sizes, full: Sizes) -> Num:
    return 1.0


def _pass(op: Op) -> None:
    return None


def _any_sizes(op: Op, sizes: Mapping[str, int]) -> None:
    return None


def _refuses_none(op: Op) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpKind:
    """One entry of the operator table. A new operator is one of these.

    - `cuts(op)`: the dims signature of an instance, one `Cut` per row; running unsplit needs no row.
    - `flops(op, local, full)`: FLOPs per peak rate for loop extents `local` (numbers or arrays over batch sizes);
      `full` are the unsplit extents.
    - `read_fraction(op, index, local, full, assumptions)`: share of operand `index` that is really read.
    - `write_fraction(op, local, full)`: share of the output that is really written.
    - `attrs`: the attributes that it takes and the types that each may have.
    - `check(op)`: raises `GraphError` unless the operand and output labels fit the kind.
    - `check_sizes(op, sizes)`: raises `GraphError` unless the extents do.
    - `refuses(op)`: labels along which it looks divisible and is not, and why not.
    - `pure`: observable only through its output, so it may be duplicated; otherwise its own cuts say what is safe.
    - `linear`: a linear function of operand 0.
    - `in_place`: index of the operand whose memory the output takes over (a KV append), or None.
    - `range`: its output is a name for a range of operand 0, in the memory of that.
    - `alike`: those of its operands that other blocks make lie over the mesh in the same way.
    """

    name: str
    summary: str
    cuts: Callable[[Op], tuple[Cut, ...]]
    flops: Callable[[Op, Sizes, Sizes], Mapping[str, Num]] = _no_flops
    read_fraction: Callable[[Op, int, Sizes, Sizes, Assumptions], Num] = _read_all
    write_fraction: Callable[[Op, Sizes, Sizes], Num] = _write_all
    attrs: Mapping[str, tuple[type, ...]] = field(default_factory=dict, hash=False)
    check: Callable[[Op], None] = _pass
    check_sizes: Callable[[Op, Mapping[str, int]], None] = _any_sizes
    refuses: Callable[[Op], Mapping[str, str]] = _refuses_none
    pure: bool = True
    linear: bool = False
    in_place: int | None = None
    range: bool = False
    alike: bool = False


#: Types of an attribute that is a number.
NUMBER = (int, float)

_KINDS: dict[str, OpKind] = {}

#: Modules that register kinds when they are imported, and those of the same names that hold their references.
KIND_MODULES = (
    "einsum",
    "elementwise",
    "affine",
    "gated",
    "sigmoid",
    "norm",
    "layer_norm",
    "attention",
    "mla",
    "expand",
    "conv",
    "delta",
    "linear",
    "moe",
    "embedding",
    "cache",
    "recall",
    "hyper",
    "depth",
    "softmax",
    "grouped",
    "rope",
    "segment",
    "joint",
    "heads",
    "quantised",
    "capacity",
    "sample",
    "foreign",
    "fused",
)


def register(kind: OpKind) -> OpKind:
    """Enter a kind into the operator table. Registering a name twice is a programming error."""
    if kind.name in _KINDS:
        raise ValueError(f"operator kind {kind.name!r} is registered twice")
    _KINDS[kind.name] = kind
    return kind


@lru_cache(maxsize=1)
def _load() -> None:
    for module in KIND_MODULES:
        importlib.import_module(f"rooflang.ir.kinds.{module}")


def op_kind(name: str) -> OpKind:
    """The kind registered under that name. Raises `UnknownNameError`."""
    _load()
    if name not in _KINDS:
        raise UnknownNameError("operator kind", name, _KINDS)
    return _KINDS[name]


def op_kinds() -> Mapping[str, OpKind]:
    """The whole operator table by name."""
    _load()
    return dict(_KINDS)


@lru_cache(maxsize=65536)
def signature(op: Op) -> tuple[Cut, ...]:
    """The dims signature of an operator: every way to cut it along one axis."""
    return op_kind(op.kind).cuts(op)
