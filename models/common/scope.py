"""`Scope`: what every part of a builder needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from rooflang.assumptions import Assumptions
from rooflang.ir.graph import GraphBuilder
from rooflang.ir.tensor import Dim, Role, Tensor
from rooflang.models.workload import Workload

Config = TypeVar("Config")

#: Label of the tokens that a decode step checks at once: the last one of a request and those drafted after it.
DRAFT = "draft"


class Scope(Generic[Config]):
    """A graph under construction, with what decides its shape. `dims` are all dims that it may have, by label.

    `rows` are the labels of the tokens that run: every position of every request in prefill, in decode one token per
    request, or the last one and those drafted after it. Names are prefixed by the current block; dims are declared
    where they are first used.
    """

    def __init__(
        self, name: str, config: Config, workload: Workload, assumptions: Assumptions, dims: Mapping[str, Dim]
    ) -> None:
        self.config = config
        self.assumptions = assumptions
        self.prefill = workload.stage == "prefill"
        self.rows = "batch seq" if self.prefill else f"batch {DRAFT}" if assumptions.draft_tokens else "batch"
        self.graph = GraphBuilder(name)
        #: Tensors that the step has to leave behind beside its tokens.
        self.left: list[Tensor] = []
        #: Caches as the operators so far have left them, by name.
        self.appended: dict[str, Tensor] = {}
        checked = Dim(label=DRAFT, size=assumptions.draft_tokens + 1, meaning="tokens checked")
        self._dims = {**dims, DRAFT: checked}
        self._declared: set[str] = set()
        self._run = self._layer = ""

    def enter(self, block: str, *, run: str = "", layer: str = "") -> None:
        """Operators and leaves from here on belong to this block. In a block that runs several times, layers maybe more
        than once, operators are named by the `run` and leaves by the `layer`."""
        self.graph.block = block
        self._run, self._layer = (f"{name}." if name else "" for name in (run, layer))

    def define(self, dim: Dim) -> None:
        """Add a dim to the table."""
        self._dims[dim.label] = dim

    def weight(self, name: str, dims: str, dtype: str = "bf16") -> Tensor:
        return self.graph.weight(self._name(self._layer + name), self._declare(dims), dtype)

    def shared(self, name: str, dims: str, dtype: str = "bf16") -> Tensor:
        """A weight that several blocks read, by its whole name."""
        return self.graph.weight(name, self._declare(dims), dtype)

    def cache(self, name: str, dims: str, dtype: str) -> Tensor:
        return self.graph.cache(self._name(self._layer + name), self._declare(dims), dtype)

    def state(self, name: str, dims: str, dtype: str) -> Tensor:
        return self.graph.state(self._name(self._layer + name), self._declare(dims), dtype)

    def size(self, label: str) -> int:
        """Extent of a dim."""
        return self._dims[label].size

    def graph_input(self, name: str, dims: str, dtype: str = "bf16") -> Tensor:
        """What arrives with the requests, by its whole name."""
        return self.graph.input(name, self._declare(dims), dtype)

    def tokens(self) -> Tensor:
        """Ids of the tokens that run. All blocks share them: layers may route by id."""
        return self.graph_input("tokens", self.rows, "int32")

    def op(
        self,
        name: str,
        kind: str,
        operands: Iterable[Tensor],
        dims: str,
        dtype: str = "bf16",
        *,
        group: str,
        fill: float = 1.0,
        compute: str = "",
        role: Role = Role.ACTIVATION,
        **attrs: Any,
    ) -> Tensor:
        """Append an operator to the current block and return its output; see `GraphBuilder.op`."""
        return self.graph.op(
            self._name(self._run + name),
            kind,
            operands,
            self._declare(dims),
            dtype,
            group=group,
            fill=fill,
            compute=compute,
            role=role,
            **attrs,
        )

    def project(self, name: str, x: Tensor, weight: Tensor, out: str, dtype: str = "bf16", *, group: str) -> Tensor:
        """x by a weight → (rows out)."""
        return self.op(name, "matmul", [x, weight], f"{self.rows} {out}", dtype, group=group)

    def norm(self, name: str, x: Tensor, over: str) -> Tensor:
        """RMS norm of one label of x, with its learned gain."""
        gain = self.weight(f"{name}_gain", over)
        return self.op(name, "rms_norm", [x, gain], " ".join(x.dims), group="norms", over=over)

    def _name(self, name: str) -> str:
        return f"{self.graph.block}.{name}"

    def _declare(self, dims: str) -> str:
        for label in dims.split():
            if label not in self._declared:
                self._declared.add(label)
                self.graph.dim(label, self._dims[label].size, self._dims[label].meaning)
        return dims
