"""One operator of an exported program: its arguments, and what several translations share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rooflang.importers.axes import Axis
from rooflang.importers.draft import Draft, Made, Value
from rooflang.importers.exported import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The operator `node`, the draft that it is added to, and the values before it."""

    draft: Draft
    node: Node
    values: Mapping[str, Value]

    def arg(self, index: int, name: str = "", default: Any = None) -> Any:
        """Argument by place or name: a `Value` or a constant."""
        raw = self.node.kwargs.get(name, default) if index >= len(self.node.args) else self.node.args[index]
        return self._read(raw)

    def tensor(self, index: int, name: str = "") -> Value | None:
        """An argument that is a tensor; None where there is none."""
        found = self.arg(index, name)
        return found if isinstance(found, Value) else None

    def tensors(self) -> list[Value]:
        """All arguments that are tensors, those in lists too; for one of several outputs those of the operator that has
        them."""
        source = self.source() or self.node
        return list(self._all([*source.args, *source.kwargs.values()]))

    def source(self) -> Node | None:
        """The operator of several outputs of which this is one."""
        first = self.node.args[0] if self.node.args else None
        return self.draft.several.get(first["ref"]) if isinstance(first, dict) and "ref" in first else None

    def of(self, node: Node) -> Step:
        """Another operator, at the place of this one."""
        return Step(draft=self.draft, node=node, values=self.values)

    def same(self, one: Axis, other: Axis) -> bool:
        """Make two axes one dim, where they can be."""
        return self.draft.axes.same(one, other)

    def is_same(self, one: Axis, other: Axis) -> bool:
        """Are two axes one dim already?"""
        return self.draft.axes.find(one) == self.draft.axes.find(other)

    def size(self, axis: Axis | None) -> int:
        """Size of an axis."""
        return 1 if axis is None else self.draft.axes.size(axis)

    def new(self, size: int, hint: str) -> Axis:
        """An axis of its own."""
        return self.draft.new(size, hint)

    def whole(self, value: Value, suffix: str = "") -> tuple[Made, tuple[Axis, ...]]:
        """The tensor of a value that has an axis for each of the value's, and these."""
        if value.plain:
            return value.made, tuple(axis for axis in value.axes if axis is not None)
        axes = tuple(self.new(1, "one") if axis is None else axis for axis in value.axes)
        made = self.draft.op(self.node, "pointwise", [value.made], axes, suffix=f"_wide{suffix}", function="expand")
        return made, axes

    def op(self, kind: str, operands: list[Made], axes: tuple[Axis, ...], **options: Any) -> Value:
        """Append an operator whose output is the value of this step."""
        return Value(made=self.draft.op(self.node, kind, operands, axes, **options), axes=axes)

    def alike(self, made: Made, axes: tuple[Axis, ...], wanted: tuple[Axis, ...], suffix: str) -> Made:
        """The tensor with each of these axes made the wanted dim: one and the same, or read under its name."""
        for number, (own, want) in enumerate(zip(axes, wanted, strict=True)):
            if self.same(own, want):
                continue
            made, new = self.draft.renamed(self.node, made, own, "renamed", f"_{suffix}{number}")
            self.same(new, want)
        return made

    def opaque(self) -> Value:
        """An operator of which only shape and cost are known: operands in, a tensor of new axes out."""
        axes = tuple(self.new(size, f"{self.node.name}_{i}") for i, size in enumerate(self.node.shape))
        operands = [value.made for value in self.tensors()]
        function = self.node.target.split(".")[1] if "." in self.node.target else self.node.target
        if not operands:
            leaf = Node(
                name=self.node.name,
                target="constant",
                shape=self.node.shape,
                dtype=self.node.dtype,
                label=self.node.name,
            )
            return self.draft.leaf(leaf, [f"{self.node.name}_{i}" for i in range(len(self.node.shape))])
        return self.op("opaque", operands, axes, function=function)

    def _read(self, raw: Any) -> Any:
        if isinstance(raw, dict) and "ref" in raw:
            return self.values.get(raw["ref"])
        return raw

    def _all(self, raw: Any) -> Iterator[Value]:
        if isinstance(raw, list):
            for each in raw:
                yield from self._all(each)
        else:
            found = self._read(raw)
            if isinstance(found, Value):
                yield found


def grouped_shapes(old: list[int], new: list[int]) -> list[tuple[list[int], list[int]]] | None:
    """Runs of axes of two shapes that hold the same elements, as short as they can be; None where they hold others."""
    if math.prod(old) != math.prod(new):
        return None
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        left, right = [i] if i < len(old) else [], [j] if j < len(new) else []
        i, j = i + len(left), j + len(right)
        while math.prod(old[k] for k in left) != math.prod(new[k] for k in right):
            if math.prod(old[k] for k in left) < math.prod(new[k] for k in right):
                left, i = [*left, i], i + 1
            else:
                right, j = [*right, j], j + 1
        groups.append((left, right))
    return groups
