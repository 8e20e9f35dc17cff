"""One application of a rule that somebody wrote, on trial: what its verdict carries says what has to be equal."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from rooflang.errors import GraphError
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Cut
from rooflang.ir.evaluate import evaluate
from rooflang.ir.exact import alike
from rooflang.ir.graph import Graph
from rooflang.ir.layout import Transfer
from rooflang.ir.lifted import apply_transfer, assemble
from rooflang.ir.op import Op, signature
from rooflang.ir.reference.base import Array
from rooflang.ir.tensor import Tensor
from rooflang.rules.record import Ok, Rule
from rooflang.soundness import draw
from rooflang.soundness.source import Source
from rooflang.soundness.splits import Splits

Site = tuple[Any, ...]


def sites(check: Callable[..., Any], graph: Graph) -> list[Site]:
    """Every way to fill the parameters that a check must have from a graph, by their types.

    `Op` is an operator, `Tensor` a tensor, `str` a dim label or dim of a signature, `Graph` the graph. Two operators
    are one and another one that makes an operand of it. Raises `GraphError` for a parameter of another type.
    """
    hints = typing.get_type_hints(check)
    names = [p.name for p in inspect.signature(check).parameters.values() if _needed(p)]
    types = [hints.get(name) for name in names]
    if types == [Op, Op]:
        return [
            (outer, graph.producer[t.name]) for outer in graph.ops for t in outer.operands if t.name in graph.producer
        ]
    dims = dict.fromkeys([*graph.sizes, *(cut.dim for op in graph.ops for cut in signature(op))])
    pool: dict[Any, Sequence[Any]] = {
        Op: graph.ops,
        Tensor: tuple(graph.tensors.values()),
        str: tuple(dims),
        Graph: (graph,),
    }
    unknown = [name for name, kind in zip(names, types, strict=True) if kind not in pool]
    if unknown:
        raise GraphError(
            f"nothing in {graph.name} is known to fill the parameter {unknown[0]!r} of the check",
            expected="Op, Tensor, str or Graph; or name the sites",
        )
    return list(product(*(pool[kind] for kind in types)))


def _needed(parameter: inspect.Parameter) -> bool:
    positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return positional and parameter.default is parameter.empty


@dataclass(frozen=True, kw_only=True)
class Applied:
    """A claim: wherever the rule applies to the graph, at one of the sites, both sides are equal.

    The verdict's result says what the right side is: a `Cut` of the first operator of the site; `REPLICATED` or `OWNER`
    for it; a `Transfer` of a tensor; an `Op` that makes what the first operator of the site makes, from what the others
    read; a `Graph` with the same outputs; or the name of a tensor that is as good as the first operator's output.
    """

    rule: Rule
    graph: Graph
    sites: Sequence[Site]

    def __call__(self, source: Source) -> str | None:
        site = source.choice(self.sites)
        graph = draw.extents(self.graph, source)
        site = tuple(graph if isinstance(part, Graph) else part for part in site)
        verdict = self.rule.check(*site)
        source.suits(isinstance(verdict, Ok))
        assert isinstance(verdict, Ok)
        result = verdict.result
        ops = [part for part in site if isinstance(part, Op)]
        where = f"{self.rule.name} at {', '.join(map(_named, site))}"
        if isinstance(result, Cut) or (result in (REPLICATED, OWNER) and ops):
            alone = replace(self.graph, ops=(ops[0],), outputs=(ops[0].output.name,))
            return _at(where, Splits(cases=(alone,), choices=lambda op: [result])(source))
        arrays = draw.leaves(graph, source)
        values = evaluate(graph, arrays)
        if isinstance(result, Transfer):
            return _at(where, _moved(graph.tensors[result.tensor], values[result.tensor], result, graph, source))
        pairs = list(_equal(graph, ops, result, values))
        different = [(name, a, b) for name, a, b in pairs if not alike(a, b)]
        if not different:
            return None
        name, before, after = different[0]
        given = [f"  {leaf:9} {array.tolist()}" for leaf, array in arrays.items()]
        sides = [f"  {name} is  {before.tolist()}", f"  becomes {after.tolist()}"]
        return "\n".join([f"{where}, extents {graph.sizes}", *given, *sides])


def _equal(
    graph: Graph, ops: Sequence[Op], result: Any, values: dict[str, Array]
) -> Iterator[tuple[str, Array, Array]]:
    """Pairs of arrays that a result says are equal. Raises `GraphError` for a result that says nothing."""
    if isinstance(result, Graph):
        leaves = {leaf.name: values[leaf.name] for leaf in graph.leaves}
        after = evaluate(result, leaves)
        for name, other in zip(graph.outputs, result.outputs, strict=True):
            yield name, values[name], after[other]
    elif isinstance(result, Op) and ops:
        alone = replace(graph, ops=(result,), outputs=(result.output.name,))
        made = evaluate(alone, {t.name: values[t.name] for t in result.operands})
        yield ops[0].output.name, values[ops[0].output.name], made[result.output.name]
    elif isinstance(result, str) and ops and result in values:
        yield ops[0].output.name, values[ops[0].output.name], values[result]
    else:
        raise GraphError(
            f"the verdict carries {result!r}, which says nothing that could be compared",
            expected="a Cut, a choice, a Transfer, an Op, a Graph, or a tensor's name",
        )


def _moved(tensor: Tensor, array: Array, step: Transfer, graph: Graph, source: Source) -> str | None:
    """The tensor laid as the transfer wants it, and what it is afterwards."""
    ranks = tuple(source.ranks(3) for _ in step.before)
    on = draw.digits(replace(graph, ops=graph.ops), ranks, source)
    if PARTIAL in step.before and array.dtype != object:
        raise GraphError(f"{tensor.name} holds ids, which are no summands")
    found = assemble(apply_transfer(draw.laid(tensor, array, step.before, on, source), step, on), on)
    return None if alike(found, array) else f"  was {array.tolist()}\n  is  {found.tolist()}"


def _at(where: str, found: str | None) -> str | None:
    return None if found is None else f"{where}\n{found}"


def _named(part: Any) -> str:
    return str(getattr(part, "name", part))
