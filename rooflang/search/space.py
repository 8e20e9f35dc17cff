"""One mesh, and the layouts that a search may choose from on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rooflang.eqsat import FrozenBlock
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Mode
from rooflang.place.words import cut_word


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRule:
    """How one operator has to lie: so many `parts` along the dims of those words; with `whole` cut along none; with
    `axes` cut along those words axis by axis (an empty word: not cut), with `among` along one of several words."""

    parts: Mapping[str, int] = field(default_factory=dict)
    whole: bool = False
    axes: tuple[str, ...] | None = None
    among: tuple[frozenset[str], ...] | None = None

    def allows(self, cuts: tuple[str, ...], sizes: tuple[int, ...]) -> bool:
        """Does a layout with those cuts, on axes of those sizes, keep to it?"""
        if (self.whole and any(cuts)) or self.axes not in (None, cuts):
            return False
        if self.among is not None and not all(cut in words for cut, words in zip(cuts, self.among, strict=True)):
            return False
        return all(
            math.prod(size for cut, size in zip(cuts, sizes) if cut == word) == parts
            for word, parts in self.parts.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A mesh by the `sizes` of its axes. `rules` by operator restrict how those lie; a fused kernel has to keep to the
    rules of all that it covers. `words` are those of the graph's labels. `held` says in which specs a leaf may be read,
    where it lies somewhere already."""

    sizes: tuple[int, ...]
    words: Mapping[str, str]
    rules: Mapping[str, OpRule]
    held: Mapping[str, frozenset[Spec]] = field(default_factory=dict)

    def menus(self, frozen: Mapping[str, FrozenBlock]) -> Mapping[str, FrozenBlock]:
        """The blocks of saturated e-graphs with the layouts that are left to choose from."""
        if not self.rules and not self.held:
            return frozen
        return {
            name: replace(block, modes=tuple(mode for mode in block.modes if self._allows(mode)))
            for name, block in frozen.items()
        }

    def _allows(self, mode: Mode) -> bool:
        rules = [self.rules[name] for name in mode.covers if name in self.rules]
        cuts = tuple(cut_word(choice, self.words) for choice in mode.choices) if rules else ()
        if not all(rule.allows(cuts, self.sizes) for rule in rules):
            return False
        reads = zip(mode.op.operands, mode.operands, strict=True) if self.held else ()
        return all(spec in self.held.get(tensor.name, (spec,)) for tensor, spec in reads)
