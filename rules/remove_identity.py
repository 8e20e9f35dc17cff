"""remove_identity: a bit-exact move is left out, and its readers read its operand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.op import Op
from rooflang.rules.examples import decode_step
from rooflang.rules.order import Cells, overwritten
from rooflang.rules.record import Egglog, Exactness, Ok, Refusal, Rule, Verdict
from rooflang.rules.theory import Shape, Theory

NAME = "remove_identity"


def check(op: Op, *, ops: Sequence[Op] = ()) -> Verdict:
    """May `op`, one of the operators `ops` of a graph or block, be left out? `Ok` carries the name of the tensor that
    its readers read instead.

    Without `ops` nothing is taken to write in place.
    """
    if op.kind not in MOVES:
        return Refusal(
            code="no-identity", reason=f"{op.kind} {op.name} computes something; moves are {', '.join(MOVES)}"
        )
    source = op.operands[0]
    if source.dtype != op.output.dtype:
        reason = f"{op.name} stores {source.dtype} as {op.output.dtype}: it changes values"
        return Refusal(code="lossy", reason=reason)
    written, cells = overwritten(ops), Cells.of(ops)
    for tensor in (source, op.output):
        if cells.of_tensor(tensor.name) in written:
            reason = f"{tensor.name} is overwritten in place: {op.name} keeps what was, or will be, there apart"
            return Refusal(code="snapshot", reason=reason)
    return Ok(result=source.name)


def facts(theory: Theory) -> Iterable[str]:
    """`(Identity kernel)`: its output is its operand."""
    ops = theory.kind.ops
    return (f"(Identity {kernel})" for kernel, op in enumerate(ops) if isinstance(check(op, ops=ops), Ok))


def rules(shape: Shape) -> tuple[str, ...]:
    return (f"(rule ((= e (Op1 k x)) (Identity k)) ((union e x)) :ruleset {NAME})",)


RULE = Rule(
    name=NAME,
    summary="leave out a copy between memories or inside one",
    before="to_hbm(x), to_dram(x) or to_nvme(x)",
    after="x",
    why="a move copies bits, so that reading its operand reads the same values",
    preconditions=(
        "the operator is a move",
        "source and copy have one dtype",
        "neither is overwritten in place: a copy of what will be overwritten is a snapshot",
    ),
    exactness=Exactness.EXACT,
    evidence="readers of the operand read the same bits, in every order of operators that write in place",
    check=check,
    fires=lambda: check(decode_step().op_by_name["copy"]),
    refused=lambda: check(decode_step().op_by_name["attend"]),
    egglog=Egglog(rules=rules, facts=facts),
)
