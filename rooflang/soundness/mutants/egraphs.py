"""Broken egglog programs: facts that are not so, rules that lose something. What they let the e-graph hold is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflang.ir.cut import CutKind
from rooflang.ir.op import signature
from rooflang.rules.theory import CODES, Theory
from rooflang.soundness.egraphs import Change, Saturations
from rooflang.soundness.mutants.record import Mutant


def _summable(theory: Theory, commands: Sequence[str]) -> Sequence[str]:
    """Rows that pass summands through, also where partial values are states."""
    more = []
    for kernel, op in enumerate(theory.kernels):
        for cut in signature(op):
            if cut.kind is CutKind.LINEAR:
                entries = " ".join(str(CODES[entry]) for entry in (*cut.operands, cut.out))
                more.append(f"(Cut{len(op.operands)} {kernel} 0 {entries})")
                more.append(f"(CanPartial {theory.term(op.output)})")
    return [*commands, *more]


def _unary_is_identity(theory: Theory, commands: Sequence[str]) -> Sequence[str]:
    """Every operator of one operand taken for a move."""
    unary = [n for n, op in enumerate(theory.kind.ops) if len(op.operands) == 1]
    return [*commands, *(f"(Identity {n})" for n in unary)]


def _axes_mixed(theory: Theory, commands: Sequence[str]) -> Sequence[str]:
    """The output's digit written over the first operand's."""
    wrong, right = "(+ s0 (* m co))", "(+ s0 (* m c0))"
    return [each.replace(right, wrong) if ":ruleset split_kernel" in each else each for each in commands]


def _never_gathered(theory: Theory, commands: Sequence[str]) -> Sequence[str]:
    """A weight that rests cut taken for the whole one."""
    gather = "(AllGather from s (View x from))"
    return [each.replace(gather, "(View x from)") if "(Kept x d)" in each else each for each in commands]


_CHANGES: dict[str, tuple[str, Change, tuple[str, ...]]] = {
    "e-graph: states pass through as summands": ("split_kernel", _summable, ("attention",)),
    "e-graph: digits of the output for those of an operand": ("split_kernel", _axes_mixed, ("mlp", "moe")),
    "e-graph: every operator of one operand an identity": ("remove_identity", _unary_is_identity, ("copied",)),
}

#: The same, of e-graphs in which weights may rest cut.
_GATHERED: dict[str, tuple[str, Change, tuple[str, ...]]] = {
    "e-graph: shards of a weight that are never gathered": (
        "merge_gather_broadcast",
        _never_gathered,
        ("mlp", "gated"),
    ),
}


def mutants() -> Iterator[Mutant]:
    """All of them."""
    for name, (rule, change, names) in _CHANGES.items():
        yield Mutant(name=name, rule=rule, claim=Saturations(names=names, change=change))
    for name, (rule, change, names) in _GATHERED.items():
        yield Mutant(name=name, rule=rule, claim=Saturations(names=names, change=change, gathered=True))
