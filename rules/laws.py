"""The laws by which a value's layout changes along an axis, in one table: four merges, one broadcast, one slice.

A law takes a value from one state to another. Along one axis it is one step; along several axes at once, changing alike
on each, it is one joint collective over their product (links of several fabric levels work at the same time, where
steps would add up).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, STATES, Spec, show_spec
from rooflang.ir.layout import collective_of, make_transfer
from rooflang.ir.tensor import LEAF_ROLES, RESIDENT_ROLES, Role, Tensor
from rooflang.rules.record import Egglog, Exactness, Ok, Refusal, Rule, Verdict
from rooflang.rules.theory import BASE, CODES, Shape, Theory

#: Stands for any dim label in the states of a law.
LABEL = "label"


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """`constructor` is the e-node that the law makes, `before` and `after` are states: R, P, O or `label`."""

    constructor: str
    collective: str
    before: str
    after: str

    @property
    def _digits(self) -> tuple[str, str]:
        before = "d" if self.before == LABEL else str(CODES[self.before])
        after = "c" if self.after == LABEL else str(CODES[self.after])
        return before, after

    @property
    def _guards(self) -> str:
        return {
            (PARTIAL, LABEL): "(Spread x c)",
            (PARTIAL, REPLICATED): "(CanPartial x)",
            (LABEL, LABEL): "(Has x c) (Has x d) (!= c d)",
            (LABEL, REPLICATED): "(Has x d)",
            (REPLICATED, LABEL): "(Has x c)",
            (OWNER, REPLICATED): "(Owned x)",
            (REPLICATED, OWNER): "(Owned x)",
        }[self.before, self.after]

    def rules(self, shape: Shape, ruleset: str) -> tuple[str, ...]:
        """One egglog rule per number of axes that change alike: a wanted view may come from a view one law away."""
        return tuple(self._rule(width, ruleset) for width in range(1, shape.axes + 1))

    def of_weights(self, shape: Shape, ruleset: str) -> tuple[str, ...]:
        """The same for weights where they may be gathered: of a leaf nothing but that."""
        widths = range(1, shape.axes + 1) if shape.gathered else ()
        return tuple(self._rule(width, ruleset, "(Kept x d)") for width in widths)

    def _rule(self, width: int, ruleset: str, guards: str = "") -> str:
        before, after = self._digits
        axes = " ".join(f"(Axis i{n} m{n})" for n in range(width))
        order = "".join(f" (< i{a} i{b})" for a, b in pairwise(range(width)))
        digits = " ".join(f"(= {after} (% (/ s m{n}) {BASE}))" for n in range(width))
        scale = "m0"
        for n in range(1, width):
            scale = f"(+ {scale} m{n})"
        return (
            f"(rule ((= e (View x s)) {axes}{order} {digits} {guards or self._guards})\n"
            f"      ((let from (+ s (* {scale} (- {before} {after}))))\n"
            f"       (union e ({self.constructor} from s (View x from)))) :ruleset {ruleset})"
        )


ALL_GATHER = Law(constructor="AllGather", collective="all_gather", before=LABEL, after=REPLICATED)
ALL_REDUCE = Law(constructor="AllReduce", collective="all_reduce", before=PARTIAL, after=REPLICATED)
REDUCE_SCATTER = Law(constructor="ReduceScatter", collective="reduce_scatter", before=PARTIAL, after=LABEL)
ALL_TO_ALL = Law(constructor="AllToAll", collective="all_to_all", before=LABEL, after=LABEL)
BROADCAST = Law(constructor="Broadcast", collective="broadcast", before=OWNER, after=REPLICATED)
SLICE = Law(constructor="Slice", collective="slice", before=REPLICATED, after=LABEL)
KEEP_OWNER = Law(constructor="Slice", collective="slice", before=REPLICATED, after=OWNER)

LAWS = (ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST, SLICE, KEEP_OWNER)

_OR_WEIGHT = ", or a weight that rests cut and is whole while a kernel uses it"

_EVIDENCE = (
    "every rank gets what the two primitives give it, for sums, log-sum-exp states and candidates, on uneven and empty "
    "shards; the step is derived beside every state of another axis"
)


def check_transfer(
    law: Law,
    tensor: Tensor,
    before: Spec,
    after: Spec,
    *,
    spread: Collection[str] | None = None,
    also_read: Collection[str] = (),
) -> Verdict:
    """May the law take the tensor from one spec to the other, on one axis or several alike? `Ok` has the `Transfer`.

    `spread`: labels along which partial values may be combined shard by shard (`Theory.spread`; default: any dim).
    `also_read`: operators that read what lies between the two primitives that the law merges.
    """
    if also_read:
        reason = f"{', '.join(also_read)} reads {tensor.name} as it is in between: merged, nobody would have it whole"
        return Refusal(code="still-read", reason=reason)
    if tensor.role in LEAF_ROLES | RESIDENT_ROLES and not (law is ALL_GATHER and tensor.role is Role.WEIGHT):
        return Refusal(code="resident", reason=f"{tensor.name} is a {tensor.role.value}: it stays as it is laid out")
    changes = {(old, new) for old, new in zip(before, after, strict=True) if old != new}
    if len(changes) != 1:
        what = f"from {show_spec(before)} to {show_spec(after)}"
        return Refusal(code="not-one-step", reason=f"{what} is {len(changes)} different changes; one at a time")
    ((old, new),) = changes
    if (_state(old), _state(new)) != (law.before, law.after):
        return _mismatch(law, old, new)
    for entry in (old, new):
        if entry not in STATES and entry not in tensor.dims:
            return Refusal(code="no-such-dim", reason=f"{tensor.name} ({' '.join(tensor.dims)}) has no dim {entry!r}")
    if law is REDUCE_SCATTER and spread is not None and new not in spread:
        reason = f"the partial states of {tensor.name} cannot be combined shard by shard along {new!r}"
        return Refusal(code="whole-rows", reason=reason)
    return Ok(result=make_transfer(tensor.name, before, after))


def merge_rule(
    name: str,
    law: Law,
    *,
    summary: str,
    before: str,
    after: str,
    why: str,
    preconditions: tuple[str, ...],
    exactness: Exactness,
    good: tuple[Tensor, Spec, Spec],
    bad: tuple[Tensor, Spec, Spec],
    facts: Callable[[Theory], Iterable[str]] = lambda theory: (),
    weights: bool = False,
) -> Rule:
    """The record of a merge: its law, and one example each that it takes and refuses (tensor, spec before, spec after).

    `facts` are those that this merge's rules match and no other rule does. `weights`: it takes weights at rest, too.
    """
    check = partial(check_transfer, law)
    stay = "inputs and resident caches" if weights else "leaves and resident caches"
    return Rule(
        name=name,
        summary=summary,
        before=before,
        after=after,
        why=why,
        preconditions=(*preconditions, f"an activation{_OR_WEIGHT if weights else ''}: {stay} stay where they are"),
        exactness=exactness,
        evidence=_EVIDENCE,
        check=check,
        fires=lambda: check(*good),
        refused=lambda: check(*bad),
        egglog=Egglog(
            rules=lambda shape: (*law.rules(shape, name), *(law.of_weights(shape, name) if weights else ())),
            facts=facts,
        ),
    )


def _state(entry: str) -> str:
    return entry if entry in STATES else LABEL


def _mismatch(law: Law, old: str, new: str) -> Refusal:
    """Why another law, or none, leads from `old` to `new`."""
    other = collective_of(old, new)
    if law.before == PARTIAL and old not in STATES:
        reason = f"the value is cut along {old!r}, not partial: its shards are to be gathered, not added up"
        return Refusal(code="not-partial", reason=reason)
    if law.before == LABEL and old == PARTIAL:
        reason = "the value is partial, not cut: its pieces are to be combined, not put side by side"
        return Refusal(code="partial", reason=reason)
    if not other:
        return Refusal(code="no-law", reason=f"no collective leads from {old} to {new}")
    return Refusal(code="other-law", reason=f"{old} → {new} is {other}, not {law.collective}")
