"""How one operator or value lies over a mesh: `Mode`, `Transfer`, and the primitive `Step`s that lead there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Cut, CutKind, Spec
from rooflang.ir.kinds.fused import chain, covered
from rooflang.ir.op import Op
from rooflang.ir.tensor import Tensor

#: What an operator does along one axis: a cut of its signature, `REPLICATED` (every coordinate runs it whole)
#: or `OWNER` (only the first coordinate runs it).
Choice = Cut | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One application of a primitive: its name, the operator or tensor, the dim if any, the axis index if any."""

    primitive: str
    target: str
    dim: str = ""
    axis: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """An operator laid over the mesh: operand specs → output spec.

    `choices` is what it does along each axis; `covers` names the operators of the initial graph that it stands for (a
    fused kernel covers several).
    """

    op: Op
    choices: tuple[Choice, ...]
    operands: tuple[Spec, ...]
    out: Spec
    covers: tuple[str, ...]

    @property
    def derivation(self) -> tuple[Step, ...]:
        """The primitives that lead to it, in their order: its fusions, then one an axis, and one more for a route."""
        name = self.op.name
        steps = [Step(primitive="fuse_kernels", target=each.name, dim=each.kind) for each in chain(self.op)]
        for axis, choice in enumerate(self.choices):
            if isinstance(choice, Cut):
                steps.append(Step(primitive="split_kernel", target=name, dim=choice.dim, axis=axis))
                if choice.kind is CutKind.ROUTE:
                    dim = f"{choice.dim}→{choice.out}"
                    steps.append(Step(primitive="fuse_kernels", target=name, dim=dim, axis=axis))
            else:
                primitive = "dup_kernel" if choice == REPLICATED else "dedup_kernel"
                steps.append(Step(primitive=primitive, target=name, axis=axis))
        return tuple(steps)

    def cut(self, axis: int) -> Cut | None:
        """The cut along that axis, or None where the operator runs whole."""
        choice = self.choices[axis]
        return choice if isinstance(choice, Cut) else None

    def renamed(self, names: Mapping[str, str]) -> Mode:
        """The same mode of another block's operator, under the names that are used there (`Blocks.rename`)."""

        def tensor(old: Tensor) -> Tensor:
            return replace(old, name=names.get(old.name, old.name))

        op = replace(
            self.op,
            name=names.get(self.op.name, self.op.name),
            operands=tuple(tensor(t) for t in self.op.operands),
            output=tensor(self.op.output),
        )
        return replace(self, op=op, covers=tuple(names.get(name, name) for name in self.covers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """A collective (or free slice) that changes a tensor's spec along `axes`, all in the same way."""

    tensor: str
    collective: str
    before: Spec
    after: Spec
    axes: tuple[int, ...]

    @property
    def derivation(self) -> tuple[Step, ...]:
        """The primitive that makes it, once for each axis."""
        primitive, first = PRIMITIVE_OF.get(self.collective, "split_kernel"), self.axes[0]
        change = f"{self.before[first]}→{self.after[first]}"
        return tuple(Step(primitive=primitive, target=self.tensor, dim=change, axis=axis) for axis in self.axes)

    @property
    def free(self) -> bool:
        """A local slice moves nothing."""
        return self.collective == "slice"


#: collective → the primitive that makes it (the paper's Table 2); a slice is a scatter of a broadcast value.
PRIMITIVE_OF = {
    "all_gather": "merge_gather_broadcast",
    "all_reduce": "merge_reduce_broadcast",
    "reduce_scatter": "merge_reduce_scatter",
    "all_to_all": "merge_gather_scatter",
    "broadcast": "dedup_kernel",
    "slice": "split_kernel",
}


def collective_of(before: str, after: str) -> str:
    """The collective that takes a value from one state to another along one axis; `""` where there is none.

    A value cannot become partial, nor leave one owner except by a broadcast.
    """
    if before == after or after == PARTIAL:
        return ""
    if before == OWNER:
        return "broadcast" if after == REPLICATED else ""
    if after == OWNER:
        return "slice" if before == REPLICATED else ""
    if before == PARTIAL:
        return "all_reduce" if after == REPLICATED else "reduce_scatter"
    if before == REPLICATED:
        return "slice"
    return "all_gather" if after == REPLICATED else "all_to_all"


def step_of(before: str, after: str) -> str:
    """The collective, or the half of one by way of the first coordinate: what `split_kernel` puts around a kernel
    before any merge. Shards are gathered there, summands reduced, and what lies there is scattered.
    """
    found = collective_of(before, after)
    if found or before == after or after == PARTIAL:
        return found
    if before == OWNER:
        return "scatter"
    return "reduce" if before == PARTIAL else "gather"


def make_transfer(tensor: str, before: Spec, after: Spec) -> Transfer:
    """The transfer between two specs that differ along one axis, or along several in the same way.

    Raises `ValueError` when the specs are equal or the change is not one collective.
    """
    try:
        name, axes = change(before, after)
    except ValueError as error:
        raise ValueError(f"{tensor}: {error}") from error
    return Transfer(tensor=tensor, collective=name, before=before, after=after, axes=axes)


@lru_cache(maxsize=65536)
def change(before: Spec, after: Spec) -> tuple[str, tuple[int, ...]]:
    """The one collective between two specs and its axes. Raises `ValueError` where there is none."""
    axes = tuple(i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b)
    changes = {(before[i], after[i]) for i in axes}
    if len(changes) != 1:
        raise ValueError(f"{before} → {after} is not one collective")
    ((old, new),) = changes
    name = step_of(old, new)
    if not name:
        raise ValueError(f"nothing leads from {old} to {new}")
    return name, axes


def source_of(aliases: Mapping[str, str], tensor: str) -> str:
    """The tensor that stands for `tensor`: itself, unless the identity that made it was removed. `aliases` has the
    operand of each identity that was, by its output."""
    while tensor in aliases:
        tensor = aliases[tensor]
    return tensor


def make_mode(op: Op, choices: Sequence[Choice], *, covers: tuple[str, ...] = ()) -> Mode:
    """The mode in which `op` makes the given choice along each axis."""
    operands = tuple(
        tuple(c.operands[i] if isinstance(c, Cut) else c for c in choices) for i in range(len(op.operands))
    )
    out = tuple(c.out if isinstance(c, Cut) else c for c in choices)
    return Mode(op=op, choices=tuple(choices), operands=operands, out=out, covers=covers or covered(op))
