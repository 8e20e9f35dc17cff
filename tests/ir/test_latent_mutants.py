"""Broken rules of latent and linear attention are found out, as in `test_mutants`."""

from __future__ import annotations

import numpy as np
import pytest

from rooflang.ir.cut import PARTIAL, REPLICATED, CutKind
from rooflang.ir.op import Op, signature
from rooflang.ir.reference.base import State

from .cases import CASES, the_op
from .test_mutants import Split, killed, mean_of_means, new, own_only, renumbered, row, summary

S, P, L = CutKind.SUM, CutKind.PAR, CutKind.LINEAR


def _unsorted(op: Op, a: State, b: State) -> State:
    """Maps in the order in which ranks come, not in that of their positions."""
    return tuple(np.concatenate([y, x]) for x, y in zip(a, b))


def _last_only(op: Op, a: State, b: State) -> State:
    """Of two neighbours' inputs only the nearer one's: a halo that spans several ranks is cut off."""
    return a if len(a[0]) and (not len(b[0]) or a[0][-1] > b[0][-1]) else b


def _without_turn(op: Op, a: State, b: State) -> State:
    """States are added up, as if nothing decayed or was corrected."""
    starts, turns, sums = (np.concatenate([x, y]) for x, y in zip(a, b))
    order = np.argsort(starts, kind="stable")
    return starts[order], np.broadcast_to(np.eye(turns.shape[-1]), turns.shape), sums[order]


CUTS = {
    "conv: every shard begins with zeros": Split(case="short_conv", pick=row("seq", kind=P), broken=own_only),
    "conv: local positions": Split(case="short_conv", pick=row("seq"), broken=renumbered("seq")),
    "conv: halo from one rank only": Split(case="short_conv", pick=row("seq"), broken=summary(merge=_last_only)),
    "conv: bias in every summand": Split(case="short_conv_bias", pick=new(L, "P R R", PARTIAL)),
    "conv: taps cut, silu before the reduce": Split(case="conv_step", pick=new(S, "tap tap", PARTIAL)),
    "conv: input partial": Split(case="conv_push", pick=new(L, "P R", PARTIAL)),
    "delta: every shard begins with a state of zeros": Split(case="delta_scan", pick=row("seq"), broken=own_only),
    "delta: nothing decays between shards": Split(
        case="delta_scan", pick=row("seq"), broken=summary(merge=_without_turn)
    ),
    "delta: maps in the order of arrival": Split(case="delta_scan", pick=row("seq"), broken=summary(merge=_unsorted)),
    "delta: keys cut": Split(case="delta_update", pick=new(P, "k R k R R k k", "k")),
    "delta: keys summed": Split(case="delta_scan", pick=new(S, "k k R k R R k", PARTIAL)),
    "delta: last state of the own shard": Split(case="delta_final", pick=row("seq"), broken=own_only),
    "latent norm: entries cut": Split(case="latent_norm", pick=new(P, "width rank", "width")),
    "absorb: unrotated queries cut, not summed": Split(case="absorb_query", pick=new(P, "R nope", REPLICATED)),
    "latent attention: local positions of queries": Split(
        case="latent_attention_causal", pick=row("seq"), broken=renumbered("seq")
    ),
    "latent attention: local positions of entries": Split(
        case="latent_attention_causal", pick=row("ctx"), broken=renumbered("ctx")
    ),
    "latent attention: local ids of chosen entries": Split(
        case="latent_attention_chosen", pick=row("ctx"), broken=renumbered("ctx")
    ),
    "latent attention: sum of softmaxes": Split(case="latent_attention_chosen", pick=row("ctx", kind=S)),
    "latent attention: ranks cut, scores not summed": Split(
        case="latent_attention_causal", pick=new(P, "rank R R", "rank")
    ),
    "depth: scores of the own shard": Split(case="depth_mix", pick=row("h"), broken=own_only),
    "depth: one vector partial": Split(case="depth_mix", pick=new(L, "R R P R R", PARTIAL)),
    "layer norm: statistics of the own shard": Split(case="layer_norm", pick=row("h"), broken=own_only),
    "sigmoid: gate partial": Split(case="sigmoid_mul", pick=new(L, "R P", PARTIAL)),
    "norm with gains: mean of means": Split(case="rms_norm_gains", pick=row("c"), broken=mean_of_means),
}


@pytest.mark.parametrize("mutant", CUTS.values(), ids=CUTS)
def test_mutant_is_killed(mutant: Split) -> None:
    assert killed(mutant)


@pytest.mark.parametrize("name", sorted({split.case for split in CUTS.values()}))
def test_rule_is_not_killed(name: str) -> None:
    for index in range(len(signature(the_op(CASES[name]())))):
        assert not killed(Split(case=name, pick=lambda op, index=index: signature(op)[index]))  # type: ignore[misc]
