"""A plan in words: `attention: batch→8, context→8; experts: expert→64; pipeline 1`."""

from __future__ import annotations

import math
from collections import Counter

from rooflang.ir.blocks import Blocks
from rooflang.ir.cut import PARTIAL, STATES, Cut
from rooflang.ir.layout import Mode
from rooflang.place.plan import Plan


def describe(plan: Plan, blocks: Blocks) -> str:
    """One line: for each group of operators how its work is cut over the mesh, most work first; then the pipeline."""
    words = blocks.graph.words
    weights = blocks.counts()
    table: dict[str, Counter[str]] = {}
    for kind in blocks.kinds:
        for mode in plan.blocks[kind.name].modes.values():
            if _tells(mode):
                cut = _cuts(mode, plan, words)
                table.setdefault(mode.op.group, Counter())[cut] += weights[kind.name]
    parts = [f"{group}: {' | '.join(cut for cut, _ in found.most_common())}" for group, found in table.items()]
    return "; ".join([*parts, f"pipeline {len(plan.stages)}"])


def _tells(mode: Mode) -> bool:
    """Operators whose cut a person wants to know: those with weights or a cache."""
    return any(t.role in ("weight", "kv_cache") for t in mode.op.operands) or mode.op.kind == "attention"


def _cuts(mode: Mode, plan: Plan, words: dict[str, str]) -> str:
    """`batch→8, context→8`, or `replicated`."""
    shares: dict[str, list[int]] = {}
    for axis, choice in zip(plan.mesh.axes, mode.choices):
        if isinstance(choice, Cut):
            label = choice.dim if choice.dim in words else next((s for s in choice.operands if s not in STATES), "")
            if label or choice.out == PARTIAL:
                shares.setdefault(words.get(label, label or "partial sums"), []).append(axis.size)
    return ", ".join(f"{word}→{math.prod(sizes)}" for word, sizes in shares.items()) or "replicated"
