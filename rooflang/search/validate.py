"""No plan leaves the optimizer unchecked: its certificate is replayed, and it is evaluated against the unsharded graph.

The evaluation runs one block of every kind, chained as in the graph, on shrunken dims and a shrunken mesh: an axis
keeps its cuts but has two coordinates. What holds there for a layout holds for the real extents, as cuts and
collectives do not depend on them; extents that do not divide are refused by the costs before. It is run twice: over
exact numbers (`rooflang.ir.exact`), where every tensor has to be equal, and over floats, where it may differ by
rounding.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rooflang.errors import PlacementError
from rooflang.hw import Cluster
from rooflang.ir.blocks import Blocks
from rooflang.ir.evaluate import random_leaves
from rooflang.ir.graph import Graph
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.lifted import check_layout, cut_labels
from rooflang.ir.op import Op
from rooflang.ir.shrink import shrunk
from rooflang.ir.tensor import Tensor
from rooflang.ir.verify import verify
from rooflang.place.certificate import certificate, replay
from rooflang.place.plan import Plan

#: Coordinates that each mesh axis keeps when a plan is evaluated.
_SMALL_AXIS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What a plan was checked on: the dims and the mesh of the evaluation, and the seed of its leaves.

    There is one only if everything was equal.
    """

    dims: Mapping[str, int]
    mesh: tuple[int, ...]
    seed: int

    def to_json(self) -> dict[str, Any]:
        """What a certificate says about it, in its field `evaluated`."""
        return {
            "verdict": "equal",
            "arithmetic": ["exact", "float64"],
            "dims": dict(self.dims),
            "mesh": list(self.mesh),
            "seed": self.seed,
        }


#: What was validated in this process, by the script and the seed: a search comes to one plan at many batch sizes.
_KNOWN: dict[tuple[str, int], Validation] = {}


def validate(plan: Plan, blocks: Blocks, cluster: Cluster, *, seed: int = 0) -> Validation:
    """Replay the plan's certificate and evaluate the plan. Raises `PlacementError` that names the first difference."""
    script = certificate(plan, blocks)
    if certificate(replay(script, blocks, cluster), blocks) != script:
        raise PlacementError("the certificate replays to another plan", where=plan.origin)
    key = (json.dumps(script, sort_keys=True), seed)  # it has the fingerprint of the graph in it
    if key not in _KNOWN:
        _KNOWN[key] = evaluated(plan, blocks, seed=seed)
    return _KNOWN[key]


def evaluated(plan: Plan, blocks: Blocks, *, seed: int = 0) -> Validation:
    """Evaluate a plan on shrunken dims, exactly and in floats. Raises `PlacementError` that names the first
    difference."""
    axis_sizes = tuple(min(axis.size, _SMALL_AXIS) for axis in plan.mesh.axes)
    sample = _Sample(plan, blocks)
    whole = sample.graph()
    graph = shrunk(whole, axis_sizes, cut_labels(whole, sample.modes, [*sample.paths.values(), *sample.exits.values()]))
    for exact in (True, False):
        leaves = random_leaves(graph, seed, exact=exact)
        check_layout(graph, axis_sizes, sample.modes, sample.paths, sample.exits, leaves, sample.aliases)
    return Validation(dims=graph.sizes, mesh=axis_sizes, seed=seed)


class _Sample:
    """One block of every kind, in program order, each reading what the one before left at the port."""

    def __init__(self, plan: Plan, blocks: Blocks) -> None:
        self.blocks = blocks
        self.ops: list[Op] = []
        self.modes: dict[str, Mode] = {}
        self.paths: dict[tuple[str, int], tuple[Transfer, ...]] = {}
        self.exits: dict[str, tuple[Transfer, ...]] = {}
        self.aliases: dict[str, str] = {}
        at_port: dict[int, Tensor] = {}
        for kind in blocks.kinds:
            block = plan.blocks[kind.name]
            feed = {t.name: at_port[blocks.port_group[(kind.name, t.name)]] for t in kind.inputs}
            self.ops += [_fed(op, feed) for op in kind.ops]
            for name, mode in block.modes.items():
                self.modes[name] = replace(mode, op=_fed(mode.op, feed))
            self.paths.update(block.paths)
            self.exits.update(block.exits)
            self.aliases.update({name: feed[t].name if t in feed else t for name, t in block.aliases.items()})
            for tensor in kind.outputs:
                at_port[blocks.port_group[(kind.name, tensor.name)]] = tensor

    def graph(self) -> Graph:
        """The sample as a graph of its own; what nothing in it reads comes out."""
        full = self.blocks.graph
        used = {label for op in self.ops for label in op.labels}
        read = {t.name for op in self.ops for t in op.operands}
        outputs = tuple(op.output.name for op in self.ops if op.output.name not in read)
        dims = tuple(d for d in full.dims if d.label in used)
        return verify(Graph(name=f"sample of {full.name}", dims=dims, ops=tuple(self.ops), outputs=outputs))


def _fed(op: Op, feed: Mapping[str, Tensor]) -> Op:
    """The operator with port tensors replaced, inside fused operators too."""
    return replace(
        op,
        operands=tuple(feed.get(t.name, t) for t in op.operands),
        attrs=tuple((key, _fed(value, feed) if isinstance(value, Op) else value) for key, value in op.attrs),
    )
