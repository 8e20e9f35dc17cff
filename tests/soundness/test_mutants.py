"""Every broken rule is found out, on every seed, and everything that is known to go wrong is among them."""

from __future__ import annotations

from collections import Counter

import pytest

from rooflang.rules import rule_names
from rooflang.soundness.mutants import Mutant, all_mutants
from rooflang.soundness.search import falsify

SEEDS = range(1, 6)

#: Examples that each may take; the worst takes about half of them.
EXAMPLES = 300

#: Trap → the mutants that fall into it.
TRAPS = {
    "bias or residual added once": (
        "add: residual or bias added on every rank",
        "matmul·add: the residual in every summand",
    ),
    "nonlinearity only after the reduce": (
        "gated: hidden cut, the nonlinearity before the sum",
        "gated: partial input",
    ),
    "one contiguous cut of fused QKV": (
        "fused projection: one contiguous cut",
        "shared input: one contiguous cut of q and kv",
    ),
    "GQA by a local head index": ("grouped: local number of the head",),
    "local positions under a causal mask": (
        "causal: local positions of keys",
        "causal: local positions of queries",
        "window: local positions of keys",
        "latent: local positions of entries",
    ),
    "mean of means": ("norm: mean of means",),
    "contiguous cut of RoPE": ("rope: contiguous cut of the head dim", "rope: half pairs"),
    "local top-k in MoE": ("route: top-k of the own experts",),
    "local renormalisation in MoE": ("route: gates renormalised by each rank",),
    "token cut of capacity-drop MoE": ("capacity: tokens cut, each share with a count of its own",),
    "shared expert once": ("combine·add: the shared expert in every summand",),
    "embedding by clamping": ("embed: ids clamped",),
    "argmax without the order of ids": ("argmax: no order of ids",),
    "delta rule cut along keys": ("delta: keys cut", "delta: keys of the state cut"),
    "halo of a convolution over several ranks": ("convolution: halo from one neighbour",),
    "dup of a KV append": ("copied: an append to a KV cache",),
    "write→read edge removed": ("an edge from a write to a read",),
    "stateful random operator": (
        "copied: a random operator",
        "left to its owner: a random operator",
        "sampling: stateful generator, requests cut",
    ),
    "lossy cast as identity": ("a lossy cast", "a lossy move"),
    "all-to-all with equal dims": ("all-to-all: from a dim to itself",),
    "k/n candidates a shard": ("selection: k/n candidates a shard",),
    "half quantisation blocks": ("quantised: half blocks",),
}

MUTANTS = all_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.rule}: {m.name}")
def test_killed_on_every_seed(mutant: Mutant) -> None:
    for seed in SEEDS:
        assert falsify(mutant.claim, examples=EXAMPLES, seed=seed) is not None, f"alive on seed {seed}"


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 150
    counts = Counter(mutant.rule for mutant in MUTANTS)
    assert set(counts) == set(rule_names())
    assert min(counts.values()) >= 3
    names = Counter((mutant.rule, mutant.name) for mutant in MUTANTS)
    assert max(names.values()) == 1


def test_every_trap_is_among_them() -> None:
    names = {mutant.name for mutant in MUTANTS}
    assert {name for traps in TRAPS.values() for name in traps} <= names
