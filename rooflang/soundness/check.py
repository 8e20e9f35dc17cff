"""`check_rule`: one call puts a rule, or the cuts of an operator kind, on trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rooflang.errors import GraphError, LimitReached, UnknownNameError
from rooflang.ir.graph import Graph
from rooflang.ir.op import OpKind, op_kinds
from rooflang.rules import rule_names
from rooflang.rules.record import Rule
from rooflang.soundness.applied import Applied, Site, sites
from rooflang.soundness.cases import the_op
from rooflang.soundness.claims import claims, claims_of_kind
from rooflang.soundness.search import Counterexample, Property, falsify, shrunk
from rooflang.soundness.splits import Splits, allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a trial found: `counterexample` is None where the subject stood it, else the smallest one found."""

    subject: str
    examples: int
    counterexample: Counterexample | None

    @property
    def sound(self) -> bool:
        """No example refuted it. That is no proof, but mutants of our own rules last 100 examples at most."""
        return self.counterexample is None

    def __str__(self) -> str:
        if self.counterexample is None:
            return f"{self.subject} stood {self.examples} examples"
        return f"{self.subject} is refuted by example {self.counterexample.example}:\n{self.counterexample.message}"


def check_rule(
    subject: Rule | OpKind | str,
    example: Graph | None = None,
    *,
    at: Sequence[Site] = (),
    examples: int = 300,
    seed: int = 0,
) -> Checked:
    """Property-test a rule or an operator kind: both sides of each application are evaluated exactly, on random
    extents, shards and ranks, and compared. A counterexample comes back as small as it can be made.

    - A name of one of our rules or registered operator kinds needs nothing else.
    - An `OpKind` of your own needs an `example`: a graph of one operator of that kind. Each cut of its signature is
      tried. It has to have a reference (`rooflang.ir.reference`), as everything has that is to be evaluated.
    - A `Rule` of your own needs an `example`: a graph in which it applies somewhere. `at` lists the arguments of its
      check (default: all that fit their types, see `applied.sites`); `Applied` says what a verdict may carry.

    Raises `UnknownNameError` for an unknown name, `GraphError` for an example that does not fit or in which the rule
    applies nowhere.
    """
    name, tried = _claims(subject, example, at)
    for claim in tried:
        try:
            found = falsify(claim, examples=examples, seed=seed)
        except LimitReached as error:
            raise GraphError(
                f"{name} applies too rarely: {error.what}", hint="give it an example that it fires on"
            ) from error
        if found is not None:
            return Checked(subject=name, examples=found.example, counterexample=shrunk(claim, found))
    return Checked(subject=name, examples=examples * len(tried), counterexample=None)


def _claims(subject: Rule | OpKind | str, example: Graph | None, at: Sequence[Site]) -> tuple[str, Sequence[Property]]:
    if isinstance(subject, str):
        if subject in rule_names():
            return subject, claims(subject)
        if subject not in op_kinds():
            raise UnknownNameError("rule or operator kind", subject, (*rule_names(), *op_kinds()))
        return subject, claims_of_kind(subject) if example is None else _of_kind(subject, example)
    if example is None:
        raise GraphError(
            f"{subject.name} needs an example", expected="a graph in which there is something to try it on"
        )
    if isinstance(subject, OpKind):
        return subject.name, _of_kind(subject.name, example)
    found = at or sites(subject.check, example)
    if not found:
        raise GraphError(f"{subject.name} applies nowhere in {example.name}")
    return subject.name, (Applied(rule=subject, graph=example, sites=found),)


def _of_kind(kind: str, example: Graph) -> Sequence[Property]:
    ops = [op for op in example.ops if op.kind == kind]
    if not ops:
        raise GraphError(f"no operator of {example.name} is of the kind {kind!r}")
    alone = [replace(example, ops=(op,), outputs=(op.output.name,)) for op in ops]
    cut = [graph for graph in alone if allowed(the_op(graph))]
    return (Splits(cases=tuple(cut)),) if cut else ()
