"""Products that share their input, as one kernel: the graph gains their joint product, of which each becomes a part."""

from __future__ import annotations

from dataclasses import replace

from rooflang.agent.actions import Action
from rooflang.agent.kernels import check_unfused
from rooflang.agent.parting import carried
from rooflang.agent.sites import Site, operator_site
from rooflang.agent.state import Edits, Read
from rooflang.agent.verdicts import asked, needs
from rooflang.agent.world import Placed
from rooflang.errors import RefusedError
from rooflang.ir.cut import Cut
from rooflang.ir.joint import Joint, joint_of
from rooflang.ir.kinds.fused import SHARED_INPUT, fuse
from rooflang.ir.layout import Choice, Transfer
from rooflang.ir.op import Op, signature


def joins(placed: Placed, action: Action) -> bool:
    """Is it a fusion of products side by side, none of which reads another one?"""
    names = [action.target, *filter(None, action.inner.split(","))]
    if action.primitive != "fuse_kernels" or action.dim or len(names) < 2:
        return False
    known = placed.world.graph.op_by_name
    ops = [known[name] for name in names if name in known]
    made = {op.output.name for op in ops}
    return len(ops) == len(names) and all(
        op.kind == "matmul" and made.isdisjoint(t.name for t in op.operands) for op in ops
    )


def join(placed: Placed, action: Action) -> Placed:
    """The placed graph in which the target and the operators `inner`, with commas between them, are parts of their
    joint product, in the blocks that the action picks. They have to be cut alike. Raises `RefusedError`."""
    needs(action, "inner")
    site, op = operator_site(placed.world, placed.state, action)
    others = [site.own(name) for name in action.inner.split(",")]
    for other in others:
        asked(action, op, other)
        check_unfused(site, op, other)
    products = sorted((op, *others), key=site.kind.ops.index)
    for product in products:
        if product.output.name in site.edits.fused:
            raise RefusedError("fused", f"{product.name} is a fused kernel already")
    choices = _choices(site, products)
    targets = tuple(tuple(site.blocks.rename[label][p.name] for p in products) for label in site.kind.blocks)
    world = placed.world.parted(Joint(targets=targets))
    blocks = world.blocks(site.state.alike)
    state = carried(site.state, site.blocks, blocks)
    edits = _joined(state.edits[site.kind.name], products, choices)
    return world.settled(state.edited(site.kind.name, edits))


def _joined(edits: Edits, products: list[Op], choices: dict[str, tuple[Choice, ...]]) -> Edits:
    joint = joint_of(products).output.name
    made = {op.output.name: number for number, op in enumerate(products)}
    kept: dict[Read, tuple[Transfer, ...]] = {}
    for (name, index), steps in edits.steps.items():
        read = (joint, index and index + made[name]) if name in made and index >= 0 else (name, index)
        kept.setdefault(read, steps)
    return replace(
        edits,
        choices={**{name: each for name, each in edits.choices.items() if name not in made}, **choices},
        fused={**edits.fused, **dict.fromkeys(made, (joint,))},
        steps=kept,
    )


def _choices(site: Site, products: list[Op]) -> dict[str, tuple[Choice, ...]]:
    """What the joint product does along each axis, which is what each of the products did, and how parts read that."""
    joint = joint_of(products)
    rows = signature(joint)
    whole: list[Choice] = []
    for axis, ways in enumerate(zip(*(site.choices(op) for op in products), strict=True)):
        one, *others = ways
        row = next((row for row in rows if isinstance(one, Cut) and row.dim == one.dim), None)
        alike = all(isinstance(one, Cut) and isinstance(other, Cut) and other.dim == one.dim for other in others)
        if not isinstance(one, Cut) and all(other == one for other in others):
            whole.append(one)
        elif row is not None and alike:
            whole.append(row)
        else:
            raise RefusedError(
                "cut-apart",
                f"{' and '.join(op.name for op in products)} are not cut alike, by rows or by what they sum over, on"
                f" axis {axis}",
                hint="cut them alike first, or run them whole",
            )
    found = {joint.output.name: tuple(whole)}
    for op in products:
        part = fuse(SHARED_INPUT, op, joint)
        found[op.output.name] = tuple(_reading(part, choice) for choice in whole)
    return {name: each for name, each in found.items() if any(isinstance(choice, Cut) for choice in each)}


def _reading(part: Op, choice: Choice) -> Choice:
    if not isinstance(choice, Cut):
        return choice
    return next(row for row in signature(part) if row.operands == (choice.out,))
