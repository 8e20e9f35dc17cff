"""What is left of a frozen e-graph without the views that nothing can make or no output needs. Nothing is added.

An e-node can be computed when all views below it can: a view that is asked for (a partial weight, say) need not exist.
Everything here is in the integers of `rooflang.rules.theory`, so that blocks of equal structure share it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rooflang.eqsat.core import TRANSFERS
from rooflang.eqsat.snapshot import Snapshot

#: (tensor, from spec, to spec, constructor)
Move = tuple[int, int, int, str]

Node = tuple[str, tuple[int, ...], tuple[int, ...], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Sorted e-nodes. `first` gives, per tensor number, the lowest number in the same class.

    `runs`: (kernel, output spec, operand specs). `moves`: (tensor, from spec, to spec, constructor). `holds`: (leaf,
    spec, tier). `arrivals`: (port, spec). `exits`: (output's tensor, spec). `classes` and `views` count before pruning.
    """

    first: tuple[int, ...]
    runs: tuple[tuple[int, int, tuple[int, ...]], ...]
    moves: tuple[Move, ...]
    holds: tuple[tuple[int, int, int], ...]
    arrivals: tuple[tuple[int, int], ...]
    exits: tuple[tuple[int, int], ...]
    classes: int
    views: int


def prune(snapshot: Snapshot, axes: int) -> Pruned:
    """Read a snapshot of a program over that many axes."""
    view_of = {row.inputs: row.output for row in snapshot.rows["View"]}
    parts = {view: parts for parts, view in view_of.items()}
    nodes = list(_nodes(snapshot))
    made = _computable(nodes)
    wanted = [
        (tensor, spec) for tensor, decided, spec in (row.inputs for row in snapshot.rows["Root"]) if decided == axes
    ]
    exits = [exit_ for exit_ in wanted if view_of.get(exit_) in made]  # no view yet: a limit came first
    kept = _reachable([node for node in nodes if made.issuperset(node[2])], [view_of[exit_] for exit_ in exits])
    terms = {int(name[2:]): rows[0].output for name, rows in snapshot.rows.items() if name.startswith("$t")}
    lowest: dict[int, int] = {}
    for number in sorted(terms):
        lowest.setdefault(terms[number], number)
    runs, moves, holds, arrivals = [], [], [], []
    for constructor, numbers, children, view in kept:
        if constructor == "Hold":
            holds.append((numbers[0], numbers[1], numbers[2]))
        elif constructor == "PortAt":
            arrivals.append((numbers[0], numbers[1]))
        elif constructor in TRANSFERS:
            moves.append((lowest[parts[view][0]], numbers[0], numbers[1], constructor))
        else:
            runs.append((numbers[0], numbers[1], tuple(parts[child][1] for child in children)))
    return Pruned(
        first=tuple(lowest[terms[number]] for number in sorted(terms)),
        runs=tuple(sorted(runs)),
        moves=tuple(sorted(moves)),
        holds=tuple(sorted(holds)),
        arrivals=tuple(sorted(arrivals)),
        exits=tuple(sorted((lowest[tensor], spec) for tensor, spec in exits)),
        classes=len(set(terms.values())) + len(parts),
        views=len(parts),
    )


def _nodes(snapshot: Snapshot) -> Iterator[Node]:
    """(constructor, numbers, views below, view) of every e-node that makes a view; `View` itself only names one."""
    for name, rows in snapshot.rows.items():
        count = 3 if name == "Hold" else 2
        if name in ("Hold", "PortAt", *TRANSFERS) or name.startswith("Run"):
            for row in rows:
                yield name, row.inputs[:count], row.inputs[count:], row.output


def _computable(nodes: list[Node]) -> set[int]:
    """Views that some e-node makes from views that can be made: the least fixed point, so that cycles make nothing."""
    waiting = []
    readers: dict[int, list[int]] = {}
    for index, (_, _, children, _) in enumerate(nodes):
        below = children if len(children) == 1 else set(children)
        waiting.append(len(below))
        for child in below:
            readers.setdefault(child, []).append(index)
    ready = [nodes[index][3] for index, count in enumerate(waiting) if not count]
    done: set[int] = set()
    while ready:
        view = ready.pop()
        if view not in done:
            done.add(view)
            for index in readers.get(view, ()):
                waiting[index] -= 1
                if not waiting[index]:
                    ready.append(nodes[index][3])
    return done


def _reachable(nodes: list[Node], roots: list[int]) -> list[Node]:
    makers: dict[int, list[Node]] = {}
    for node in nodes:
        makers.setdefault(node[3], []).append(node)
    seen: set[int] = set()
    kept: list[Node] = []
    stack = list(roots)
    while stack:
        view = stack.pop()
        if view not in seen:
            seen.add(view)
            for node in makers.get(view, ()):
                kept.append(node)
                stack.extend(node[2])
    return kept
