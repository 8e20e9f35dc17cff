"""Random walks of primitives over small graphs, and what has to hold after each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from rooflang.agent import Action, Session
from rooflang.agent.proposals import candidates
from rooflang.errors import RefusedError, UnknownNameError
from rooflang.ir.cut import CutKind
from rooflang.ir.evaluate import random_leaves
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.lifted import check_layout, cut_labels
from rooflang.ir.op import signature
from rooflang.ir.shrink import shrunk
from rooflang.place.certificate import certificate, replay
from rooflang.place.check import collectives
from rooflang.search.sample import Sample

from .graphs import decode, layers

#: How often an action is spoilt, to be refused.
_SPOILT = 0.12

#: What spoils an action.
_STRANGE = ("", "x", "y", "batch", "ffn", "R", "O", "P", "this", "dram", "nobody", "graph", "batch→expert")

_SPOILABLE = ("target", "dim", "axis", "reader", "inner", "after", "memory", "only")


def experts() -> Graph:
    """A small mixture of experts: router, dispatch, experts, combine."""
    g = GraphBuilder("experts", batch=8, hidden=8, ffn=8, expert=4)
    x = g.input("x", "batch hidden")
    logits = g.op("logits", "matmul", [x, g.weight("w_r", "hidden expert")], "batch expert")
    gates = g.op("route", "route", [logits], "batch expert", top_k=2)
    rows = g.op("dispatch", "dispatch", [x, gates], "batch expert hidden", fill=0.5)
    up = g.op("up", "matmul", [rows, g.weight("w1", "expert hidden ffn")], "batch expert ffn", fill=0.5)
    down = g.op("down", "matmul", [up, g.weight("w2", "expert ffn hidden")], "batch expert hidden", fill=0.5)
    return g.build(g.op("combine", "combine", [down, gates], "batch hidden"))


GRAPHS = (layers(2), decode(), experts())


def verified(session: Session, *, exact: bool = False) -> None:
    """Raise unless the plan replays from its certificate and computes what the graph does."""
    blocks = session.placed.blocks
    script = session.certificate()
    assert certificate(replay(script, blocks, session.problem.cluster), blocks) == script
    sizes = tuple(min(axis.size, 2) for axis in session.plan.mesh.axes)
    sample = Sample(session.plan, blocks)
    whole = sample.graph()
    laid = sample.laid(sizes)
    small = shrunk(whole, sizes, cut_labels(whole, laid))
    leaves = random_leaves(small, 0, exact=exact)
    check_layout(small, laid, leaves)


def random_action(session: Session, rng: Random, counts: Counter[str]) -> Action:
    """An action that might apply, of a primitive that was rare so far; or a spoilt one."""
    pool: dict[str, list[Action]] = {}
    for action in candidates(session):
        pool.setdefault(action.primitive, []).append(action)
    ops = [op.name for op in session.world.graph.ops]
    first, second = sorted(rng.sample(range(len(ops)), 2))
    pool.setdefault("add_control_edge", []).append(
        Action(primitive="add_control_edge", target=ops[first], after=ops[second])
    )
    pool.setdefault("set_compute", []).append(
        Action(primitive="set_compute", target=rng.choice(ops), stream=rng.randrange(3))
    )
    for name in sorted(collectives(session.plan, session.placed.blocks))[:3]:
        tensor, _, step = name.rpartition(" ")
        pool["set_compute"].append(Action(primitive="set_compute", target=tensor, step=step, stream=rng.randrange(3)))
    if parting := _parting(session):
        pool.setdefault("split_kernel", []).extend(parting)
    sums = [action for action in pool.get("split_kernel", ()) if _sums(session, action)]
    if sums and rng.random() < 0.15:  # without partial sums there is nothing to be reduced
        action = rng.choice(sums)
    else:
        rare = min(pool, key=lambda name: (counts[name], name))
        action = rng.choice(pool[rare if rng.random() < 0.5 else rng.choice(sorted(pool))])
    if rng.random() < 0.1 and not action.after and action.stage is None and not action.dim:
        action = replace(action, only="this")
    if rng.random() < _SPOILT:
        field = rng.choice(_SPOILABLE)
        action = replace(action, **{field: rng.choice((*_STRANGE, *ops)) or "nobody"})
    return action


def _parting(session: Session) -> list[Action]:
    """Sums that may be taken apart, in halves."""
    graph = session.world.graph
    rows = ((op, row) for op in graph.ops for row in signature(op) if row.kind is CutKind.SUM)
    return [
        Action(primitive="split_kernel", target=op.name, dim=row.dim, parts=(1, graph.sizes[row.dim] - 1))
        for op, row in rows
        if 1 < graph.sizes[row.dim] <= 8
    ]


def _sums(session: Session, action: Action) -> bool:
    rows = signature(session.world.graph.op_by_name[action.target])
    return any(row.kind is CutKind.SUM and row.dim == action.dim for row in rows)


@dataclass
class Tally:
    """Actions by primitive that were tried and taken, and refusals by their code."""

    tried: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


def walk(graph: Graph, rng: Random, steps: int, tally: Tally) -> None:
    """Take random actions; after each the state is as it was, or the plan is right. Then all the way back."""
    session = Session.start(graph, hardware="b300", gpus=rng.choice((2, 4, 8)))
    initial = session.state_bytes()
    for number in range(steps):
        action, before = random_action(session, rng, tally.tried), session.state_bytes()
        tally.tried[action.primitive] += 1
        try:
            session.apply(action)
        except (RefusedError, UnknownNameError) as error:
            assert session.state_bytes() == before
            assert str(error)
            tally.refused[error.refusal if isinstance(error, RefusedError) else error.code] += 1
        else:
            tally.taken[action.primitive] += 1
            verified(session, exact=number % 10 == 9)
    assert session.simulate(check_memory=False).step_s > 0
    session.undo(len(session.entries))
    assert session.state_bytes() == initial
