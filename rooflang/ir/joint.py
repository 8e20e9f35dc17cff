"""Products that share their input, as one: a graph gains the joint product of some of its operators, which nothing
reads yet. `fuse_kernels` then makes each of them a part of it (`rooflang.rules.fuse_kernels`).

An operator has one output, so that a kernel with two is one whose output holds both: the feature dims of the products
lie one after the other in a dim of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rooflang.errors import RefusedError
from rooflang.ir.apart import Apart
from rooflang.ir.blocks import Blocks
from rooflang.ir.graph import Graph
from rooflang.ir.kinds.joint import JOINT
from rooflang.ir.op import Op
from rooflang.ir.tensor import Dim, Role, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Groups of products by name, one of each of some blocks that are copies of each other."""

    targets: tuple[tuple[str, ...], ...]

    @property
    def name(self) -> str:
        """The name of the joint product in the first of the blocks."""
        return "+".join(self.targets[0] if self.targets else ())

    def of(self, graph: Graph) -> Graph:
        """The graph with their joint products too, each in front of the first of its products. Raises
        `RefusedError`."""
        first: dict[str, Op] = {}
        order = {name: number for number, name in enumerate(graph.op_by_name)}
        dims = {dim.label: dim for dim in graph.dims}
        for names in self.targets:
            for name in names:
                if name not in graph.op_by_name:
                    raise RefusedError("unknown-name", f"there is no operator {name!r}")
            products = [graph.op_by_name[name] for name in names]
            joint = joint_of(products)
            if joint.name in graph.op_by_name:
                raise RefusedError("name-taken", f"there is an operator {joint.name} already")
            dims.setdefault(joint.output.dims[-1], _dim(graph, joint.output.dims[-1], products))
            first[min(names, key=order.__getitem__)] = joint
        ops = (each for op in graph.ops for each in ((first[op.name], op) if op.name in first else (op,)))
        return replace(graph, dims=tuple(dims.values()), ops=tuple(ops))


#: What is done to a graph before anything is laid.
Rewriting = Apart | Joint


def joint_of(products: Sequence[Op]) -> Op:
    """The joint product of some products. Raises `RefusedError` where they are not those of one kernel."""
    why = apart_because(products)
    if why is not None:
        raise RefusedError(*why)
    first = products[0]
    rows = first.output.dims[:-1]
    label = "+".join(op.output.dims[-1] for op in products)
    name = "+".join(op.name for op in products)
    output = Tensor(name=name, dims=(*rows, label), dtype=first.output.dtype, role=Role.ACTIVATION)
    weights = tuple(op.operands[1] for op in products)
    return Op(
        name=name,
        kind=JOINT,
        operands=(first.operands[0], *weights),
        output=output,
        block=first.block,
        group=first.group,
        compute=first.compute,
    )


def apart_because(products: Sequence[Op]) -> tuple[str, str] | None:
    """Why some products cannot be one, as a code and a sentence; None where they can."""
    if len(products) < 2:
        return "one-product", "a joint product is one of two or more products"
    first, *others = products
    for op in products:
        if op.kind != "matmul" or op.operands[1].role is not Role.WEIGHT:
            return "no-product", f"{op.name} is no product with a weight"
        x, weight, out = op.operands[0].dims, op.operands[1].dims, op.output.dims
        if set(weight) - set(x) != {out[-1]} or set(weight) & set(out) != {out[-1]}:
            return "no-range", f"what {op.name} makes is no range of one dim, the last of its output"
    for op in others:
        if op.operands[0] != first.operands[0] or op.block != first.block:
            return "other-input", f"{op.name} and {first.name} do not read one input in one block"
        if _format(op) != _format(first):
            return "other-format", f"{op.name} and {first.name} read, compute or keep numbers in different formats"
        if op.output.dims[:-1] != first.output.dims[:-1]:
            return "other-rows", f"rows of {op.name} and {first.name} lie in another order"
    if len({op.output.dims[-1] for op in products}) < len(products):
        return "one-label", f"products like {first.name} need a feature dim each"
    return None


def _format(op: Op) -> tuple[object, ...]:
    return op.operands[1].dtype, op.peak, op.output.dtype, op.output.role, op.output.fill


def _dim(graph: Graph, label: str, products: Sequence[Op]) -> Dim:
    own = [op.output.dims[-1] for op in products]
    return Dim(
        label=label, size=sum(graph.sizes[each] for each in own), meaning=" + ".join(graph.words[d] for d in own)
    )


def shared_inputs(blocks: Blocks) -> Iterator[Joint]:
    """All products of a graph that read one input and could be one kernel, a record for each group of a kind of
    block."""
    for kind in blocks.kinds:
        for names in groups(kind.ops):
            yield Joint(targets=tuple(tuple(blocks.rename[label][name] for name in names) for label in kind.blocks))


def groups(ops: Iterable[Op]) -> Iterator[tuple[str, ...]]:
    """Names of products of one input that could be one kernel, in program order: each joins the first that take it."""
    found: list[list[Op]] = []
    for op in ops:
        if op.kind == "matmul":
            group = next((each for each in found if apart_because([*each, op]) is None), None)
            if group is None:
                found.append([op])
            else:
                group.append(op)
    yield from (tuple(op.name for op in group) for group in found if len(group) > 1)
