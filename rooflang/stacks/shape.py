"""The layouts that serving stacks have flags for, as restrictions on the search.

A replica of a stage is a mesh of data-parallel groups × ranks inside a group:

- across groups, attention and all that is not routed work on different requests; experts are spread over the groups
  (expert parallelism) or cut along their hidden dim;
- inside a group there is Megatron's tensor parallelism: heads, the hidden dim of FFNs, the vocabulary. What has none
  of these (norms, routers, a latent cache) is repeated. With decode context parallelism the ranks of a group share the
  entries of such a cache in place of repeating them.

A stack's own kernels and copies are not modelled: a restricted plan is the best of its kind, which a stack can at
most reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rooflang.ir.op import Op, signature
from rooflang.ir.tensor import Role
from rooflang.place.words import cut_word
from rooflang.search.fix import Fixed
from rooflang.search.problem import BATCH, Problem
from rooflang.search.space import OpRule

#: Groups of operators on tokens that are routed to experts.
_ROUTED = ("experts", "dispatch")

#: Groups of operators that read or write the cache.
_CACHED = ("attention", "kv cache")

_FFN, _EXPERT, _VOCABULARY, _CONTEXT, _PARTIAL = "ffn", "expert", "vocabulary", "context", "partial sums"

#: Not cut: every rank runs it whole.
_WHOLE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """`dp` groups of `tp` ranks on each of `pp` stages; `ep`: whole experts lie on ranks, over all groups; `dcp`: ranks
    of a group share the entries of the cache."""

    dp: int
    tp: int
    pp: int
    ep: bool
    dcp: bool = False

    @property
    def gpus(self) -> int:
        return self.dp * self.tp * self.pp

    @property
    def mesh(self) -> tuple[int, ...]:
        return tuple(size for size in (self.dp, self.tp) if size > 1)

    def fixed(self, problem: Problem) -> Fixed:
        """What the shape leaves to choose from."""
        return Fixed(mesh=self.mesh, pp=self.pp, rules=dict(self._rules(problem)))

    def _rules(self, problem: Problem) -> Iterator[tuple[str, OpRule]]:
        words = problem.graph.words
        for op in problem.graph.ops:
            able = {cut_word(cut, words) for cut in signature(op)}
            axes = [self._across(op, able)] if self.dp > 1 else []
            axes += [self._inside(op, able)] if self.tp > 1 else []
            yield op.name, OpRule(among=tuple(axes))

    def _across(self, op: Op, able: set[str]) -> frozenset[str]:
        if op.group in _ROUTED:
            return frozenset((_EXPERT,) if self.ep and _EXPERT in able else (_FFN, BATCH, _PARTIAL, _WHOLE))
        return frozenset((BATCH,) if BATCH in able else (_WHOLE,))

    def _inside(self, op: Op, able: set[str]) -> frozenset[str]:
        if op.group in _ROUTED and self.ep:
            return frozenset((_EXPERT,))
        if self.dcp and op.group in _CACHED and _CONTEXT in able:
            return frozenset((_CONTEXT,))
        return frozenset({word for word in able if _of_heads(word)} | {_FFN, _VOCABULARY, _PARTIAL, _WHOLE})


def _of_heads(word: str) -> bool:
    return word.split()[-1:] == ["head"] or (word.startswith("head ") and "width" not in word)


def has_experts(problem: Problem) -> bool:
    """Are there experts to spread?"""
    return any(op.group == "experts" for op in problem.graph.ops)


def _repeats(problem: Problem) -> bool:
    """Do ranks of a group repeat the cache, since it has no heads to share out?"""
    words, caches = problem.graph.words, (leaf for leaf in problem.graph.leaves if leaf.role is Role.KV_CACHE)
    return not any(_of_heads(words.get(label, label)) for cache in caches for label in cache.dims)


def shapes(problem: Problem, pp: int) -> Iterator[Shape]:
    """Every shape for the GPUs of a problem on a number of stages."""
    ranks = problem.cluster.gpus // pp
    for tp in (size for size in range(1, ranks + 1) if ranks % size == 0):
        for ep in (False, True) if has_experts(problem) and ranks > 1 else (False,):
            for dcp in (False, True) if problem.stage == "decode" and tp > 1 and _repeats(problem) else (False,):
                yield Shape(dp=ranks // tp, tp=tp, pp=pp, ep=ep, dcp=dcp)


def words_of(plan: str) -> Mapping[str, str]:
    """Group of operators → its cuts, of a plan in words."""
    return dict(part.split(": ", 1) for part in plan.split("; ") if ": " in part)
