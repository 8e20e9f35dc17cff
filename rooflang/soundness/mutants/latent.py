"""Broken rows and references of latent and linear attention, convolutions, and what stands beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.op import Op
from rooflang.ir.reference import Reference
from rooflang.ir.reference.base import State
from rooflang.soundness.mutants.record import Mutant, new, row, summary
from rooflang.soundness.mutants.references import own_only, renumbered
from rooflang.soundness.splits import Splits

S, P, L = CutKind.SUM, CutKind.PAR, CutKind.LINEAR

Rows = Callable[[Op], list[Cut]]


def _by_arrival(op: Op, a: State, b: State) -> State:
    """What shares tell of themselves in the order in which ranks come, not in that of their positions."""
    return tuple(np.concatenate([y, x]) for x, y in zip(a, b, strict=True))


def _nearer_only(op: Op, a: State, b: State) -> State:
    """Of two neighbours' inputs only the nearer one's."""
    return a if len(a[0]) and (not len(b[0]) or a[0][-1] > b[0][-1]) else b


#: Name → (case, the broken row).
_ROWS: dict[str, tuple[str, Rows]] = {
    "convolution: each shard begins with zeros": ("short_conv", row("seq", kind=P)),
    "convolution: taps cut, the nonlinearity before the sum": ("conv_step", new(S, "tap tap", PARTIAL)),
    "convolution: partial input": ("conv_push", new(L, "P R", PARTIAL)),
    "latent norm: entries cut": ("latent_norm", new(P, "width rank", "width", loops=("width",))),
    "absorb: unrotated queries cut and not summed": ("absorb_query", new(P, "R nope", REPLICATED)),
    "latent: a sum of softmaxes": ("latent_chosen", row("ctx", kind=S)),
    "latent: ranks cut, scores not summed": ("latent_causal", new(P, "rank R R", "rank", loops=("rank",))),
    "depth mix: one vector partial": ("depth_mix", new(L, "R R P R R", PARTIAL)),
}

#: Name → (case, the row, what ranks compute instead).
_REFERENCES: dict[str, tuple[str, Rows, Callable[[Reference], Reference]]] = {
    "convolution: local positions": ("short_conv", row("seq"), renumbered("seq")),
    "convolution: the nearer neighbour only": ("short_conv", row("seq"), summary(merge=_nearer_only)),
    "delta: maps in the order of arrival": ("delta_scan", row("seq"), summary(merge=_by_arrival)),
    "delta: the last state of the own shard": ("delta_final", row("seq"), own_only),
    "latent: local ids of chosen entries": ("latent_chosen", row("ctx"), renumbered("ctx")),
    "depth mix: scores of the own shard": ("depth_mix", row("h"), own_only),
    "layer norm: both statistics of the own shard": ("layer_norm", row("h"), own_only),
    "norm: squares of the own shard": ("rms_norm", row("h"), own_only),
}


def mutants() -> Iterator[Mutant]:
    """All of them."""
    for name, (case, rows) in _ROWS.items():
        yield Mutant(name=name, rule="split_kernel", claim=Splits(cases=(case,), choices=rows))
    for name, (case, rows, broken) in _REFERENCES.items():
        yield Mutant(name=name, rule="split_kernel", claim=Splits(cases=(case,), choices=rows, broken=broken))
