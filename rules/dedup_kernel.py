"""dedup_kernel: one coordinate of an axis, its owner, runs the operator and broadcasts the result. The inverse of
dup_kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from rooflang.ir.cut import OWNER
from rooflang.ir.op import Op, op_kind
from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.laws import BROADCAST
from rooflang.rules.record import Egglog, Exactness, Ok, Refusal, Rule, Verdict
from rooflang.rules.text import decide_alike
from rooflang.rules.theory import CODES, Shape, Theory

NAME = "dedup_kernel"


def check(op: Op) -> Verdict:
    """May only the first coordinate of an axis run `op`? `Ok` carries its choice along that axis, `OWNER`."""
    if not op_kind(op.kind).pure:
        reason = f"{op.kind} {op.name} has side effects: each coordinate's own memory waits for its write"
        return Refusal(code="side-effect", reason=reason)
    return Ok(result=OWNER)


def facts(theory: Theory) -> Iterable[str]:
    """`(Single kernel)`: one run may stand for all. `(Owned tensor)`: the value may lie with its owner alone."""
    for kernel, op in enumerate(theory.kernels):
        if isinstance(check(op), Ok):
            yield f"(Single {kernel})"
    for tensor in theory.tensors:
        if theory.movable(tensor):
            yield f"(Owned {theory.term(tensor)})"


def rules(shape: Shape) -> tuple[str, ...]:
    owners = (decide_alike("Single", arity, CODES[OWNER], NAME) for arity in shape.arities)
    return (*owners, *BROADCAST.rules(shape, NAME))


RULE = Rule(
    name=NAME,
    summary="run an operator on one coordinate of an axis and broadcast its result: work is saved, bytes are sent",
    before="f(broadcast[a](x))",
    after="broadcast[a](f(x))",
    why="f is a function of its operands, so that the owner's result is every coordinate's result, bit for bit",
    preconditions=("the operator is free of side effects", "the result may move: it is no cache"),
    exactness=Exactness.EXACT,
    evidence="outcomes on all coordinates, with memory and generators of their own, are those of running everywhere",
    check=check,
    fires=lambda: check(mlp().op_by_name["norm"]),
    refused=lambda: check(decode_step().op_by_name["append"]),
    egglog=Egglog(rules=rules, facts=facts),
)
