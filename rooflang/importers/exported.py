"""`Exported`: what is read of a program that `torch.export` has written, as a record that is JSON without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rooflang.errors import GraphError

#: What a node may be beside an operator: a tensor that is there before the program runs.
PLACEHOLDERS = ("input", "parameter", "buffer", "constant")


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One value of the program.

    `target` is an operator (`aten.linear.default`), one of `PLACEHOLDERS`, or `getitem`, one of several outputs. `args`
    and `kwargs` are the operator's, where `{"ref": name}` stands for another node. `shape` and `dtype` are those of the
    value; a node of several outputs has none. `label` is a name for people: where a parameter stands in its module.
    """

    name: str
    target: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    shape: list[int] = []
    dtype: str = ""
    label: str = ""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A program: nodes in order, the names of its outputs, and its FLOPs by operator as PyTorch's own counter
    (`torch.utils.flop_counter`) counts them."""

    name: str
    torch: str
    nodes: list[Node]
    outputs: list[str]
    flops: dict[str, int] = {}

    def to_json(self) -> str:
        """The record as JSON text."""
        return msgspec.json.format(msgspec.json.encode(self)).decode() + "\n"


def read_exported(path: Path) -> Exported:
    """The record in a JSON file. Raises `GraphError` for one that cannot be read or is no such record."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Exported)
    except OSError as error:
        raise GraphError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GraphError(
            f"no record of an exported program: {error}", where=str(path), expected="what --record has written"
        ) from error
