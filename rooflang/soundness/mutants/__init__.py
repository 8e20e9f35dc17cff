"""Rules broken on purpose. A test that cannot tell a mutant from the rule tests nothing."""

from __future__ import annotations

from rooflang.soundness.mutants.record import Mutant as Mutant


def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant, rule by rule."""
    from rooflang.soundness.mutants import egraphs, fusions, latent, machine, merges, splits

    modules = (splits, latent, merges, fusions, machine, egraphs)
    return tuple(mutant for module in modules for mutant in module.mutants())
