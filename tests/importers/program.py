"""Exported programs written by hand."""

from __future__ import annotations

from typing import Any

import msgspec

from rooflang.importers import Exported, Node


class Program:
    """Nodes one after the other; every method returns the name of its node."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def leaf(self, name: str, *shape: int, target: str = "input", dtype: str = "float32", label: str = "") -> str:
        self.nodes.append(Node(name=name, target=target, shape=list(shape), dtype=dtype, label=label or name))
        return name

    def op(self, target: str, *args: Any, shape: tuple[int, ...], label: str = "", **kwargs: Any) -> str:
        name = f"{target.partition('.')[0]}_{len(self.nodes)}"
        plain = [{"ref": each} if isinstance(each, str) else each for each in args]
        node = Node(
            name=name,
            target=target if target == "getitem" else f"aten.{target}",
            args=plain,
            kwargs=kwargs,
            shape=list(shape),
            dtype="float32",
            label=label,
        )
        self.nodes.append(node)
        return name

    def several(self, target: str, *args: Any) -> str:
        """An operator of several outputs."""
        name = self.op(target, *args, shape=())
        self.nodes[-1] = msgspec.structs.replace(self.nodes[-1], dtype="")
        return name

    def end(self, *outputs: str) -> Exported:
        return Exported(name="hand", torch="0", nodes=self.nodes, outputs=list(outputs))
