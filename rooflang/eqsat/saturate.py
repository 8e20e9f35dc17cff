"""Saturation of a block kind: load its program, step it within limits, freeze, name what was found.

The e-graph depends on the block's structure and the number of axes only; batch, context, hardware and names play no
part. Saturations are kept by program text, in the process and on disk, so that blocks of equal structure are saturated
once, whatever graph they come from.
"""

from __future__ import annotations

from functools import lru_cache
from time import perf_counter

from rooflang.eqsat import cache, core
from rooflang.eqsat.decode import decode
from rooflang.eqsat.frozen import FrozenBlock, Iteration, Limits, SaturationStats, StopReason
from rooflang.eqsat.program import ALL, Program, program
from rooflang.eqsat.prune import Pruned, prune
from rooflang.eqsat.twins import Twins
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.collector import no_cycles
from rooflang.rules.theory import Theory

#: Blocks that are kept in a process: all kinds of a model over one and over two axes.
_KEPT = 64

_NO_RULE: frozenset[str] = frozenset()
_DEFAULT = Limits()


def saturate(
    kind: BlockKind,
    axes: int,
    *,
    disabled: frozenset[str] = _NO_RULE,
    limits: Limits = _DEFAULT,
    gathered: bool = False,
) -> FrozenBlock:
    """All layouts of a block over `axes` mesh axes (0: one GPU) that the primitives reach, those in `disabled` left
    out; with `gathered` also those in which weights rest cut and are gathered where they are used.

    A limit ends it early: `stats.stop` says so, and what was found until then is returned. Raises `UnknownNameError`
    for a name in `disabled` that is no rule, `ValueRangeError` for axes outside 0 … 10, `GraphError` for more than 61
    dim labels in the block.
    """
    return _frozen(kind, axes, disabled, limits, gathered)


def saturate_all(
    blocks: Blocks,
    axes: int,
    *,
    disabled: frozenset[str] = _NO_RULE,
    limits: Limits = _DEFAULT,
    gathered: bool = False,
) -> dict[str, FrozenBlock]:
    """`saturate` for every kind of block of a graph, by the kind's name."""
    with no_cycles():
        return {
            kind.name: saturate(kind, axes, disabled=disabled, limits=limits, gathered=gathered)
            for kind in blocks.kinds
        }


@lru_cache(maxsize=_KEPT)
def _frozen(kind: BlockKind, axes: int, disabled: frozenset[str], limits: Limits, gathered: bool) -> FrozenBlock:
    theory = Theory.of(kind, axes, fused="fuse_kernels" not in disabled, gathered=gathered)
    twins = Twins.of(kind)
    with no_cycles():
        if not twins.stands:
            return decode(theory, *saturated(program(theory, disabled), axes, limits))
        small = Theory.of(twins.kind, axes, fused="fuse_kernels" not in disabled, gathered=gathered)
        pruned, stats = saturated(program(small, disabled), axes, limits)
        return decode(theory, twins.restored(pruned, small, theory), stats)


@lru_cache(maxsize=_KEPT)
def saturated(text: Program, axes: int, limits: Limits) -> tuple[Pruned, SaturationStats]:
    """A program over so many axes, run within limits and pruned, and what it took when it was run: now, or in another
    process before (`rooflang.eqsat.cache`)."""
    known = cache.load(text, axes, limits)
    if known is None:
        known = _run(text, axes, limits)
        cache.store(text, axes, limits, *known)
    return known


def _run(text: Program, axes: int, limits: Limits) -> tuple[Pruned, SaturationStats]:
    from rooflang.eqsat.engine import Engine  # here: it imports egglog, which takes 0.4 s

    begin = perf_counter()
    engine = Engine()
    engine.load(text.commands)
    loaded = perf_counter()
    iterations, stop = [], None
    while stop is None:
        before = perf_counter()
        changed = engine.step(ALL)
        after = perf_counter()
        enodes, facts = _count(engine.sizes())
        iterations.append(Iteration(enodes=sum(enodes.values()), facts=sum(facts.values()), seconds=after - before))
        if not changed:
            stop = StopReason.SATURATED
        elif iterations[-1].enodes + iterations[-1].facts > limits.nodes:
            stop = StopReason.NODE_LIMIT
        elif after - loaded > limits.seconds:
            stop = StopReason.TIME_LIMIT
    done = perf_counter()
    pruned = prune(engine.freeze(), axes)
    stats = SaturationStats(
        enodes=enodes,
        facts=facts,
        classes=pruned.classes,
        views=pruned.views,
        iterations=tuple(iterations),
        stop=stop,
        rules=text.rules,
        commands=len(text.commands),
        load_s=loaded - begin,
        saturate_s=done - loaded,
        freeze_s=perf_counter() - done,
    )
    return pruned, stats


def _count(sizes: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Rows by constructor and rows by relation, sorted by name."""
    enodes = {name: count for name, count in sorted(sizes.items()) if core.is_constructor(name)}
    facts = {name: count for name, count in sorted(sizes.items()) if not core.is_constructor(name)}
    return enodes, facts
