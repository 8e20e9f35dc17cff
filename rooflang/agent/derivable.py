"""Could the search have found this plan? Each kernel and each step of a plan is looked up in the saturated e-graphs of
its blocks.

The answer is `yes` where all of them are there and the plan is of the form that is extracted: one plan for each kind of
block, in program order. It is `not derivable`, with the first thing that is not there, where an e-graph that saturated
lacks something, or where the plan is of another form; and `limit hit` where a saturation ended before its end, so that
nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rooflang.cost.tiers import HBM
from rooflang.eqsat import FrozenBlock, Limits, StopReason, saturate
from rooflang.ir.blocks import BlockKind, Blocks, split_blocks
from rooflang.ir.cut import show_spec
from rooflang.ir.joint import Joint
from rooflang.ir.layout import Mode, Transfer
from rooflang.place.plan import BlockPlan, Plan

#: Things that are missing which are named one by one.
_NAMED = 3


class Verdict(StrEnum):
    """The three answers."""

    YES = "yes"
    NO = "not derivable"
    LIMIT = "limit hit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivability:
    """An answer, and why; no reason is needed for a yes."""

    verdict: Verdict
    reason: str = ""

    def to_json(self) -> dict[str, str]:
        """The answer as JSON data."""
        return {"verdict": self.verdict.value, "reason": self.reason}


def derivable(plan: Plan, blocks: Blocks, *, limits: Limits | None = None) -> Derivability:
    """Is a plan over these blocks one that can be extracted from their e-graphs, saturated within `limits` over as many
    axes as its mesh has? (Three axes or more take the longer.)"""
    form = _form(plan, blocks)
    if form:
        return Derivability(verdict=Verdict.NO, reason=form)
    axes, within = len(plan.mesh.axes), limits or Limits()
    unsure = ""
    for kind in blocks.kinds:
        block, leaves = plan.blocks[kind.name], {leaf.name for leaf in kind.leaves}
        gathered = any(step.tensor in leaves for path in block.paths.values() for step in path)
        frozen = saturate(kind, axes, limits=within, gathered=gathered)
        absent = list(_absent(frozen, kind, block, plan, blocks))
        if absent and frozen.stats.stop is StopReason.SATURATED:
            return Derivability(verdict=Verdict.NO, reason=f"the e-graph of {_name(kind)} lacks {_list(absent)}")
        if absent and not unsure:
            why = frozen.stats.stop.value.replace("_", " ")
            unsure = f"the e-graph of {_name(kind)} ended at the {why} without {_list(absent)}"
    return Derivability(verdict=Verdict.LIMIT if unsure else Verdict.YES, reason=unsure)


def _form(plan: Plan, blocks: Blocks) -> str:
    """Why a plan is of no form that is extracted; empty if it is of one."""
    for apart in plan.apart:
        if isinstance(apart, Joint):
            continue
        target, dim = apart.targets[0], apart.dim
        return f"{target} is taken apart by ranges of {dim}, and an e-graph has the operators of the graph"
    if plan.control or plan.streams:
        return "control edges and streams change no term: what is extracted runs in program order, on one stream"
    whole = split_blocks(blocks.graph)
    for kind in whole.kinds:
        first, *others = dict.fromkeys(blocks.kind_of[label] for label in kind.blocks)
        for other in others:
            if _shape(blocks.by_name[first], plan) != _shape(blocks.by_name[other], plan):
                one, rest = (blocks.by_name[name].blocks for name in (first, other))
                return (
                    f"{_some(rest)} and {_some(one)} are one kind of block, and are laid in two ways: what is extracted"
                    " is one plan for each kind"
                )
    return ""


def _shape(kind: BlockKind, plan: Plan) -> Mapping[str, Any]:
    """The plan of a kind without the names of its representative: operators, leaves and ports by their numbers."""
    block = plan.blocks[kind.name]
    op = {each.output.name: number for number, each in enumerate(kind.ops)}
    name = {each.name: number for number, each in enumerate(kind.ops)}
    leaf = {each.name: number for number, each in enumerate(kind.leaves)}
    port = {each.name: number for number, each in enumerate(kind.outputs)}
    ways = {
        "paths": {(op[made], index): _specs(path) for (made, index), path in block.paths.items()},
        "exits": {port[made]: _specs(path) for made, path in block.exits.items()},
    }
    return {
        **ways,
        "modes": {op[made]: (mode.choices, [name[each] for each in mode.covers]) for made, mode in block.modes.items()},
        "tiers": {leaf[each]: tier for each, tier in block.tiers.items()},
        "aliases": {op[made]: op.get(operand, -1) for made, operand in block.aliases.items()},
    }


def _specs(path: tuple[Transfer, ...]) -> list[Any]:
    return [(step.before, step.after) for step in path]


def _absent(frozen: FrozenBlock, kind: BlockKind, block: BlockPlan, plan: Plan, blocks: Blocks) -> Iterator[str]:
    """What a block's plan has that its e-graph has not."""
    paths = (*block.paths.values(), *block.exits.values())
    for each in frozen.missing(block.modes.values(), (step for path in paths for step in path)):
        yield _told(each)
    held = {(hold.leaf, hold.spec, hold.tier) for hold in frozen.holds}
    for kernel, mode in block.modes.items():
        for index, tensor in enumerate(mode.op.operands):
            rests, spec = tensor in kind.leaves, block.rests(kernel, index)
            if rests and (tensor.name, spec, block.tiers.get(tensor.name, HBM)) not in held:
                yield f"{tensor.name} at rest as {show_spec(spec)}"
    arrive = {(arrival.port, arrival.spec) for arrival in frozen.arrivals}
    for port in kind.inputs:
        spec = plan.boundary[blocks.port_group[kind.name, port.name]]
        if (port.name, spec) not in arrive:
            yield f"{port.name} arriving as {show_spec(spec)}"


def _told(missing: Mode | Transfer) -> str:
    if isinstance(missing, Transfer):
        steps = f"{show_spec(missing.before)} → {show_spec(missing.after)}"
        return f"{missing.collective} of {missing.tensor}, {steps}"
    return f"{missing.op.name} run {' '.join(map(show_spec, missing.operands))} → {show_spec(missing.out)}"


def _list(absent: list[str]) -> str:
    more = len(absent) - _NAMED
    return "; ".join(absent[:_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _name(kind: BlockKind) -> str:
    return kind.blocks[0] or "the graph"


def _some(labels: tuple[str, ...]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} … {labels[-1]}"
