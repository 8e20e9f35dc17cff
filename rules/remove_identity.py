"""remove_identity: a bit-exact move, or a recall, is left out, and its readers read its operand; of a recall either
one: what is computed anew, or the cache that was kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.kinds.recall import RECALL
from rooflang.ir.op import Op, op_kind
from rooflang.rules.examples import decode_step
from rooflang.rules.order import Cells, overwritten
from rooflang.rules.record import Egglog, Exactness, Ok, Refusal, Rule, Verdict
from rooflang.rules.theory import Shape, Theory

NAME = "remove_identity"


def check(op: Op, *, ops: Sequence[Op] = (), operand: int = 0) -> Verdict:
    """May `op`, one of the operators `ops` of a graph or block, be left out? `Ok` carries the name of the tensor, its
    operand number `operand`, that its readers read instead.

    Without `ops` nothing is taken to write in place.
    """
    if op.kind not in (*MOVES, RECALL):
        return Refusal(
            code="no-identity", reason=f"{op.kind} {op.name} computes something; moves are {', '.join(MOVES)}"
        )
    source = op.operands[operand]
    if source.dtype != op.output.dtype:
        reason = f"{op.name} stores {source.dtype} as {op.output.dtype}: it changes values"
        return Refusal(code="lossy", reason=reason)
    if source.dims != op.output.dims:
        reason = f"{op.name} stores {' '.join(source.dims)} as {' '.join(op.output.dims)}, as its readers expect"
        return Refusal(code="reordered", reason=reason)
    written, cells = overwritten(ops), Cells.of(ops)
    if operand and not _appended_once(source.name, ops):
        reason = f"{op.name} recalls {source.name} as it is after this step's append alone, which is not how it stays"
        return Refusal(code="snapshot", reason=reason)
    for tensor in (op.output,) if operand else (source, op.output):
        if cells.of_tensor(tensor.name) in written:
            reason = f"{tensor.name} is overwritten in place: {op.name} keeps what was, or will be, there apart"
            return Refusal(code="snapshot", reason=reason)
    return Ok(result=source.name)


def _appended_once(cache: str, ops: Sequence[Op]) -> bool:
    """Is the tensor what the only writer of its memory leaves there?"""
    cells = Cells.of(ops)
    writers = [op.output.name for op in ops if op_kind(op.kind).in_place is not None
               and cells.of_tensor(op.output.name) == cells.of_tensor(cache)]  # fmt: skip
    return writers == [cache]


def facts(theory: Theory) -> Iterable[str]:
    """`(Identity kernel)`: its output is its operand. `(Recall kernel i)`: its output is its operand i."""
    ops = theory.kind.ops
    for kernel, op in enumerate(ops):
        if op.kind == RECALL:
            yield from (f"(Recall {kernel} {i})" for i in (0, 1) if isinstance(check(op, ops=ops, operand=i), Ok))
        elif isinstance(check(op, ops=ops), Ok):
            yield f"(Identity {kernel})"


def rules(shape: Shape) -> tuple[str, ...]:
    found = [f"(rule ((= e (Op1 k x)) (Identity k)) ((union e x)) :ruleset {NAME})"]
    if 2 in shape.arities:
        found += [
            f"(rule ((= e (Op2 k x y)) (Recall k {index})) ((union e {operand})) :ruleset {NAME})"
            for index, operand in enumerate("xy")
        ]
    return tuple(found)


RULE = Rule(
    name=NAME,
    summary="leave out a copy between memories or inside one; recompute a value, or read the cache that holds it",
    before="to_hbm(x), to_dram(x), to_nvme(x) or recall(x, cache)",
    after="x, or the cache",
    why=(
        "a move copies bits, so that reading its operand reads the same values; a recalled cache holds what earlier "
        "steps computed in the same way and appended"
    ),
    preconditions=(
        "the operator is a move, or a recall whose cache every step appends to",
        "source and copy have one dtype, and their dims in one order",
        "neither is overwritten in place: a copy of what will be overwritten is a snapshot",
    ),
    exactness=Exactness.EXACT,
    evidence="readers of the operand read the same bits, in every order of operators that write in place",
    check=check,
    fires=lambda: check(decode_step().op_by_name["copy"]),
    refused=lambda: check(decode_step().op_by_name["attend"]),
    egglog=Egglog(rules=rules, facts=facts),
)
