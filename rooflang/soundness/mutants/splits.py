"""Broken rows of signatures, and rows computed wrongly by the ranks: what split_kernel must not do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.op import Op
from rooflang.ir.reference import Reference
from rooflang.soundness.mutants.record import Mutant, fold, new, row, summary
from rooflang.soundness.mutants.references import (
    averaged,
    backwards,
    by_arrival,
    clamped,
    counted_from_zero,
    fewer,
    first_scale,
    from_neighbour,
    last_best,
    mean_of_means,
    mean_without_squares,
    no_carry,
    not_rescaled,
    own_nucleus,
    own_only,
    own_softmax,
    renormalised,
    renumbered,
    routed_by_arrival,
    shorter_halo,
    smallest,
    sums_only,
    unbiased,
    undecayed,
)
from rooflang.soundness.splits import Splits

S, F, P, L = CutKind.SUM, CutKind.FOLD, CutKind.PAR, CutKind.LINEAR

Rows = Callable[[Op], list[Cut]]

#: Name → (case, the broken row): ranks compute as they should, but what they hold is not what the row says.
_ROWS: dict[str, tuple[str, Rows]] = {
    "matmul: sum over k left out": ("matmul", row("k", out=REPLICATED)),
    "matmul: a sum where n is cut": ("matmul", row("n", kind=S, out=PARTIAL)),
    "matmul: n cut, called m": ("matmul", row("n", out="m")),
    "matmul: only one operand cut along k": ("matmul", row("k", operands=("k", REPLICATED), out=REPLICATED)),
    "matmul: both operands partial": ("matmul", new(L, "P P", PARTIAL)),
    "experts: rows of experts summed": ("matmul_per_expert", row("e", kind=S, out=PARTIAL)),
    "gated: hidden cut, the nonlinearity before the sum": ("gated_matmul", new(S, "k k", PARTIAL)),
    "gated: partial input": ("gated_matmul", new(L, "P R", PARTIAL)),
    "add: residual or bias added on every rank": ("add", new(L, "P R", PARTIAL)),
    "bias: added on every rank": ("bias", new(L, "P R", PARTIAL)),
    "bias: a rank's share of it in every summand": ("bias", new(L, "P h", PARTIAL)),
    "gated activation: of summands": ("gated_activation", new(L, "P R", PARTIAL)),
    "gated: biases in every summand": ("gated_biased", new(S, "k k R", PARTIAL)),
    "activation: of summands": ("activation", new(L, "P", PARTIAL)),
    "sigmoid gate: of summands": ("sigmoid_mul", new(L, "R P", PARTIAL)),
    "norm: of summands": ("rms_norm", new(L, "P", PARTIAL)),
    "norm: statistics of the own shard": ("rms_norm", row("h", kind=P)),
    "layer norm: statistics of the own shard": ("layer_norm", row("h", kind=P)),
    "layer norm: bias in every summand": ("layer_norm", new(L, "P R R", PARTIAL)),
    "softmax: of each shard": ("softmax", row("h", kind=P)),
    "softmax: of summands": ("softmax", new(L, "P", PARTIAL)),
    "depth mix: of each shard": ("depth_mix", row("h", kind=P)),
    "attention: a sum of softmaxes": ("attention_window", row("window", kind=S)),
    "attention: window whole on every rank": ("attention_dense", new(F, "R ctx R", PARTIAL)),
    "attention: softmax of each shard": ("attention_window", row("window", out=REPLICATED)),
    "attention: head dim cut before the softmax": ("attention_window", new(S, "dim dim", PARTIAL)),
    "grouped: head dim cut before the softmax": ("grouped_decode", new(S, "dim dim R", PARTIAL)),
    "rowwise: a part of the row cut": ("rowwise", new(S, "h h", PARTIAL)),
    "pointwise: of summands": ("pointwise", new(L, "P P", PARTIAL)),
    "latent: rank cut before the softmax": ("latent_causal", new(S, "rank R width", PARTIAL)),
    "selection: not merged": ("index_select", row("ctx", kind=P, out=REPLICATED)),
    "selection: heads cut and not summed": ("index_select", new(F, "head head R", PARTIAL)),
    "route: top-k of the own experts": ("route", row("expert", kind=P)),
    "hash route: partial logits": ("hash_route", new(L, "P R R", PARTIAL)),
    "capacity: tokens cut, each share with a count of its own": ("capped_gates", new(P, "b", "b", loops=("b",))),
    "dispatch: partial gates": ("dispatch", new(L, "R P", PARTIAL)),
    "combine: experts not summed": ("combine", row("expert", S, out=REPLICATED)),
    "combine: rows and gates partial": ("combine", new(L, "P P", PARTIAL)),
    "embed: vocabulary not summed": ("embed", row("vocab", out=REPLICATED)),
    "last token: not summed": ("last_token", row("seq", out=REPLICATED)),
    "argmax: of each shard": ("argmax", row("vocab", kind=P, out=REPLICATED)),
    "top-k: of each shard": ("top_k", row("vocab", kind=P, out=REPLICATED)),
    "sampling: stateful generator, requests cut": ("stateful_sample", new(P, "b", "b", loops=("b",))),
    "sampling: stateful generator, vocabulary cut": ("stateful_sample", new(P, "vocab", REPLICATED)),
    "pool: of summands": ("pool", new(L, "P", PARTIAL)),
    "pool: a consumed label cut": ("pool", new(S, "part", PARTIAL)),
    "append: partial entry": ("kv_append", new(L, "P R", PARTIAL)),
    "fused projection: one contiguous cut": ("segment", new(P, "qkv", "part", loops=("qkv", "part"))),
    "flatten: cut inside the outer label": ("flatten", new(P, "inner", "whole", loops=("inner", "whole"))),
    "view: cut inside the inner label": ("view", new(P, "whole", "inner", loops=("whole", "inner"))),
    "rope: contiguous cut of the head dim": ("rope", new(P, "even R", "even", loops=("even",))),
    "delta: keys cut": ("delta_scan", new(S, "k k R k R R k", PARTIAL)),
    "delta: keys of the state cut": ("delta_update", new(P, "k R k R R k k", "k", loops=("k",))),
    "linear attention: keys cut and not summed": ("linear_read", row("k", out=REPLICATED)),
    "linear attention: values summed": ("linear_read", row("v", kind=S, out=PARTIAL)),
    "hyper: copies cut and not summed": ("hyper_read", new(P, "copy R", REPLICATED)),
    "hyper: output added on every rank": ("hyper_write", new(L, "P R R", PARTIAL)),
}

#: Name → (case, the row, what ranks compute instead).
_REFERENCES: dict[str, tuple[str, Rows, Callable[[Reference], Reference]]] = {
    "norm: mean of means": ("rms_norm", row("h"), mean_of_means),
    "layer norm: squares of the own shard": ("layer_norm", row("h"), mean_without_squares),
    "softmax: sums not rescaled": (
        "softmax",
        row("h"),
        summary(merge=lambda op, a, b: (np.maximum(a[0], b[0]), a[1] + b[1])),
    ),
    "attention: states not rescaled": ("attention_dense", row("window"), fold(combine=not_rescaled)),
    "attention: denominators averaged": ("attention_dense", row("window"), averaged),
    "attention: the smaller maximum kept": ("attention_dense", row("window"), first_scale),
    "attention: local ids of entries": ("attention_chosen", row("ctx"), renumbered("ctx")),
    "attention: entries chosen by each rank": ("attention_indexed", row("ctx"), own_only),
    "attention: local ids of index keys": ("attention_indexed", row("ctx"), renumbered("ctx")),
    "grouped: local number of the head": ("grouped_decode", row("head"), counted_from_zero("head")),
    "repeat: local number of the member": ("repeat", row("member"), counted_from_zero("member")),
    "causal: local positions of keys": ("grouped_causal", row("ctx"), counted_from_zero("ctx")),
    "causal: local positions of queries": ("grouped_causal", row("seq"), counted_from_zero("seq")),
    "causal: each shard a sequence of its own": ("grouped_causal", row("ctx"), renumbered("ctx")),
    "window: local positions of keys": ("grouped_window", row("ctx"), counted_from_zero("ctx")),
    "chunks: local positions of keys": ("grouped_chunks", row("ctx"), counted_from_zero("ctx")),
    "sinks: counted by every rank": ("grouped_sinks", row("ctx"), counted_from_zero("ctx")),
    "latent: local positions of entries": ("latent_causal", row("ctx"), counted_from_zero("ctx")),
    "latent: local positions of queries": ("latent_causal", row("seq"), counted_from_zero("seq")),
    "rope: local pairs": ("rope_interleaved", row("even"), counted_from_zero("even")),
    "rope: each shard's first elements turned": (
        "rope_part_interleaved",
        row("even"),
        counted_from_zero("even"),
    ),
    "selection: local ids": ("index_select", row("ctx"), renumbered("ctx")),
    "selection: ties by arrival": ("index_select", row("ctx"), fold(combine=by_arrival)),
    "selection: k/n candidates a shard": ("index_select", row("ctx"), fewer),
    "route: local ids of experts": ("route", row("expert"), renumbered("expert")),
    "route: gates renormalised by each rank": ("route", row("expert"), renormalised),
    "route: ties by arrival": ("route", row("expert"), summary(merge=routed_by_arrival)),
    "route: weighed by the own experts' softmax": ("route_softmax", row("expert"), own_softmax),
    "route: gates of sigmoids renormalised by each rank": ("route_sigmoid", row("expert"), renormalised),
    "route: chosen without the bias": ("route_sigmoid", row("expert"), unbiased),
    "embed: ids clamped": ("embed", row("vocab"), clamped),
    "embed: local ids": ("embed", row("vocab"), renumbered("vocab")),
    "last token: of every rank": ("last_token", row("seq"), renumbered("seq")),
    "argmax: local ids": ("argmax", row("vocab"), renumbered("vocab")),
    "argmax: no order of ids": ("argmax", row("vocab"), fold(combine=last_best)),
    "argmax: of the smallest": ("argmax", row("vocab"), fold(combine=smallest)),
    "sampling: noise by local ids": ("sample", row("vocab"), renumbered("vocab")),
    "sampling: the nucleus of each shard's candidates": ("sample_top_k_p", row("vocab"), own_nucleus),
    "sampling: half the candidates": ("sample_top_k_p", row("vocab"), fewer),
    "top-k: local ids": ("top_k", row("vocab"), renumbered("vocab")),
    "top-k: ties by arrival": ("top_k", row("vocab"), fold(combine=by_arrival)),
    "window: the last positions of every rank": ("last_window", row("seq"), renumbered("seq")),
    "append: every rank writes": ("kv_append", row("window"), renumbered("window")),
    "segment: local start": ("segment", row("part"), counted_from_zero("part")),
    "delta: no state carried over": ("delta_scan", row("seq"), no_carry),
    "delta: states summed without decay": ("delta_scan", row("seq"), sums_only),
    "delta: maps in reverse": ("delta_scan", row("seq"), backwards),
    "delta: the last state from zero": ("delta_final", row("seq"), no_carry),
    "delta: one decay a head, no state carried over": ("delta_scan_by_head", row("seq"), no_carry),
    "linear attention: no state carried over": ("linear_scan", row("seq"), no_carry),
    "linear attention: states summed without decay": ("linear_scan", row("seq"), undecayed),
    "linear attention: the last state from zero": ("linear_final", row("seq"), no_carry),
    "convolution: nothing carried over": ("short_conv", row("seq"), no_carry),
    "convolution: halo from one neighbour": ("short_conv", row("seq"), from_neighbour),
    "convolution: halo of one position": ("short_conv", row("seq"), shorter_halo),
}

#: Name → (case, the row): shards are not aligned as the row asks.
_LOOSE: dict[str, tuple[str, Rows]] = {
    "quantised: half blocks": ("block_matmul", row("blocks", multiple_of=1)),
    "rope: half pairs": ("rope_interleaved", row("even", multiple_of=1)),
    "pool: positions cut inside an entry": ("pool", row("seq")),
    "view: cut inside a row of the inner label": ("view", row("outer")),
    "repeat: members cut apart from their groups": ("repeat", row("kv")),
    "flatten: cut inside a row of the inner label": ("flatten", row("outer")),
    "grouped: heads cut apart from their key-value heads": ("grouped_decode", row("kv")),
}


def mutants() -> Iterator[Mutant]:
    """All of them."""
    for name, (case, rows) in _ROWS.items():
        yield _mutant(name, Splits(cases=(case,), choices=rows))
    for name, (case, rows, broken) in _REFERENCES.items():
        yield _mutant(name, Splits(cases=(case,), choices=rows, broken=broken))
    for name, (case, rows) in _LOOSE.items():
        yield _mutant(name, Splits(cases=(case,), choices=rows, loose=True))


def _mutant(name: str, claim: Splits) -> Mutant:
    return Mutant(name=name, rule="split_kernel", claim=claim)
