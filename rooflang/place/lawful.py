"""Is every step of a plan one that its rule takes? What a signature allows by itself, a block may forbid: partial
values that are no summands, caches that stay where they are, copies of what is overwritten."""

from __future__ import annotations

from collections.abc import Sequence

from rooflang.errors import PlacementError
from rooflang.ir.blocks import BlockKind
from rooflang.ir.cut import Cut
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.reference import reference
from rooflang.ir.tensor import Tensor
from rooflang.place.plan import BlockPlan
from rooflang.rules.laws import ALL_GATHER, REDUCE_SCATTER
from rooflang.rules.record import Refusal
from rooflang.rules.remove_identity import check as check_removal
from rooflang.rules.theory import Theory, unsummable


def check_lawful(kind: BlockKind, block: BlockPlan, axes: int) -> None:
    """Raise `PlacementError` for the first kernel, transfer or removed identity that its rule refuses."""
    labels = tuple(dict.fromkeys(label for op in kind.ops for label in op.labels))
    theory = Theory(kind=kind, axes=axes, kernels=kind.ops, pairs=(), labels=labels)
    for name, operand in block.aliases.items():
        _check_alias(theory, name, operand)
    for name, mode in block.modes.items():
        for index in range(len(mode.op.operands)):
            _check_path(theory, block.paths.get((name, index), ()), f"{kind.name}: {name} reads operand {index}")
        _check_mode(theory, mode)
    for name, steps in block.exits.items():
        _check_path(theory, steps, f"{kind.name}: exit of {name}")


def _check_alias(theory: Theory, name: str, operand: str) -> None:
    op = theory.producer[name]
    index = [tensor.name for tensor in op.operands].index(operand)
    verdict = check_removal(op, ops=theory.kind.ops, operand=index)
    if isinstance(verdict, Refusal):
        raise PlacementError(f"remove_identity of {name}: {verdict.reason}", where=theory.kind.name)


def _check_mode(theory: Theory, mode: Mode) -> None:
    """No operand is read as a summand that is none."""
    for axis, choice in enumerate(mode.choices):
        tensor = unsummable(mode.op, choice, theory.partials) if isinstance(choice, Cut) else None
        if tensor is not None:
            raise PlacementError(
                f"{mode.op.name} reads summands of {tensor.name} on axis {axis}, whose partial values are none",
                where=theory.kind.name,
                expected="partial values that are added up",
            )


def _check_path(theory: Theory, steps: Sequence[Transfer], where: str) -> None:
    for step in steps:
        if step.tensor not in theory.number:
            raise PlacementError(f"{step.collective} of {step.tensor}, which is not in the block", where=where)
        tensor = theory.tensors[theory.number[step.tensor]]
        gathers = step.collective == ALL_GATHER.collective and tensor in theory.weights
        if not theory.movable(tensor) and not gathers:
            raise PlacementError(f"{step.collective} of {tensor.name}, which stays as it is laid", where=where)
        whole = _whole(theory, tensor) & {step.after[axis] for axis in step.axes}
        if step.collective == REDUCE_SCATTER.collective and whole:
            raise PlacementError(
                f"partial states of {tensor.name} cannot be combined shard by shard along {', '.join(whole)}",
                where=where,
            )


def _whole(theory: Theory, tensor: Tensor) -> frozenset[str]:
    """Labels of a tensor that its partial states do not have: a list of candidates is no list of shards of ids."""
    op = theory.producer.get(tensor.name)
    fold = None if op is None else reference(op.kind).fold
    if op is None or fold is None or theory.partials[tensor.name] == {"sum"}:
        return frozenset()
    return frozenset(tensor.dims) - {label for dims in fold.dims(op) for label in dims}
