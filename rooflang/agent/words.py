"""A placed graph in words, kernel by kernel."""

from __future__ import annotations

from rooflang.agent.world import Placed
from rooflang.ir.cut import Cut, show_spec
from rooflang.ir.layout import Choice, Transfer


def show_placed(placed: Placed, *, only: str = "") -> str:
    """One line for each kernel of each kind of block (or of one kind): how it runs along each axis, and the steps
    before it reads each operand."""
    plan, names = placed.plan, [axis.name for axis in placed.plan.mesh.axes]
    sizes = " × ".join(f"{axis.name}={axis.size}" for axis in plan.mesh.axes) or "one GPU"
    lines = [f"mesh {sizes}, stages {len(plan.stages)}"]
    for kind in placed.blocks.kinds:
        if only not in ("", kind.name):
            continue
        block = plan.blocks[kind.name]
        count = f" (and {len(kind.blocks) - 1} more alike)" if len(kind.blocks) > 1 else ""
        lines.append(f"block {kind.name or '-'}{count}")
        for name, mode in block.modes.items():
            cuts = ", ".join(_choice(axis, choice) for axis, choice in zip(names, mode.choices)) or "whole"
            lines.append(f"  {name} = {mode.op.kind}: {cuts}")
            for index, tensor in enumerate(mode.op.operands):
                if (name, index) in block.paths:
                    lines.append(f"    reads {tensor.name}: {_path(block.paths[name, index])}")
            if name in block.exits:
                lines.append(f"    leaves: {_path(block.exits[name])}")
        lines += [f"  {leaf} rests in {tier}" for leaf, tier in block.tiers.items()]
        lines += [f"  {name} is left out: {operand} is read" for name, operand in block.aliases.items()]
    lines += [f"{after} waits for {before}" for before, after in plan.control]
    lines += [f"{name} on stream {stream}" for name, stream in plan.streams.items()]
    return "\n".join(lines)


def _choice(axis: str, choice: Choice) -> str:
    if isinstance(choice, Cut):
        return f"{axis}: {choice.dim} ({choice.kind.value})"
    return f"{axis}: {'whole' if choice == 'R' else 'first coordinate'}"


def _path(steps: tuple[Transfer, ...]) -> str:
    return ", ".join(f"{step.collective} {show_spec(step.before)} → {show_spec(step.after)}" for step in steps)
