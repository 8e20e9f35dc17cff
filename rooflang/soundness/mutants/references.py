"""References as ranks would compute them by mistake: local ids, local statistics, states that are combined wrongly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rooflang.ir.exact import exp, logits
from rooflang.ir.op import Op
from rooflang.ir.reference import Fold, Reference, Summary, Where, softmax, topk
from rooflang.ir.reference.base import NO_ID, Arrays, State
from rooflang.soundness.mutants.record import Broken


def renumbered(*labels: str) -> Broken:
    """Every rank counts these labels from 0, as if its share were the whole."""

    def local(where: Where) -> Where:
        ids = {k: np.arange(len(v)) if k in labels else v for k, v in where.ids.items()}
        return Where(ids=ids, sizes={k: len(ids[k]) if k in labels else v for k, v in where.sizes.items()})

    return _elsewhere(local)


def counted_from_zero(*labels: str) -> Broken:
    """Every rank counts these labels from 0, though it knows how long the whole is."""

    def local(where: Where) -> Where:
        ids = {k: np.arange(len(v)) if k in labels else v for k, v in where.ids.items()}
        return Where(ids=ids, sizes=where.sizes)

    return _elsewhere(local)


def _elsewhere(local: object) -> Broken:
    assert callable(local)

    def change(known: Reference) -> Reference:
        of = known.summary
        return replace(
            known,
            run=lambda op, where, s, operands: known.run(op, local(where), s, operands),
            summary=of and replace(of, of=lambda op, where, operands: of.of(op, local(where), operands)),
        )

    return change


def own_only(known: Reference) -> Reference:
    """A rank takes its own summary for that of all."""
    of = known.summary
    assert of is not None
    return replace(known, run=lambda op, where, s, operands: known.run(op, where, of.of(op, where, operands), operands))


def mean_of_means(known: Reference) -> Reference:
    """Ranks average their means of squares, as if shards had one size."""

    def means(op: Op, where: Where, operands: Arrays) -> State:
        axis = op.operands[0].dims.index(op.attr("over"))
        count = max(1, operands[0].shape[axis])
        return np.square(operands[0]).sum(axis, keepdims=True) / count, np.ones(1)

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        return known.run(op, where, (s[0] / s[1] * where.sizes[op.attr("over")],), operands)

    return Reference(run=run, summary=Summary(of=means, merge=lambda op, a, b: (a[0] + b[0], a[1] + b[1])))


def mean_without_squares(known: Reference) -> Reference:
    """A layer norm that takes Σx² of its own shard only."""
    of = known.summary
    assert of is not None

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        return known.run(op, where, (s[0], of.of(op, where, operands)[1]), operands)

    return replace(known, run=run)


# -- top-k and argmax -------------------------------------------------------------------------------------------------


def by_arrival(op: Op, a: State, b: State) -> State:
    """Of equal values the one that arrived last is the best."""
    both = [np.concatenate([y, x], -1) for x, y in zip(a, b, strict=True)]
    order = np.argsort(-both[0], -1, kind="stable")[..., : a[0].shape[-1]]
    return tuple(np.take_along_axis(each, order, -1) for each in both)


def routed_by_arrival(op: Op, a: State, b: State) -> State:
    """The same for a router's candidates; the statistics beside them are merged as they should."""
    return *by_arrival(op, a[:3], b[:3]), *softmax.merged(a[3:], b[3:])


def last_best(op: Op, a: State, b: State) -> State:
    """The later of two equal values wins, whatever its id."""
    later = b[0] >= a[0]
    return np.where(later, b[0], a[0]), np.where(later, b[1], a[1])


def smallest(op: Op, a: State, b: State) -> State:
    """The smaller value wins."""
    lower = b[0] < a[0]
    return np.where(lower, b[0], a[0]), np.where(lower, b[1], a[1])


def fewer(known: Reference) -> Reference:
    """Each rank offers half as many candidates as are chosen."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        state = known.run(op, where, s, operands)
        count = state[0].shape[-1]
        values, ids, *carried = (a[..., : -(-count // 2)] for a in state)
        return topk.best(values, ids, count, *carried)

    return replace(known, run=run)


def own_nucleus(known: Reference) -> Reference:
    """Each rank keeps of its candidates those in the nucleus of its own share."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        scores, ids, noisy = known.run(op, where, s, operands)
        weights = exp(logits(scores) - logits(scores)[..., :1])
        kept = np.cumsum(weights, -1) - weights < op.attr("top_p") * weights.sum(-1, keepdims=True)
        return topk.best(np.where(kept, scores, -np.inf), np.where(kept, ids, NO_ID), scores.shape[-1], noisy)

    return replace(known, run=run)


def renormalised(known: Reference) -> Reference:
    """Gates that sum to 1 on every rank."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        (gates,) = known.run(op, where, s, operands)
        total = gates.sum(op.output.dims.index("expert"), keepdims=True)
        return (gates / np.where(total > 0, total, 1),)

    return replace(known, run=run)


def own_softmax(known: Reference) -> Reference:
    """Statistics of the logits are not merged: gates are weighed by the sum over one share."""
    assert known.summary is not None
    merge = known.summary.merge
    return replace(known, summary=replace(known.summary, merge=lambda op, a, b: (*merge(op, a, b)[:3], *a[3:])))


def unbiased(known: Reference) -> Reference:
    """Shares offer those of their experts that the logits alone would choose."""
    assert known.summary is not None
    of = known.summary.of
    return replace(known, summary=replace(known.summary, of=lambda op, where, given: of(op, where, given[:1])))


# -- log-sum-exp ------------------------------------------------------------------------------------------------------


def not_rescaled(op: Op, a: State, b: State) -> State:
    """Sums added although their maxima differ."""
    return np.maximum(a[0], b[0]), a[1] + b[1], a[2] + b[2]


def averaged(known: Reference) -> Reference:
    """Denominators averaged."""
    inner = known.fold
    assert inner is not None

    def combine(op: Op, a: State, b: State) -> State:
        top, total, mixed = inner.combine(op, a, b)
        return top, total / 2, mixed

    return replace(known, fold=Fold(combine=combine, finish=inner.finish, dims=inner.dims))


def first_scale(known: Reference) -> Reference:
    """Both sides rescaled to the first one's maximum, which is then forgotten for the larger one."""
    inner = known.fold
    assert inner is not None

    def combine(op: Op, a: State, b: State) -> State:
        _, total, mixed = inner.combine(op, a, b)
        return np.minimum(a[0], b[0]), total, mixed

    return replace(known, fold=Fold(combine=combine, finish=inner.finish, dims=inner.dims))


# -- rows by index ----------------------------------------------------------------------------------------------------


def clamped(known: Reference) -> Reference:
    """Token ids outside a rank's rows are moved to its first or last row instead of masked."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        held = where.ids[op.operands[1].dims[0]]
        ids = np.clip(operands[0], held[0], held[-1]) if len(held) else operands[0]
        return known.run(op, where, s, [ids, operands[1]])

    return replace(known, run=run)


# -- sequences --------------------------------------------------------------------------------------------------------


def no_carry(known: Reference) -> Reference:
    """Every shard of a sequence begins as if nothing stood before it."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        return known.run(op, where, tuple(a[:0] for a in s), operands)

    return replace(known, run=run)


def sums_only(known: Reference) -> Reference:
    """States of the shards before are added up, without the decay that later shards put on them."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        starts, turns, sums = s
        whole = np.broadcast_to(np.eye(turns.shape[-1]), turns.shape)
        return known.run(op, where, (starts, whole, sums), operands)

    return replace(known, run=run)


def undecayed(known: Reference) -> Reference:
    """States of linear attention are taken for those of the position just before."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        own = where.ids[op.operands[0].dims[1]]
        ends = np.where(s[0] < (own[0] if len(own) else 0), own[0] - 1 if len(own) else 0, s[0])
        return known.run(op, where, (ends, *s[1:]), operands)

    return replace(known, run=run)


def backwards(known: Reference) -> Reference:
    """Maps of the shards before are applied from the last one to the first."""

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        starts, turns, sums = s
        return known.run(op, where, (starts, turns[::-1], sums[::-1]), operands)

    return replace(known, run=run)


def from_neighbour(known: Reference) -> Reference:
    """A convolution that takes what stands before a shard from one other share only, however short that one is."""
    of = known.summary
    assert of is not None

    def told(op: Op, where: Where, operands: Arrays) -> State:
        ids, inputs = of.of(op, where, operands)
        first = where.ids[op.operands[0].dims[1]][:1]
        return ids, inputs, np.full(len(ids), first[0] if len(first) else -1)

    def merge(op: Op, a: State, b: State) -> State:
        order = np.argsort(np.concatenate([a[0], b[0]]), kind="stable")
        return tuple(np.concatenate([x, y])[order] for x, y in zip(a, b, strict=True))

    def run(op: Op, where: Where, s: State, operands: Arrays) -> State:
        own = where.ids[op.operands[0].dims[1]]
        before = s[0] < own[0] if len(own) else np.zeros(len(s[0]), bool)
        kept = before & (s[2] == s[2][before][-1]) if before.any() else before
        later = s[0] > own[0] if len(own) else kept
        return known.run(op, where, (s[0][kept | later], s[1][kept | later]), operands)

    return replace(known, run=run, summary=Summary(of=told, merge=merge))


def shorter_halo(known: Reference) -> Reference:
    """A shard hands its last input on, and no earlier one."""
    of = known.summary
    assert of is not None

    def last(op: Op, where: Where, operands: Arrays) -> State:
        ids, inputs = of.of(op, where, operands)
        held = where.ids[op.operands[0].dims[1]]
        kept = ~np.isin(ids + 1, held)
        return ids[kept], inputs[kept]

    return replace(known, summary=replace(of, of=last))
