"""Macro actions: parallelisms as scripts of primitives.

Each reads the placed graph, takes primitives one by one past the same checks as everybody, and leaves them in the
journal under its own words. A macro is taken as a whole or, where a primitive is refused, not at all. Like a person it
goes by the signatures of the operators, not by the names of a model; what it cannot cut it leaves as it is.

    pipeline stages=4 mesh=8          data_parallel axis=x            expert_parallel axis=x
    tensor_parallel axis=x            context_parallel axis=y         replicate_experts axis=x
    keep_caches memory=dram           recompute target=q axis=x       disaggregate first=prefill*
    merge_all
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rooflang.agent.actions import GRAPH, LONGEST_NAME, Action, make_action
from rooflang.agent.script import Script
from rooflang.errors import RefusedError, UnknownNameError, ValueRangeError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.kinds.moe import expert_label
from rooflang.ir.op import Op, signature
from rooflang.ir.tensor import RESIDENT_ROLES, Role

if TYPE_CHECKING:
    from rooflang.agent.session import Session

BATCH, SEQ = "batch", "seq"


def pipeline(script: Script, stages: str, mesh: str = "", layers: str = "") -> None:
    """PP: so many stages, each on a mesh of its own; layers spread evenly, or as given (3,4x14,2)."""
    given = {"stages": stages, "mesh": mesh, "layers": layers}
    script.take(make_action("set_compute", GRAPH, {name: text for name, text in given.items() if text}))


def data_parallel(script: Script, axis: str = "x", dim: str = BATCH, ops: str = "*", only: str = "") -> None:
    """DP: every coordinate of the axis does its share of the requests (or of another dim) in every operator that the
    dim can be cut in; what passes between blocks lies so too."""
    for each in axis.split(","):
        for op in script.operators(ops, only):
            if _row(op, dim, CutKind.PAR, CutKind.SUM, CutKind.SCAN):
                script.split(op, dim, each, only)
        if not only:
            _lay_ports(script, each, dim, ops)
    script.merge(axis)


def expert_parallel(script: Script, axis: str = "x", ops: str = "*", only: str = "") -> None:
    """EP: experts are cut over the axis. Where tokens are cut there too, dispatch and combine are routed: they send
    each token to its experts and the results back. Where every coordinate has all tokens, each runs its experts on them
    and the results are summed up."""
    for each in axis.split(","):
        for op in script.operators(ops, only):
            if op.kind in ("dispatch", "combine"):
                now = script.choice(op, each, only)
                routes = [row for row in signature(op) if row.kind is CutKind.ROUTE]
                fitting = [row for row in routes if isinstance(now, Cut) and row.dim == now.dim]
                if fitting:
                    script.route(op, fitting[0], each, only)
                else:
                    script.split(op, expert_label(op), each, only)
            elif _is_routed(op) and _experts(script, op):
                script.split(op, _experts(script, op), each, only)
    script.merge(axis)


def replicate_experts(script: Script, axis: str = "x", dim: str = "", ops: str = "*", only: str = "") -> None:
    """Every coordinate of the axis has all experts, for its share of the tokens: the axis no longer carries what is
    dispatched. It is what node-local replication does with an axis over nodes."""
    tokens = dim or (SEQ if SEQ in script.sizes else BATCH)
    for each in axis.split(","):
        for op in script.operators(ops, only):
            if op.kind in ("dispatch", "combine") or _is_routed(op):
                if _row(op, tokens, CutKind.PAR):
                    script.split(op, tokens, each, only)
                else:
                    script.dup(op, each, only)
    script.merge(axis)


def context_parallel(script: Script, axis: str = "x", tokens: str = BATCH, ops: str = "*", only: str = "") -> None:
    """CP: in prefill the positions of the prompt are cut, and caches gathered for attention. In decode every coordinate
    attends to its share of each context, for which what precedes attention runs on all of them, and what follows is cut
    by requests again."""
    if SEQ in script.sizes:
        data_parallel(script, axis=axis, dim=SEQ, ops=ops, only=only)
        return
    for members in script.blocks_of(ops, only):
        early = _before_attention(members)
        for op in members:
            fold = next((row for row in signature(op) if row.kind is CutKind.FOLD and row.combine == "lse"), None)
            if fold is not None:
                script.split(op, fold.dim, axis, only)
            elif any(t.role is Role.KV_CACHE for t in op.operands) and _row(op, op.output.dims[1], CutKind.PAR):
                script.split(op, op.output.dims[1], axis, only)
            elif op.name not in early and _row(op, tokens, CutKind.PAR, CutKind.SUM):
                script.split(op, tokens, axis, only)
    if not only:
        _lay_ports(script, axis, tokens, ops)
    script.merge(axis)


def tensor_parallel(script: Script, axis: str = "x", ops: str = "*", only: str = "") -> None:
    """TP as in Megatron: products are cut by a dim of their output that later products sum over, what lies between goes
    along, and the partial sums are all-reduced."""
    for members in script.blocks_of(ops, only):
        lies: dict[str, str] = {}
        readers = {op.output.name: [user for user in members if op.output in user.operands] for op in members}
        for op in members:
            row = _following(op, lies) or _column(op, members, readers)
            if row is not None:
                script.split(op, row.dim, axis, only)
                lies[op.output.name] = row.out
    script.merge(axis)


def keep_caches(script: Script, memory: str, leaves: str = "*", only: str = "") -> None:
    """A policy of tiers: KV caches (of those leaves) rest in that memory and are read, and written, over its route."""
    found = False
    for leaf in script.leaves(leaves, only):
        if leaf.role is Role.KV_CACHE:
            script.take(Action(primitive="set_memory", target=leaf.name, memory=memory, only=only))
            found = True
    if not found:
        raise RefusedError("nothing-found", f"no KV cache is called {leaves}")


def recompute(script: Script, target: str, axis: str = "x", only: str = "") -> None:
    """Every coordinate computes the target, and what leads to it in its block, by itself, instead of being sent it."""
    for op in script.leading_to(target):
        if script.choice(op, axis, only) != REPLICATED:
            script.dup(op, axis, only)
    script.merge(axis)


def disaggregate(script: Script, first: str, mesh: str = "") -> None:
    """Prefill and decode on devices of their own: the blocks that `first` fits on one half of the GPUs, those after
    them on the other half; caches that the second half reads travel there."""
    labels = script.labels
    count = next((n for n, label in enumerate(labels) if not fnmatchcase(label, first)), len(labels))
    if not 0 < count < len(labels):
        raise RefusedError("nothing-found", f"{first!r} does not part the blocks in two: {', '.join(labels[:4])}, …")
    pipeline(script, "2", mesh)
    first_half = {label: label in labels[:count] for label in labels}
    now = script.stage_of
    for label in labels:
        if not now[label] < 1 and first_half[label]:
            script.take(Action(primitive="set_compute", target=label, stage=0))
    for label in reversed(labels):
        if now[label] < 1 and not first_half[label]:
            script.take(Action(primitive="set_compute", target=label, stage=1))


def merge_all(script: Script, axis: str = "") -> None:
    """Every gather or reduce to one coordinate, with what follows it, becomes one collective."""
    script.merge(axis)


MACROS: dict[str, Callable[..., None]] = {
    macro.__name__: macro
    for macro in (
        *(pipeline, data_parallel, tensor_parallel, context_parallel, expert_parallel, replicate_experts),
        *(keep_caches, recompute, disaggregate, merge_all),
    )
}


def run_macro(session: Session, name: str, given: Mapping[str, str], *, where: str = "macro") -> None:
    """Take all actions of a macro, or none. `given` are its parameters as text. Raises a typed error."""
    if name not in MACROS:
        raise UnknownNameError("macro", name[:60], MACROS, where=where)
    parameters = {key: each for key, each in inspect.signature(MACROS[name]).parameters.items() if key != "script"}
    for parameter, text in given.items():
        if parameter not in parameters:
            raise UnknownNameError(f"parameter of {name}", parameter[:60], parameters, where=where)
        if not isinstance(text, str) or len(text) > LONGEST_NAME or not text.isprintable():
            raise ValueRangeError(f"{parameter} of {name}", where=where, expected="printable text")
    missing = [key for key, each in parameters.items() if each.default is each.empty and key not in given]
    if missing:
        raise ValueRangeError(f"{name} lacks a parameter", where=where, expected=", ".join(missing))
    words = " ".join((name, *(f"{parameter}={text}" for parameter, text in given.items())))
    trial = session.branch()
    MACROS[name](Script(trial, words), **given)
    if len(trial.entries) == len(session.entries):
        raise RefusedError("nothing-found", f"{words} finds nothing to do", where=where)
    session.adopt(trial)


# -- what macros ask of operators -------------------------------------------------------------------------------------


def _is_routed(op: Op) -> bool:
    """Does it work on rows that were dispatched?"""
    return bool(op.operands) and op.operands[0].fill < 1.0 and op.kind not in ("dispatch", "combine")


def _experts(script: Script, op: Op) -> str:
    """The expert dim of the rows that an operator works on."""
    known = {expert_label(other) for other in script.block(op) if other.kind in ("dispatch", "combine")}
    return next((label for label in op.operands[0].dims if label in known), "")


def _row(op: Op, dim: str, *kinds: CutKind) -> Cut | None:
    """The first row of these kinds that cuts an operator, or an operand of it, by a dim."""
    for kind in kinds:
        for row in signature(op):
            if row.kind is kind and row.dim == dim and set(row.operands) != {REPLICATED}:
                return row
    return None


def _lay_ports(script: Script, axis: str, dim: str, ops: str) -> None:
    """What passes between blocks lies by the dim along the axis; what only comes out, as it is made."""
    for port, read in script.ports(ops):
        made = script.made(port, axis)
        entry = dim if read and dim in port.dims else REPLICATED if read or made == PARTIAL else made
        if entry != script.lies(port, axis):
            script.take(Action(primitive="set_memory", target=port.name, dim=entry, axis=axis))


def _before_attention(members: tuple[Op, ...]) -> frozenset[str]:
    """Operators of a block that an attention over a context depends on."""
    makers = {op.output.name: op for op in members}
    stack = [t.name for op in members if any(row.combine == "lse" for row in signature(op)) for t in op.operands]
    found: set[str] = set()
    while stack:
        op = makers.get(stack.pop())
        if op is not None and op.name not in found:
            found.add(op.name)
            stack += [t.name for t in op.operands]
    return frozenset(found)


def _following(op: Op, lies: Mapping[str, str]) -> Cut | None:
    """The row by which an operator goes along with operands that are cut: it keeps the cut, sums over it, or passes
    summands on. None where no operand is cut, or none of its rows reads all of them as they lie."""
    have = [lies.get(t.name, REPLICATED) for t in op.operands]
    if set(have) == {REPLICATED}:
        return None
    for row in signature(op):
        ends = list(zip(row.operands, have, op.operands))
        fits = all(entry == made if t.name in lies else entry != PARTIAL for entry, made, t in ends)
        if fits and row.kind in (CutKind.PAR, CutKind.SUM, CutKind.LINEAR):
            return row
    return None


def _column(op: Op, members: tuple[Op, ...], readers: Mapping[str, list[Op]]) -> Cut | None:
    """The row that cuts a product by a dim of weight and output which every reader keeps until it is summed over."""
    if not any(t.role in RESIDENT_ROLES and len(t.dims) > 1 for t in op.operands):
        return None
    for row in signature(op):
        of_weight = all((t.role in RESIDENT_ROLES) == (entry == row.dim) for t, entry in zip(op.operands, row.operands))
        if row.kind is CutKind.PAR and row.out == row.dim and of_weight and _summed(op, row.dim, readers, set()):
            return row
    return None


def _summed(op: Op, dim: str, readers: Mapping[str, list[Op]], seen: set[str]) -> bool:
    """Is a cut of the output carried on by all readers in the block, to sums over it?"""
    users = readers.get(op.output.name, [])
    for user in users:
        rows = [
            row
            for row in signature(user)
            if row.dim == dim and all(e == dim for e, t in zip(row.operands, user.operands) if t.name == op.output.name)
        ]
        if any(row.kind is CutKind.SUM for row in rows):
            continue
        keeps = any(row.kind is CutKind.PAR and row.out == dim for row in rows)
        if not (keeps and (user.name in seen or _summed(user, dim, readers, {*seen, user.name}))):
            return False
    return bool(users)
