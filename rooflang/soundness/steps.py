"""Every step between layouts that the fast encoding takes, as an equation of the literal term algebra.

A law changes one axis, or several alike at once, whatever the value is on the other axes. With x in its spec before
written as scatters and broadcasts, and a partial value as any term that reduces to x (by a last step, if it is a
state), the step's e-node has to be x in its spec after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Spec, show_spec
from rooflang.rules.laws import LABEL, LAWS, Law
from rooflang.soundness.algebra import Term, bits, derived, inside_out, laws, operator, pointwise, schema, split
from rooflang.soundness.derive import STATE, SUM

#: Labels of the value that moves, by number.
LABELS = ("d", "e", "f")

_LAST = 0
_X: Term = ("Leaf", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGoal:
    """One step: law, specs, whether the partial value is a state, and the equation that says it is right."""

    law: Law
    before: Spec
    after: Spec
    state: bool
    fact: tuple[Term, Term]
    left: Term
    right: Term

    def __str__(self) -> str:
        what = "state" if self.state else "value"
        return f"{self.law.constructor} of a {what}: {show_spec(self.before)} → {show_spec(self.after)}"


def step_goals(axes: int) -> list[StepGoal]:
    """Every law on every set of axes that change alike, the other axes in any state."""
    return [goal for law in LAWS for goal in _of_law(law, axes)]


def _of_law(law: Law, axes: int) -> Iterator[StepGoal]:
    entries = (REPLICATED, PARTIAL, OWNER, *LABELS)
    for before in product(entries, repeat=axes):
        for changed in product((False, True), repeat=axes):
            moving = [axis for axis in range(axes) if changed[axis]]
            if not moving or len({before[axis] for axis in moving}) > 1 or not _fits(law.before, before[moving[0]]):
                continue
            for target in LABELS if law.after == LABEL else (law.after,):
                after = tuple(target if changed[axis] else before[axis] for axis in range(axes))
                if after != before:
                    for state in (False, True) if PARTIAL in before else (False,):
                        yield _goal(law, before, after, moving, state)


def _fits(wanted: str, entry: str) -> bool:
    return entry in LABELS if wanted == LABEL else entry == wanted


def _goal(law: Law, before: Spec, after: Spec, moving: Sequence[int], state: bool) -> StepGoal:
    start, fact = _laid(before, state)
    run = start
    for axis in moving:
        run = _moved(law, before[axis], after[axis], axis, STATE if state else SUM, run)
    left, right = _meaning(run, before, after, state)
    return StepGoal(law=law, before=before, after=after, state=state, fact=fact, left=left, right=right)


def _laid(spec: Spec, state: bool) -> tuple[Term, tuple[Term, Term]]:
    """The value in a spec, and what is known of it: a partial one is a leaf that reduces to the value."""
    whole = _view(spec)
    if PARTIAL not in spec:
        return whole, (_X, _X)
    leaf: Term = ("Leaf", 1)
    return leaf, (whole, _complete(leaf, spec, state))


def _view(spec: Spec) -> Term:
    """x as the spec says, but for axes on which it is partial."""
    term = _X
    for axis, entry in enumerate(spec):
        if entry in LABELS:
            term = ("Scatter", LABELS.index(entry), axis, term)
        elif entry != PARTIAL:
            term = ("Own" if entry == OWNER else "Broadcast", axis, term)
    return term


def _complete(term: Term, spec: Spec, state: bool) -> Term:
    """What partial pieces make together."""
    partial = [axis for axis, entry in enumerate(spec) if entry == PARTIAL]
    for axis in reversed(partial):
        term = ("Reduce", STATE if state else SUM, axis, term)
    others = bits(set(range(len(spec))) - set(partial))
    return ("Op1", _LAST, others, term) if state else term


def _moved(law: Law, before: str, after: str, axis: int, monoid: int, term: Term) -> Term:
    """The e-node of a law along one axis."""
    old = LABELS.index(before) if before in LABELS else -1
    new = LABELS.index(after) if after in LABELS else -1
    if law.collective == "slice":
        return ("KeepOwner", axis, term) if after == OWNER else ("Slice", new, axis, term)
    arguments = {
        "all_gather": ("AllGather", old, axis),
        "all_reduce": ("AllReduce", monoid, axis),
        "reduce_scatter": ("ReduceScatter", new, monoid, axis),
        "all_to_all": ("AllToAll", old, new, axis),
        "broadcast": ("BroadcastFrom", axis),
    }[law.collective]
    return (*arguments, term)


def _meaning(run: Term, before: Spec, after: Spec, state: bool) -> tuple[Term, Term]:
    """Both sides: the value in its new spec, and what the ranks have, with the last step if it was a state."""
    if PARTIAL in after:
        return _view(after), _complete(run, after, state)
    every = bits(range(len(after)))
    return _view(after), ("Op1", _LAST, every, run) if state else run


def underived_steps(
    axes: int, goals: Sequence[StepGoal] | None = None, *, along: Sequence[str] = LABELS
) -> list[StepGoal]:
    """Steps over so many axes that do not follow from the primitives; states are combined shard by shard `along` these
    labels."""
    tried = step_goals(axes) if goals is None else list(goals)
    commands = [*schema([1]), *laws(), *operator(_LAST, 1, axes, pure=True)]
    commands += [f"(Along {SUM} {label})" for label in range(len(LABELS))]
    commands += [f"(Along {STATE} {LABELS.index(label)})" for label in along]
    for axis, label in product(range(axes), map(LABELS.index, along)):
        commands += split(_LAST, axis, axes, [("Scatter", label, axis)], ("Gather", label, axis))
        commands += inside_out(_LAST, axis, axes, ("Scatter", label, axis))
        commands += pointwise(_LAST, axes, ("Slice", label, axis))
    for axis in range(axes):
        commands += inside_out(_LAST, axis, axes, ("Broadcast", axis))
        commands += pointwise(_LAST, axes, ("BroadcastFrom", axis))
        commands += pointwise(_LAST, axes, ("KeepOwner", axis))
    out = []
    for goal in tried:  # one e-graph each: what is known of the leaf differs
        (true,) = derived(commands, [(goal.left, goal.right)], [goal.fact])
        if not true:
            out.append(goal)
    return out
