"""fuse_kernels on trial: a fused kernel, whole or cut, makes what its two operators make apart; a routed one makes what
a token cut and its all-to-all make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rooflang.ir.cut import REPLICATED, Cut, CutKind, Spec
from rooflang.ir.digits import Digits
from rooflang.ir.evaluate import evaluate
from rooflang.ir.exact import alike
from rooflang.ir.layout import Choice, make_mode, make_transfer
from rooflang.ir.lifted import apply_transfer, assemble, run_mode
from rooflang.ir.op import Op, signature
from rooflang.ir.reference import Reference
from rooflang.ir.values import Value
from rooflang.rules.fuse_kernels import check
from rooflang.rules.record import Ok, Verdict
from rooflang.soundness import draw
from rooflang.soundness.cases import PAIRS, example, pair, the_op
from rooflang.soundness.source import Source
from rooflang.soundness.splits import replaced, told, uncut

ROUTED = ("dispatch", "combine")


@dataclass(frozen=True, kw_only=True)
class Fusions:
    """A claim: what the rule makes of two operators, cut by rows of its signature, makes what the two make apart."""

    names: Sequence[str] = tuple(PAIRS)
    check: Callable[[Op, Op], Verdict] = check
    choices: Callable[[Op], Sequence[Choice]] = signature

    def __call__(self, source: Source) -> str | None:
        graph = draw.extents(pair(source.choice(self.names)), source)
        inner, outer = graph.ops
        verdict = self.check(outer, inner)
        source.suits(isinstance(verdict, Ok))
        assert isinstance(verdict, Ok)
        fused: Op = verdict.result
        arrays = draw.leaves(graph, source, exact=not source.chance(8))
        wanted = evaluate(graph, arrays)["y"]
        ranks = (source.ranks(),) if source.below(2) == 0 else (source.ranks(3), source.integer(1, 3))
        ways: list[Choice] = [*self.choices(fused), *uncut(fused)]
        chosen = [source.choice(ways) for _ in ranks]
        mode = make_mode(fused, chosen, covers=(inner.name, outer.name))
        alone = replace(graph, ops=(fused,))
        on = draw.digits(alone, ranks, source)
        operands = [
            draw.laid(t, arrays[t.name], s, on, source) for t, s in zip(fused.operands, mode.operands, strict=True)
        ]
        found = assemble(run_mode(mode, operands, on), on)
        return None if alike(found, wanted) else told(alone, mode, on, str(mode.out), arrays, wanted, found)


@dataclass(frozen=True, kw_only=True)
class Routes:
    """A claim: a routed row of dispatch or combine leaves every rank with what the row of the same tokens and the
    all-to-all outside leave it with."""

    names: Sequence[str] = ROUTED
    rows: Callable[[Op], Sequence[Cut]] = lambda op: [c for c in signature(op) if c.kind is CutKind.ROUTE]
    broken: Callable[[Reference], Reference] | None = None

    def __call__(self, source: Source) -> str | None:
        graph = draw.extents(example(source.choice(self.names)), source)
        op = the_op(graph)
        row = source.choice(self.rows(op))
        plain = next(c for c in signature(op) if c.kind is CutKind.PAR and c.dim == row.dim)
        ranks = (source.ranks(),) if source.below(2) == 0 else (source.ranks(3), source.integer(1, 3))
        others = [c for c in signature(op) if c.kind is CutKind.PAR]
        ways: list[Choice] = [REPLICATED, *others]
        rest = [source.choice(ways) for _ in ranks[1:]]
        arrays = draw.leaves(graph, source)
        on = draw.digits(graph, ranks, source)
        routed, apart = make_mode(op, [row, *rest]), make_mode(op, [plain, *rest])
        given = [draw.laid(t, arrays[t.name], s, on, source) for t, s in zip(op.operands, routed.operands, strict=True)]
        with replaced(op, self.broken):
            made = run_mode(routed, given, on)
        arrived = [_moved(value, spec, on) for value, spec in zip(given, apart.operands, strict=True)]
        other = _moved(run_mode(apart, arrived, on), routed.out, on)
        for rank, piece in made.pieces.items():
            if not all(map(alike, piece.arrays, other.pieces[rank].arrays)):
                wanted, found = draw.whole(graph, arrays), assemble(made, on)
                return told(graph, routed, on, f"{routed.out}, rank {rank}", arrays, wanted, found)
        return None


def _moved(value: Value, spec: Spec, on: Digits) -> Value:
    """The value in another spec, by one collective outside of any operator."""
    if value.spec == spec:
        return value
    return apply_transfer(value, make_transfer(value.tensor.name, value.spec, spec), on)
