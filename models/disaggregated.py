"""Prefill and decode in one graph: a prompt is read, and the first decode step goes on from the caches that it left.

Placed on one set of GPUs it is a server that does both; cut between the two halves, as a pipeline of two stages, it is
prefill and decode disaggregated: the caches cross the fabric as what one stage hands to the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rooflang.assumptions import PHYSICAL, Assumptions
from rooflang.errors import ModelError
from rooflang.ir.graph import Graph
from rooflang.ir.op import Op
from rooflang.ir.tensor import Role, Tensor
from rooflang.ir.verify import verify
from rooflang.models.registry import Model
from rooflang.models.workload import Stage, Workload

PREFILL: Stage = "prefill"
DECODE: Stage = "decode"

_KEPT = frozenset({Role.KV_CACHE, Role.STATE})


def prefill_then_decode(model: Model, context: int, assumptions: Assumptions = PHYSICAL) -> Graph:
    """The verified graph of a prompt of `context` tokens and the decode step after it, for one request.

    Blocks and tensors are those of the two steps with `prefill.` and `decode.` before their names; weights are there
    twice, as each half has its own. The caches of the second half are what the first one leaves, and its token is the
    first one's. Raises `ModelError` for a model whose prompt does not leave what its decode step reads.
    """
    first, second = (
        model.build(Workload(stage=stage, context=context, batch=1), assumptions) for stage in (PREFILL, DECODE)
    )
    handed = dict(_handed(first, second, model.name))
    outputs = {name: replace(first.tensors[name], role=Role.ACTIVATION) for name in handed.values()}
    ops = [_named(op, PREFILL, {}, outputs) for op in first.ops]
    feed = {name: replace(outputs[left], name=f"{PREFILL}.{left}") for name, left in handed.items()}
    ops += [_named(op, DECODE, feed, {}) for op in second.ops]
    return verify(
        Graph(
            name=f"{model.name} {PREFILL} then {DECODE}",
            dims=tuple({dim.label: dim for dim in (*first.dims, *second.dims)}.values()),
            ops=tuple(ops),
            outputs=tuple(f"{DECODE}.{name}" for name in second.outputs),
        )
    )


def _handed(first: Graph, second: Graph, where: str) -> Iterator[tuple[str, str]]:
    """(leaf of the second graph, output of the first one that it is): caches by layer, dims and dtype in their order,
    and the token."""
    left: dict[object, list[str]] = defaultdict(list)
    for name in first.outputs:
        left[_place(first, first.producer[name], first.tensors[name])].append(name)
    for leaf in second.leaves:
        if leaf.role in _KEPT:
            places = [_place(second, op, leaf) for op, _ in second.consumers[leaf.name]]
            found = next((left[place] for place in places if left.get(place)), None)
            if found is None:
                raise ModelError(f"the prompt leaves nothing for {leaf.name}", where=where)
            yield leaf.name, found.pop(0)
    tokens = [name for names in left.values() for name in names]
    wanted = [leaf.name for leaf in second.leaves if leaf.role is Role.INPUT and leaf.name == "tokens"]
    if len(tokens) != 1 or len(wanted) != 1:
        raise ModelError(f"the prompt leaves {', '.join(tokens) or 'no token'} that no step reads", where=where)
    yield wanted[0], tokens[0]


def _place(graph: Graph, op: Op, tensor: Tensor) -> object:
    return (op.block, tuple(sorted(tensor.dims)), tensor.dtype if tensor.role is not Role.INPUT else "")


def _named(op: Op, prefix: str, feed: Mapping[str, Tensor], changed: Mapping[str, Tensor]) -> Op:
    """The operator under names of its half, reading what `feed` says, its tensors as `changed` says."""

    def named(tensor: Tensor) -> Tensor:
        known = changed.get(tensor.name, tensor)
        return feed.get(tensor.name) or replace(known, name=f"{prefix}.{known.name}")

    return replace(
        op,
        name=f"{prefix}.{op.name}",
        operands=tuple(named(tensor) for tensor in op.operands),
        output=named(op.output),
        block=f"{prefix}.{op.block}" if op.block else prefix,
    )
