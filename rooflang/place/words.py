"""A plan in words: `attention: batch→8, context→8; experts: expert→64; pipeline 1`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from rooflang.ir.blocks import Blocks
from rooflang.ir.cut import PARTIAL, STATES, Cut
from rooflang.ir.layout import Choice, Mode
from rooflang.ir.tensor import RESIDENT_ROLES, Role
from rooflang.place.plan import Plan

#: Cuts of a group that are told one by one; the rest is counted.
_TOLD = 2


def describe(plan: Plan, blocks: Blocks) -> str:
    """One line: for each group of operators with weights or a cache how its work is cut over the mesh, the cut that
    holds most bytes first; then the weights that are gathered where they are used, what lies outside HBM, and the
    pipeline."""
    words, sizes = blocks.graph.words, blocks.graph.sizes
    weights = blocks.counts()
    table: dict[str, Counter[str]] = {}
    tiers: Counter[str] = Counter()
    gathered = 0
    for kind in blocks.kinds:
        block = plan.blocks[kind.name]
        for tier in block.tiers.values():
            tiers[tier] += weights[kind.name]
        gathered += weights[kind.name] * sum(
            block.modes[name].op.operands[index].role is Role.WEIGHT for name, index in block.paths
        )
        for mode in block.modes.values():
            held = sum(t.bytes(sizes) for t in mode.op.operands if t.role in RESIDENT_ROLES and len(t.dims) > 1)
            if held or mode.op.kind == "attention":
                found = table.setdefault(mode.op.group, Counter())
                found[_cuts(mode, plan, words)] += round(held) * weights[kind.name] + 1
    parts = [f"{group}: {_told(found)}" for group, found in table.items()]
    parts += [f"{gathered} weights gathered"] if gathered else []
    parts += [f"{count} leaves in {tier.upper()}" for tier, count in sorted(tiers.items())]
    return "; ".join([*parts, f"pipeline {len(plan.stages)}"])


def _told(found: Counter[str]) -> str:
    cuts = [cut for cut, _ in found.most_common()]
    rest = len(cuts) - _TOLD
    more = f" (and {rest} more cut{'s' if rest > 1 else ''})" if rest > 0 else ""
    return " | ".join(cuts[:_TOLD]) + more


def _cuts(mode: Mode, plan: Plan, words: dict[str, str]) -> str:
    """`batch→8, context→8`, or `replicated`."""
    shares: dict[str, list[int]] = {}
    for axis, choice in zip(plan.mesh.axes, mode.choices):
        word = cut_word(choice, words)
        if word:
            shares.setdefault(word, []).append(axis.size)
    return ", ".join(f"{word}→{math.prod(sizes)}" for word, sizes in shares.items()) or "replicated"


def cut_word(choice: Choice, words: Mapping[str, str]) -> str:
    """The word for the dim that an axis cuts; none where every coordinate, or only the first one, runs all of it."""
    if not isinstance(choice, Cut):
        return ""
    label = choice.dim if choice.dim in words else next((s for s in choice.operands if s not in STATES), "")
    return words.get(label, label or "partial sums") if label or choice.out == PARTIAL else ""
