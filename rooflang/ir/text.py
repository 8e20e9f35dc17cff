"""Graphs as text, one statement a line, that reads back as the same graph.

    graph mlp
    dim batch 64
    dim ctx4 16384 "context"
    weight w1 [hidden ffn] mxfp4
    input x [batch hidden] bf16
    block layers.0
    op up = matmul(x, w1) [batch ffn] bf16 group="ffn" {top_k=6}
    out down

Leaves are declared by their role, operators name the tensor that they produce, `block` holds for the operators after
it. What is left out has its default: `fill=1.0`, `role=activation`, `group=` the kind, `tensor=` the operator's name.
Names that are not plain words stand in double quotes, `#` begins a comment. Statements may refer to tensors of later
lines, so that a graph with a cycle can be read and `verify` can name the cycle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rooflang.errors import GraphError, RooflangError
from rooflang.ir.graph import Graph
from rooflang.ir.op import Op
from rooflang.ir.tensor import Role, Tensor

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.+/:-]*")


def read(path: str | Path) -> Graph:
    """Read and verify a graph file (UTF-8). Raises `GraphError` that names file and line, or what `verify` refuses."""
    from rooflang.ir.verify import verify

    try:
        text = Path(path).read_text(encoding="utf-8-sig")  # editors on Windows begin a file with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise GraphError(f"cannot be read: {error}", where=str(path), expected="a graph as UTF-8 text") from None
    graph = parse(text, where=str(path))
    try:
        return verify(graph)
    except RooflangError as error:
        error.where = f"{path}: {error.where}" if error.where else str(path)
        raise


def parse(text: str, *, where: str = "") -> Graph:
    """The graph that a text describes. Raises `GraphError` with `where:line`.

    Names are resolved, kinds and dtypes looked up; whether shapes fit and there is no cycle is for `verify` to say.
    """
    from rooflang.ir.parser import Parser

    return Parser(where or "<text>").graph(text)


def dump(graph: Graph) -> str:
    """The text of a graph that `verify` accepts; `parse(dump(graph)) == graph`.

    Raises `GraphError` for attributes that have no text form (those of a fused operator).
    """
    lines = [f"graph {_name(graph.name)}"]
    for dim in graph.dims:
        meaning = f" {json.dumps(dim.meaning)}" if dim.meaning else ""
        lines.append(f"dim {_name(dim.label)} {dim.size}{meaning}")
    lines.extend(f"{leaf.role} {_name(leaf.name)} {_shape(leaf)}" for leaf in graph.leaves)
    block = ""
    for op in graph.ops:
        if op.block != block:
            block = op.block
            lines.append(f"block {_name(block)}")
        lines.append(_op_line(op))
    lines.extend(f"out {_name(name)}" for name in graph.outputs)
    return "\n".join(lines) + "\n"


def _op_line(op: Op) -> str:
    operands = ", ".join(_name(t.name) for t in op.operands)
    parts = [f"op {_name(op.name)} = {_name(op.kind)}({operands}) {_shape(op.output)}"]
    if op.output.role is not Role.ACTIVATION:
        parts.append(f"role={op.output.role.value}")
    if op.group != op.kind:
        parts.append(f"group={json.dumps(op.group)}")
    if op.compute:
        parts.append(f"compute={_name(op.compute)}")
    if op.output.name != op.name:
        parts.append(f"tensor={_name(op.output.name)}")
    if op.attrs:
        parts.append("{" + ", ".join(f"{_name(key)}={_value(op, value)}" for key, value in op.attrs) + "}")
    return " ".join(parts)


def _shape(tensor: Tensor) -> str:
    fill = "" if tensor.fill == 1.0 else f" fill={tensor.fill!r}"
    return f"[{' '.join(map(_name, tensor.dims))}] {_name(tensor.dtype)}{fill}"


def _name(name: str) -> str:
    return name if _WORD.fullmatch(name) else json.dumps(name)


def _value(op: Op, value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value == value):
        return repr(value)
    if isinstance(value, tuple):
        return _tuple(op, value)
    raise GraphError(
        f"attribute value {value!r} has no text form",
        where=op.name,
        expected="a number, a string, true, false, none, or a tuple of these",
    )


def _tuple(op: Op, values: Sequence[Any]) -> str:
    inner = ", ".join(_value(op, value) for value in values)
    return f"({inner},)" if len(values) == 1 else f"({inner})"
