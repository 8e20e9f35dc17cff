"""`verify_rules`: every rule on trial, with its mutants and lemmas, one line a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from statistics import median
from time import perf_counter
from typing import Any

from rooflang.ir.op import op_kinds
from rooflang.rules import rule, rule_names
from rooflang.soundness.cases import case_names, example, the_op
from rooflang.soundness.claims import claims, claims_of_kind
from rooflang.soundness.derive import Algebra, underived
from rooflang.soundness.lemmas import LEMMAS
from rooflang.soundness.mutants import Mutant, all_mutants
from rooflang.soundness.search import Counterexample, Property, falsify, shrunk
from rooflang.soundness.steps import step_goals, underived_steps

SCHEMA = "rooflang.soundness/1"

#: Examples after which a mutant that is still alive counts as a survivor.
MUTANT_EXAMPLES = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantReport:
    """How many examples it took to refute a mutant, seed by seed; None where none of them did."""

    name: str
    examples_to_kill: tuple[int | None, ...]

    @property
    def killed(self) -> bool:
        return None not in self.examples_to_kill

    @property
    def worst(self) -> int:
        return max((n or MUTANT_EXAMPLES for n in self.examples_to_kill), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReport:
    """The trial of one rule. `counterexample` is empty where the rule stood it."""

    rule: str
    label: str
    examples: int
    counterexample: str
    mutants: tuple[MutantReport, ...]
    lemmas: tuple[str, ...]
    lemmas_proved: bool | None

    @property
    def sound(self) -> bool:
        """Nothing refutes it, everything refutes its mutants, and no lemma fails (they may be untried)."""
        return not self.counterexample and all(m.killed for m in self.mutants) and self.lemmas_proved is not False


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivations:
    """How many modes and steps over one and two axes were to follow from the literal primitives, and which do not."""

    modes: int
    steps: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The trial of all rules, of the cuts of all operator kinds, and of the rows and steps that saturation uses."""

    rules: tuple[RuleReport, ...]
    kinds: tuple[tuple[str, int, str], ...]
    derivations: Derivations | None
    seeds: int
    seconds: float

    @property
    def sound(self) -> bool:
        missing = self.derivations.missing if self.derivations else ()
        return all(r.sound for r in self.rules) and not any(found for _, _, found in self.kinds) and not missing

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data, schema `rooflang.soundness/1`."""
        return {
            "schema": SCHEMA,
            "sound": self.sound,
            "seeds": self.seeds,
            "seconds": self.seconds,
            "rules": [_rule_json(each) for each in self.rules],
            "kinds": [{"kind": k, "examples": n, "counterexample": found} for k, n, found in self.kinds],
            "derivations": None if self.derivations is None else asdict(self.derivations),
        }


def _rule_json(report: RuleReport) -> dict[str, Any]:
    return {
        "rule": report.rule,
        "label": report.label,
        "examples": report.examples,
        "counterexample": report.counterexample,
        "lemmas": list(report.lemmas),
        "lemmas_proved": report.lemmas_proved,
        "mutants": [{"name": m.name, "examples_to_kill": list(m.examples_to_kill)} for m in report.mutants],
    }


def verify_rules(
    *,
    examples: int = 300,
    seeds: int = 5,
    names: Iterable[str] = (),
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """Put rules (default: all) on trial: so many examples of every claim, every mutant on so many seeds, every lemma;
    of all rules also the cuts of every operator kind, and the derivations. `say` is told what is being done.

    Raises `UnknownNameError` for a name that is no rule.
    """
    begin = perf_counter()
    names = tuple(names)
    chosen = names or rule_names()
    records = [rule(name) for name in chosen]
    by_rule: dict[str, list[Mutant]] = {}
    for mutant in all_mutants():
        by_rule.setdefault(mutant.rule, []).append(mutant)
    proved = _proved(say)
    reports = []
    for record in records:
        say(f"{record.name}: {examples} examples")
        found = _first(claims(record.name), examples)
        say(f"{record.name}: {len(by_rule.get(record.name, ()))} mutants")
        lemmas = tuple(lemma.name for lemma in LEMMAS if record.name in lemma.rules)
        reports.append(
            RuleReport(
                rule=record.name,
                label=record.exactness.value,
                examples=examples * len(claims(record.name)),
                counterexample=found,
                mutants=tuple(_trial(mutant, seeds) for mutant in by_rule.get(record.name, ())),
                lemmas=lemmas,
                lemmas_proved=None if proved is None else all(proved[name] for name in lemmas),
            )
        )
    everything = not names
    return Report(
        rules=tuple(reports),
        kinds=_kinds(examples, say) if everything else (),
        derivations=_derivations(say) if everything else None,
        seeds=seeds,
        seconds=perf_counter() - begin,
    )


def _first(tried: Iterable[Property], examples: int, seed: int = 0) -> str:
    """The first counterexample to one of some claims, made small; empty if there is none."""
    for claim in tried:
        found: Counterexample | None = falsify(claim, examples=examples, seed=seed)
        if found is not None:
            return shrunk(claim, found).message
    return ""


def _trial(mutant: Mutant, seeds: int) -> MutantReport:
    found = [falsify(mutant.claim, examples=MUTANT_EXAMPLES, seed=seed) for seed in range(1, seeds + 1)]
    return MutantReport(name=mutant.name, examples_to_kill=tuple(f.example if f else None for f in found))


def _proved(say: Callable[[str], None]) -> dict[str, bool] | None:
    """Which lemmas hold; None where sympy is not installed."""
    say("lemmas")
    return _verdicts()


@cache
def _verdicts() -> dict[str, bool] | None:
    try:
        return {lemma.name: lemma.holds() for lemma in LEMMAS}
    except ImportError:
        return None


def _kinds(examples: int, say: Callable[[str], None]) -> tuple[tuple[str, int, str], ...]:
    out = []
    for kind in sorted(op_kinds()):
        tried = claims_of_kind(kind)
        say(f"cuts of {kind}")
        out.append((kind, examples * len(tried), _first(tried, examples)))
    return tuple(out)


def _derivations(say: Callable[[str], None]) -> Derivations:
    modes, steps = 0, 0
    missing: list[str] = []
    for axes in (1, 2):
        for name in case_names():
            say(f"modes of {name} over {axes} axes")
            op = the_op(example(name))
            modes += len(Algebra.of(op, axes).ways()) ** axes
            missing += [f"{name}: {goal}" for goal in underived(op, axes)]
        say(f"steps over {axes} axes")
        steps += len(step_goals(axes))
        missing += map(str, underived_steps(axes))
    return Derivations(modes=modes, steps=steps, missing=tuple(missing))


def show(report: Report) -> str:
    """One line a rule, one for the cuts of all kinds, and the totals."""
    lines = [f"{'rule':23} {'examples':>8}  {'mutants':>9}  {'worst':>5}  {'label':13} lemmas"]
    lines += [_line(each) for each in report.rules]
    if report.kinds:
        tried = sum(count for _, count, _ in report.kinds)
        lines.append(f"{'cuts of all kinds':23} {tried:8}  {'':>9}  {'':>5}  {len(report.kinds)} kinds")
    if report.derivations:
        done = report.derivations
        what = f"{done.modes} modes of {len(case_names())} operators and {done.steps} steps, over one and two axes"
        lines.append(f"{'derived from primitives':23} {what}; {len(done.missing)} missing")
        lines += [f"  missing: {each}" for each in done.missing]
    wrong = [(each.rule, each.counterexample) for each in report.rules if each.counterexample]
    wrong += [(kind, found) for kind, _, found in report.kinds if found]
    wrong += [(each.rule, f"alive: {m.name}") for each in report.rules for m in each.mutants if not m.killed]
    lines += [f"\n{name} is refuted:\n{found}" for name, found in wrong]
    return "\n".join([*lines, "", _totals(report)])


def _line(each: RuleReport) -> str:
    killed = f"{sum(m.killed for m in each.mutants)} of {len(each.mutants)}"
    worst = max((m.worst for m in each.mutants), default=0)
    proof = {True: "proved", False: "REFUTED", None: "not tried: sympy is not installed"}[each.lemmas_proved]
    lemmas = f"{len(each.lemmas)} {proof}" if each.lemmas else "-"
    return f"{each.rule:23} {each.examples:8}  {killed:>9}  {worst:5}  {each.label:13} {lemmas}"


def _totals(report: Report) -> str:
    mutants = [m for each in report.rules for m in each.mutants]
    counts = [n for m in mutants for n in m.examples_to_kill if n is not None]
    examples = sum(each.examples for each in report.rules) + sum(count for _, count, _ in report.kinds)
    kills = f" (median {median(counts):g} examples, worst {max(counts)})" if counts else ""
    verdict = "sound" if report.sound else "NOT SOUND"
    return (
        f"{verdict}: {len(report.rules)} rules, {examples} examples, {sum(m.killed for m in mutants)} of {len(mutants)}"
        f" mutants killed on each of {report.seeds} seeds{kills}, {report.seconds:.0f} s"
    )
