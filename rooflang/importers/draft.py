"""A graph under construction whose dims have no names yet: values of the program, and operators over their axes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rooflang.importers.axes import Axes, Axis
from rooflang.importers.exported import Node
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.tensor import Role, Tensor

#: Dtypes of torch, as they are called here. Truth values and small integers take the place of ids.
DTYPES = {
    "float32": "fp32",
    "float64": "fp32",
    "bfloat16": "bf16",
    "float16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "int8": "int8",
    "uint8": "int8",
    "bool": "int8",
    "int32": "int32",
    "int64": "int64",
}

_ROLES = {"input": Role.INPUT, "parameter": Role.WEIGHT, "buffer": Role.WEIGHT, "constant": Role.INPUT}
_BLOCK = re.compile(r"(?:^|\.)(\w+)\.(\d+)(?:\.|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A tensor of the graph: a leaf, or what an operator makes."""

    name: str
    axes: tuple[Axis, ...]
    dtype: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value of the program: a tensor, and which of its axes stand where. An axis that the tensor has not, or None for
    one of size 1, is one along which all elements are the same."""

    made: Made
    axes: tuple[Axis | None, ...]

    @property
    def plain(self) -> bool:
        """Has the value the tensor's axes, and no others?"""
        return sorted(map(str, self.axes)) == sorted(map(str, self.made.axes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Op:
    made: Made
    kind: str
    operands: tuple[Made, ...]
    block: str
    group: str
    attrs: dict[str, Any]


@dataclass(slots=True)
class Draft:
    """Operators so far, in order, and the axes of all of them. `several` are nodes of several outputs, `pieces` the
    axes that some of them have made of one axis."""

    name: str
    axes: Axes = field(default_factory=Axes)
    ops: list[_Op] = field(default_factory=list)
    block: str = "start"
    several: dict[str, Node] = field(default_factory=dict)
    pieces: dict[str, tuple[Axis, ...]] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _first: dict[tuple[str, str], Axis] = field(default_factory=dict)
    _made: int = 0

    def enter(self, node: Node) -> None:
        """Operators from here on belong to the layer that the node stands in: the first module of a list on its path.
        What comes before the first one is called `start`, what comes between or after others `end`."""
        if node.target in _ROLES:
            return
        found = _BLOCK.search(node.label)
        block = f"{found[1]}.{found[2]}" if found else "start" if self.block == "start" else "end"
        if block != self.block:
            self.block, self._made = block, 0

    def new(self, size: int, hint: str) -> Axis:
        """An axis of its own, but for the other layers of a list: what is the same in all of them has one name."""
        self._made += 1
        return self._like_the_first(size, hint, self.block.partition(".")[0], f"{self._made}:{size}")

    def _like_the_first(self, size: int, hint: str, group: str, place: str) -> Axis:
        axis = self.axes.new(size, hint)
        first = self._first.setdefault((group, place), axis)
        self.axes.same(first, axis)
        return axis

    def leaf(self, node: Node, hints: Sequence[str]) -> Value:
        """A tensor that is there before the program runs."""
        path = node.label or node.name
        anywhere = _BLOCK.sub(lambda found: f".{found[1]}.*.", path)
        axes = tuple(
            self._like_the_first(size, hint, anywhere, f"{number}:{size}")
            for number, (size, hint) in enumerate(zip(node.shape, hints, strict=True))
        )
        self.axes.keep_apart(axes)
        made = Made(name=self._called(path), axes=axes, dtype=_dtype(node), role=_ROLES[node.target])
        return Value(made=made, axes=axes)

    def op(
        self,
        node: Node,
        kind: str,
        operands: Sequence[Made],
        axes: Sequence[Axis],
        *,
        suffix: str = "",
        apart: Sequence[Axis] = (),
        **attrs: Any,
    ) -> Made:
        """Append an operator that makes a tensor of these axes; `apart` are others that it tells from them."""
        self.axes.keep_apart(axes)
        self.axes.keep_apart((*axes, *apart))
        dtype = _dtype(node)
        made = Made(name=self._called(node.name + suffix), axes=tuple(axes), dtype=dtype, role=Role.ACTIVATION)
        module = node.label.rpartition(".")[2]
        group = kind if not module or module.isdigit() else module
        self.ops.append(_Op(made=made, kind=kind, operands=tuple(operands), block=self.block, group=group, attrs=attrs))
        return made

    def renamed(self, node: Node, made: Made, old: Axis, hint: str, suffix: str) -> tuple[Made, Axis]:
        """The tensor with one of its axes under another name, and that axis."""
        new = self.new(self.axes.size(old), hint)
        axes = tuple(new if self.axes.find(each) == self.axes.find(old) else each for each in made.axes)
        return self.op(node, "rename", [made], axes, suffix=suffix, apart=[old]), new

    def build(self, outputs: Sequence[Made]) -> Graph:
        """The verified graph, its dims named. What nothing reads is left out."""
        ops = self._needed(outputs)
        used = [axis for op in ops for made in (*op.operands, op.made) for axis in made.axes]
        used += [axis for op in ops for value in op.attrs.values() for axis in _named(value)]
        names = self.axes.names(used)
        graph = GraphBuilder(self.name)
        for axis in used:
            graph.dim(names[self.axes.find(axis)], self.axes.size(axis))
        tensors: dict[str, Tensor] = {}
        for op in ops:
            graph.block = op.block
            for made in op.operands:
                if made.name not in tensors:
                    tensors[made.name] = _LEAVES[made.role](graph, made.name, self._dims(made, names), made.dtype)
            attrs = {k: self._attr(v, names) for k, v in op.attrs.items()}
            tensors[op.made.name] = graph.op(
                op.made.name,
                op.kind,
                [tensors[made.name] for made in op.operands],
                self._dims(op.made, names),
                op.made.dtype,
                group=op.group,
                **attrs,
            )
        return graph.build(*(tensors[made.name] for made in outputs))

    def _needed(self, outputs: Sequence[Made]) -> list[_Op]:
        wanted = {made.name for made in outputs}
        kept: list[_Op] = []
        for op in reversed(self.ops):
            if op.made.name in wanted:
                wanted |= {made.name for made in op.operands}
                kept.append(op)
        return kept[::-1]

    def _dims(self, made: Made, names: dict[Axis, str]) -> str:
        return " ".join(names[self.axes.find(axis)] for axis in made.axes)

    def _attr(self, value: Any, names: dict[Axis, str]) -> Any:
        """Attributes that name an axis are wrapped in `AxisName`."""
        if isinstance(value, AxisName):
            return names[self.axes.find(value.axis)]
        if isinstance(value, tuple):
            return tuple(self._attr(each, names) for each in value)
        return value

    def _called(self, wish: str) -> str:
        name, number = wish, 2
        while name in self._taken:
            name, number = f"{wish}.{number}", number + 1
        self._taken.add(name)
        return name


@dataclass(frozen=True, slots=True)
class AxisName:
    """The name of an axis, as the attribute of an operator."""

    axis: Axis


def _named(value: Any) -> Iterator[Axis]:
    """Axes that an attribute names."""
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, AxisName):
            yield each.axis


def _dtype(node: Node) -> str:
    return DTYPES.get(node.dtype, "fp32")


_LEAVES = {
    Role.INPUT: GraphBuilder.input,
    Role.WEIGHT: GraphBuilder.weight,
}
