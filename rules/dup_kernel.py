"""dup_kernel: every coordinate of an axis runs the whole operator, instead of one that broadcasts its result."""

from __future__ import annotations

from collections.abc import Iterable

from rooflang.ir.cut import REPLICATED
from rooflang.ir.op import Op, op_kind
from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.record import Egglog, Exactness, Ok, Refusal, Rule, Verdict
from rooflang.rules.text import decide_alike
from rooflang.rules.theory import CODES, Shape, Theory

NAME = "dup_kernel"


def check(op: Op) -> Verdict:
    """May every coordinate of an axis run `op`? `Ok` carries its choice along that axis, `REPLICATED`."""
    if not op_kind(op.kind).pure:
        reason = f"{op.kind} {op.name} has side effects: two copies would write the same memory"
        return Refusal(code="side-effect", reason=reason)
    return Ok(result=REPLICATED)


def facts(theory: Theory) -> Iterable[str]:
    """`(Pure kernel)`: the kernel may be run more than once."""
    return (f"(Pure {kernel})" for kernel, op in enumerate(theory.kernels) if isinstance(check(op), Ok))


def rules(shape: Shape) -> tuple[str, ...]:
    return tuple(decide_alike("Pure", arity, CODES[REPLICATED], NAME) for arity in shape.arities)


RULE = Rule(
    name=NAME,
    summary="run an operator on every coordinate of an axis: work is repeated, nothing is sent",
    before="broadcast[a](f(x))",
    after="f(broadcast[a](x))",
    why="f is a function of its operands, so equal operands give equal results on every coordinate, bit for bit",
    preconditions=("the operator is free of side effects",),
    exactness=Exactness.EXACT,
    evidence=(
        "run once or several times an operator leaves the same values, memory and generator; exact evaluation on ranks"
    ),
    check=check,
    fires=lambda: check(mlp().op_by_name["norm"]),
    refused=lambda: check(decode_step().op_by_name["append"]),
    egglog=Egglog(rules=rules, facts=facts),
)
