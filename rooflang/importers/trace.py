"""Execution traces of PyTorch: the profiler's Chrome trace, recorded with `record_shapes=True`, and the execution trace
that `ExecutionTraceObserver` writes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from rooflang.errors import GraphError
from rooflang.importers.work import Work, product_work

#: Products, and where their two matrices stand among the operands.
_PRODUCTS = {"mm": 0, "addmm": 1, "bmm": 0, "baddbmm": 1, "_scaled_mm": 0, "_int_mm": 0}

#: Attention that is one kernel; what is taken apart into products is counted by them.
_ATTENTION = ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu")

#: Bytes of an element, by PyTorch's names of types in traces.
_BYTES = {
    "float": 4.0,
    "double": 8.0,
    "c10::BFloat16": 2.0,
    "c10::Half": 2.0,
    "c10::Float8_e4m3fn": 1.0,
    "c10::Float8_e5m2": 1.0,
    "signed char": 1.0,
    "unsigned char": 1.0,
    "int": 4.0,
    "long int": 8.0,
    "long": 8.0,
    "bool": 1.0,
}

_EXPECTED = "the profiler's trace, recorded with record_shapes=True, or an execution trace of PyTorch"


def read_trace(path: Path) -> list[Work]:
    """What a trace has run: products and attention, and the operators that they are called by not counted again.

    Raises `GraphError` for a file that is no trace, or that has no shapes.
    """
    content = _content(path)
    events = list(_events(content))
    if not events:
        raise GraphError("no operators of ATen with shapes", where=str(path), expected=_EXPECTED)
    works = []
    for name, shapes, types in events:
        try:
            found = _work(name, shapes, types)
        except (IndexError, TypeError, ValueError) as error:
            raise GraphError(f"{name} with the shapes {shapes} cannot be read", where=str(path)) from error
        if found is not None:
            works.append(found)
    return works


def _content(path: Path) -> Any:
    try:
        raw = path.read_bytes()
        return msgspec.json.decode(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except OSError as error:
        what = error.strerror or str(error)
        raise GraphError(f"cannot be read: {what}", where=str(path), expected=_EXPECTED) from error
    except (EOFError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GraphError(f"not JSON: {error}", where=str(path), expected=_EXPECTED) from error


def _events(content: Any) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Name, shapes and types of the operands of every operator of ATen."""
    if not isinstance(content, dict):
        return
    for event in content.get("traceEvents", ()):
        args = event.get("args") if isinstance(event, dict) else None
        if isinstance(args, dict) and isinstance(args.get("Input Dims"), list):
            yield str(event.get("name")), args["Input Dims"], list(args.get("Input type", ()))
    for node in content.get("nodes", ()):
        found = node.get("inputs") if isinstance(node, dict) else None
        if isinstance(found, dict) and isinstance(found.get("shapes"), list):
            types = [str(each).removeprefix("Tensor(").removesuffix(")") for each in found.get("types", ())]
            yield str(node.get("name")), found["shapes"], types


def _work(name: str, shapes: list[Any], types: list[Any]) -> Work | None:
    bare = name.removeprefix("aten::").partition(".")[0]
    if not name.startswith("aten::"):
        return None
    if bare in _PRODUCTS:
        return _product(name, shapes, types, _PRODUCTS[bare])
    if "scaled_dot_product" in bare and bare.endswith(_ATTENTION):
        return _attention(name, shapes, types)
    return None


def _product(name: str, shapes: list[Any], types: list[Any], at: int) -> Work:
    a, b = shapes[at], shapes[at + 1]
    *batch, rows, inner = a
    width = _width(types, at)
    count = 1
    for each in batch:
        count *= each
    return product_work(name, count, rows, inner, b[-1], (width, _width(types, at + 1), width))


def _attention(name: str, shapes: list[Any], types: list[Any]) -> Work:
    (batch, heads, queries, width), (_, kv_heads, positions, _), (*_, value) = shapes[:3]
    rows = batch * heads * queries
    elements = rows * (width + value) + batch * kv_heads * positions * (width + value)
    flops = 2.0 * rows * positions * (width + value)
    moved = elements * _width(types, 0)
    return Work(sort="attention", name=name, flops=flops, bytes=moved, shape=(rows, positions, width))


def _width(types: list[Any], index: int) -> float:
    return _BYTES.get(str(types[index]), 4.0) if index < len(types) else 4.0
