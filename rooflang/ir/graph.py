"""Compute graphs: operators over labelled dims, in topological order, frozen."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir.op import Op, signature
from rooflang.ir.tensor import Dim, Role, Tensor
from rooflang.notebook import html_table
from rooflang.units import whole

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, kw_only=True)
class Graph:
    """One step of a program: operators in topological order over labelled dims, and the tensors that must come out.

    Operators carry a block label; blocks of the same structure are layers of one kind. Build it with `GraphBuilder`,
    read it with `text.parse`, or get it from a model builder; `verify.verify` says whether it is well formed.
    """

    name: str
    dims: tuple[Dim, ...]
    ops: tuple[Op, ...]
    outputs: tuple[str, ...]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Extent of every dim by label."""
        return {d.label: d.size for d in self.dims}

    @cached_property
    def words(self) -> dict[str, str]:
        """The word for people of every dim by label."""
        return {d.label: d.word for d in self.dims}

    @cached_property
    def op_by_name(self) -> dict[str, Op]:
        return {op.name: op for op in self.ops}

    @cached_property
    def producer(self) -> dict[str, Op]:
        """The operator that produces each tensor; leaves have none."""
        return {op.output.name: op for op in self.ops}

    @cached_property
    def consumers(self) -> dict[str, tuple[tuple[Op, int], ...]]:
        """For each tensor the (operator, operand index) pairs that read it."""
        table: dict[str, list[tuple[Op, int]]] = {}
        for op in self.ops:
            for index, tensor in enumerate(op.operands):
                table.setdefault(tensor.name, []).append((op, index))
        return {name: tuple(uses) for name, uses in table.items()}

    @cached_property
    def partial_scale(self) -> dict[str, float]:
        """How much larger the partial values of a tensor are than whole ones, for those where they are."""
        scales = {op.output.name: max((cut.partial_scale for cut in signature(op)), default=1.0) for op in self.ops}
        return {name: scale for name, scale in scales.items() if scale != 1.0}

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name: leaves and outputs of operators."""
        table = {t.name: t for op in self.ops for t in op.operands}
        table.update({op.output.name: op.output for op in self.ops})
        return table

    @cached_property
    def leaves(self) -> tuple[Tensor, ...]:
        """Tensors that no operator produces: weights, caches, states, inputs."""
        return tuple(t for t in self.tensors.values() if t.name not in self.producer)

    def leaf_bytes(self, *roles: Role) -> float:
        """Bytes of all leaves of these roles, each counted once."""
        return float(sum(t.bytes(self.sizes) for t in self.leaves if t.role in roles))

    def resized(self, **sizes: int) -> Graph:
        """The same graph with other extents for the named dims."""
        for label in sizes:
            if label not in self.sizes:
                raise UnknownNameError("dim", label, self.sizes, where=self.name)
        dims = tuple(replace(d, size=sizes[d.label]) if d.label in sizes else d for d in self.dims)
        return replace(self, dims=dims)

    def to_networkx(self) -> networkx.DiGraph:
        """Operators and tensors as a bipartite networkx graph (`kind` is `op` or `tensor`; `item` is the record)."""
        from rooflang.ir.verify import to_networkx

        return to_networkx(self)

    def _repr_html_(self) -> str:
        """For notebooks: the operators in order, with what they read and make."""
        sizes = ", ".join(f"{dim.label} {dim.size:,}" for dim in self.dims)
        rows = [
            (
                op.name,
                op.kind,
                ", ".join(tensor.name for tensor in op.operands),
                f"{op.output.name} [{' '.join(op.output.dims)}] {op.output.dtype}",
            )
            for op in self.ops
        ]
        return html_table(f"graph {self.name}", ("operator", "kind", "reads", "makes"), rows, note=f"dims: {sizes}")

    @cached_property
    def fingerprint(self) -> str:
        """Content hash (hex) of dims, operators and outputs."""
        from rooflang.ir.text import dump

        return hashlib.sha256(dump(self).encode()).hexdigest()[:16]


class GraphBuilder:
    """Builds a graph operator by operator.

    >>> g = GraphBuilder("mlp", batch=64, hidden=1024, ffn=4096)
    >>> x = g.input("x", "batch hidden")
    >>> h = g.op("up", "matmul", [x, g.weight("w1", "hidden ffn")], "batch ffn")
    >>> y = g.op("down", "matmul", [h, g.weight("w2", "ffn hidden")], "batch hidden")
    >>> graph = g.build(y)
    >>> [op.name for op in graph.ops]
    ['up', 'down']
    """

    def __init__(self, name: str, /, **dims: int) -> None:
        self.name = name
        self._dims: dict[str, Dim] = {}
        self._ops: list[Op] = []
        self._tensors: dict[str, Tensor] = {}
        self.block = ""
        for label, size in dims.items():
            self.dim(label, size)

    def dim(self, label: str, size: int, meaning: str = "") -> str:
        """Declare a dim; declaring it again must agree. Raises `ValueRangeError` for a size that is no whole number."""
        size = whole(size, where=f"{self.name}: dim {label}", least=None)
        new = Dim(label=label, size=size, meaning=meaning)
        if self._dims.setdefault(label, new).size != size:
            raise GraphError(f"dim {label!r} is {self._dims[label].size} and {size}", where=self.name)
        return label

    def _leaf(self, name: str, dims: str, dtype: str, role: Role) -> Tensor:
        tensor = Tensor(name=name, dims=tuple(dims.split()), dtype=dtype, role=role)
        if self._tensors.setdefault(name, tensor) != tensor:
            raise GraphError(f"tensor {name!r} is declared twice, differently", where=self.name)
        return tensor

    def input(self, name: str, dims: str, dtype: str = "bf16") -> Tensor:
        """A tensor that arrives with the request. `dims` are labels separated by spaces."""
        return self._leaf(name, dims, dtype, Role.INPUT)

    def weight(self, name: str, dims: str, dtype: str = "bf16") -> Tensor:
        return self._leaf(name, dims, dtype, Role.WEIGHT)

    def cache(self, name: str, dims: str, dtype: str = "fp8") -> Tensor:
        """A KV cache: it stays in memory between steps and is never moved between devices."""
        return self._leaf(name, dims, dtype, Role.KV_CACHE)

    def state(self, name: str, dims: str, dtype: str = "bf16") -> Tensor:
        """A recurrent state: it stays in memory between steps."""
        return self._leaf(name, dims, dtype, Role.STATE)

    def op(
        self,
        name: str,
        kind: str,
        operands: Iterable[Tensor],
        dims: str,
        dtype: str = "bf16",
        *,
        fill: float = 1.0,
        group: str = "",
        compute: str = "",
        role: Role = Role.ACTIVATION,
        **attrs: Any,
    ) -> Tensor:
        """Append an operator and return the tensor it produces (named after the operator)."""
        output = Tensor(name=name, dims=tuple(dims.split()), dtype=dtype, role=role, fill=fill)
        if name in self._tensors:
            raise GraphError(f"{name!r} has two writers", where=self.name)
        self._tensors[name] = output
        self._ops.append(
            Op(
                name=name,
                kind=kind,
                operands=tuple(operands),
                output=output,
                attrs=tuple(sorted(attrs.items())),
                block=self.block,
                group=group or kind,
                compute=compute,
            )
        )
        return output

    def build(self, *outputs: Tensor) -> Graph:
        """Freeze and verify. Without arguments every tensor that nothing reads is an output. Raises `GraphError`."""
        from rooflang.ir.verify import verify

        read = {t.name for op in self._ops for t in op.operands}
        names = tuple(t.name for t in outputs) or tuple(o.name for o in self._ops if o.name not in read)
        graph = Graph(name=self.name, dims=tuple(self._dims.values()), ops=tuple(self._ops), outputs=names)
        return verify(graph)
