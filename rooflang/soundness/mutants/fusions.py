"""Broken fusions: kernels that compute something else than the two operators apart, and rows that lose something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.kinds.fused import Fusion, composed, fuse
from rooflang.ir.kinds.joint import JOINT, features, joint_label
from rooflang.ir.kinds.segment import PART, parted
from rooflang.ir.op import Op, signature
from rooflang.ir.reference import Reference, Where
from rooflang.ir.reference.base import Array, Arrays, State
from rooflang.rules.fuse_kernels import check
from rooflang.rules.record import Ok, Verdict
from rooflang.soundness.fusions import Fusions, Routes
from rooflang.soundness.joints import Joints
from rooflang.soundness.mutants.record import Mutant, new

S, P, L = CutKind.SUM, CutKind.PAR, CutKind.LINEAR

#: No fusion of ours; its name is that of one with as many operands.
_ROPE_NORM = Fusion(name="add_norm", summary="", outer="rms_norm", inner="rope", operand=0)

#: A projection of up in a gated activation, and one for both halves, under names of ours.
_UP_FIRST = Fusion(name="matmul_gate", summary="", outer="gated_activation", inner="matmul", operand=1)
_BOTH = Fusion(name="gated_projections", summary="", outer="matmul_gate", inner="matmul", operand=2)


def _rewritten(change: Callable[[Op, Op, Op], Op]) -> Callable[[Op, Op], Verdict]:
    """What the rule makes, changed: `change(fused, outer, inner)`."""

    def broken(outer: Op, inner: Op) -> Verdict:
        verdict = check(outer, inner)
        return Ok(result=change(verdict.result, outer, inner)) if isinstance(verdict, Ok) else verdict

    return broken


def _inner_left_out(fused: Op, outer: Op, inner: Op) -> Op:
    """The outer operator on what the inner one reads."""
    at = next(i for i, t in enumerate(outer.operands) if t.name == inner.output.name)
    raw = replace(outer.operands[at], name=inner.operands[0].name)
    return replace(outer, operands=(*outer.operands[:at], raw, *outer.operands[at + 1 :]))


def _gain_left_out(fused: Op, outer: Op, inner: Op) -> Op:
    """A fused norm that forgets its gain."""
    bare = replace(inner, operands=inner.operands[:1])
    return composed(fused.kind, outer, bare, fused.attr("at"))


def _residual_left_out(fused: Op, outer: Op, inner: Op) -> Op:
    """An epilogue that forgets to add."""
    return replace(inner, output=outer.output)


def _reordered(fused: Op, outer: Op, inner: Op) -> Op:
    """RoPE first, then the norm with its gain: another function, as a gain is not turned with its pair."""
    turned = replace(outer, operands=(inner.operands[0], *outer.operands[1:]))
    norm = replace(inner, operands=(turned.output, *inner.operands[1:]), output=outer.output)
    return fuse(_ROPE_NORM, norm, turned)


def _gate_and_up_swapped(fused: Op, outer: Op, inner: Op) -> Op:
    """f(up) · gate: the projection feeds the other half."""
    gate, up = outer.operands
    swapped = replace(outer, operands=(up, gate))
    return fuse(_UP_FIRST, swapped, inner)


def _one_projection(fused: Op, outer: Op, inner: Op) -> Op:
    """Both halves from gate's projection."""
    x, weight, _ = outer.operands
    return fuse(_BOTH, outer, replace(inner, operands=(x, weight)))


def _rows_kept(op: Op) -> list[Cut]:
    """Routed rows whose all-to-all is left out."""
    return [replace(c, kind=P) for c in signature(op) if c.kind is CutKind.ROUTE]


def _gates_forgotten(known: Reference) -> Reference:
    """A combine that adds rows up without their weights."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        gates: Array = operands[1]
        return known.run(op, where, s, [operands[0], 0 * gates + 1])

    return replace(known, run=run)


def _changed_part(change: Callable[[Op], Op]) -> Callable[[Op, Op], Verdict]:
    """Parts that the rule makes, changed."""
    return _rewritten(lambda fused, outer, inner: change(fused) if fused.kind == PART else fused)


def _ranges(op: Op, after: tuple[str, ...]) -> Op:
    """A part that comes after other products than it does."""
    attrs = tuple((name, value) for name, value in op.attrs if name != "after")
    return replace(op, attrs=((("after", after), *attrs) if after else attrs))


def _other_range(op: Op) -> Op:
    """A part that takes its elements from the other end."""
    first, last = features(op.attr("inner"))
    return _ranges(op, () if op.attr("after") else (last if op.output.dims[-1] == first else first,))


def _any_input(outer: Op, inner: Op) -> Verdict:
    """Products of any inputs, as products of the first one's."""
    if inner.kind == JOINT:
        product = replace(outer, operands=(inner.operands[0], *outer.operands[1:]))
        return check(product, inner)
    return check(outer, replace(inner, operands=(outer.operands[0], *inner.operands[1:])))


def _joint_mutants() -> Iterator[Mutant]:
    yield _mutant("shared input: the range of another product", Joints(check=_changed_part(_other_range)))
    yield _mutant("shared input: ranges from the start", Joints(check=_changed_part(lambda op: _ranges(op, ()))))
    yield _mutant("shared input: other inputs", Joints(check=_any_input, other_input=True))
    yield _mutant("shared input: the sum left out", Joints(rows=_unsummed))
    yield _mutant("shared input: one contiguous cut of q and kv", Joints(rows=_side_by_side, part_rows=_shards))


def _unsummed(op: Op) -> list[Cut]:
    return [replace(cut, kind=P, out=REPLICATED) for cut in signature(op) if cut.kind is S]


def _side_by_side(op: Op) -> list[Cut]:
    """Every rank makes its share of each product, side by side, as if that were its share of all."""
    label, (one, other) = joint_label(op), features(op)
    return [Cut(kind=P, dim=label, operands=(REPLICATED, one, other), out=label, loops=(label,))]


def _shards(op: Op) -> list[Cut]:
    """A shard of all products taken for a shard of one."""
    old, (new,) = parted(op)
    return [Cut(kind=P, dim=new, operands=(old,), out=new, loops=(old, new))]


def mutants() -> Iterator[Mutant]:
    """All of them."""
    checks = {
        "norm·matmul: the norm left out": (("norm_matmul",), _inner_left_out),
        "norm·matmul: the gain left out": (("norm_matmul",), _gain_left_out),
        "norm·gated: the norm left out": (("norm_gated",), _inner_left_out),
        "matmul·add: the residual left out": (("matmul_add",), _residual_left_out),
        "combine·add: the shared expert left out": (("combine_add",), _residual_left_out),
        "add·norm: the residual left out": (("add_norm",), _inner_left_out),
        "norm·rope: turned before the norm": (("norm_rope",), _reordered),
        "matmul·activation: the activation left out": (("matmul_activation",), _residual_left_out),
        "gate: the activation left out": (("matmul_gate",), _residual_left_out),
        "gate: gate and up swapped": (("matmul_gate",), _gate_and_up_swapped),
        "gate·up: one projection for both": (("gated_projections",), _one_projection),
        "gate·up: gate left out": (("gated_projections",), _residual_left_out),
        "norm·gate·up: the norm left out": (("norm_projections",), _inner_left_out),
        "norm·gate·up: the gain left out": (("norm_projections",), _gain_left_out),
        "norm·shared input: the norm left out": (("norm_joint",), _inner_left_out),
        "norm·shared input: the gain left out": (("norm_joint",), _gain_left_out),
    }
    for name, (names, change) in checks.items():
        yield _mutant(name, Fusions(names=names, check=_rewritten(change)))
    rows = {
        "norm·matmul: statistics of the own shard": ("norm_matmul", new(S, "h h h", PARTIAL)),
        "norm·gated: hidden cut before the nonlinearity": ("norm_gated", new(S, "h h", PARTIAL)),
        "matmul·add: the residual in every summand": ("matmul_add", new(S, "R k k", PARTIAL)),
        "combine·add: the shared expert in every summand": ("combine_add", new(S, "expert R R", PARTIAL)),
        "add·norm: statistics of the own shard": ("add_norm", new(P, "h h h", "h", loops=("h",))),
        "norm·rope: the head dim cut": ("norm_rope", new(P, "even even R", "even", loops=("even",))),
        "matmul·activation: activation before the sum": ("matmul_activation", new(S, "k k", PARTIAL)),
        "norm·gated: summands": ("norm_gated", new(L, "P R", PARTIAL)),
        "matmul·add: summands of the residual alone": ("matmul_add", new(L, "P R R", PARTIAL)),
        "combine·add: summands of the shared expert alone": ("combine_add", new(L, "R R P", PARTIAL)),
        "add·norm: summands": ("add_norm", new(L, "P P R", PARTIAL)),
        "norm·rope: summands": ("norm_rope", new(L, "P R R", PARTIAL)),
        "matmul·activation: summands": ("matmul_activation", new(L, "P R", PARTIAL)),
        "gate: activation before the sum": ("matmul_gate", new(S, "k k R", PARTIAL)),
        "gate: summands": ("matmul_gate", new(L, "P R R", PARTIAL)),
        "gate·up: hidden cut before the nonlinearity": ("gated_projections", new(S, "k k k", PARTIAL)),
        "gate·up: summands": ("gated_projections", new(L, "P R R", PARTIAL)),
        "norm·gate·up: statistics of the own shard": ("norm_projections", new(S, "k k k k", PARTIAL)),
        "norm·shared input: statistics of the own shard": ("norm_joint", new(S, "k k k k", PARTIAL)),
        "norm·gate·up: summands": ("norm_projections", new(L, "P R R R", PARTIAL)),
        "route·dispatch: summands of the logits": ("route_dispatch", new(L, "R P", PARTIAL)),
        "route·dispatch: rows of experts summed": ("route_dispatch", new(S, "R expert", PARTIAL, loops=("expert",))),
        "route·dispatch: top-k of the own experts": ("route_dispatch", new(P, "R expert", "expert", loops=("expert",))),
    }
    for name, (pair, pick) in rows.items():
        yield _mutant(name, Fusions(names=(pair,), choices=pick))
    yield from _joint_mutants()
    yield _mutant("dispatch: rows never sent", Routes(names=("dispatch",), rows=_rows_kept))
    yield _mutant("combine: rows never sent back", Routes(names=("combine",), rows=_rows_kept))
    yield _mutant("combine: rows without their weights", Routes(names=("combine",), broken=_gates_forgotten))


def _mutant(name: str, claim: Fusions | Routes | Joints) -> Mutant:
    return Mutant(name=name, rule="fuse_kernels", claim=claim)
