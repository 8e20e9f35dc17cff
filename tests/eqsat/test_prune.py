"""Pruning: what cannot be computed goes, what no output needs goes, nothing comes."""

from __future__ import annotations

from rooflang.eqsat.engine import Engine
from rooflang.eqsat.program import ALL, program
from rooflang.eqsat.prune import Pruned, prune
from rooflang.eqsat.snapshot import Row, Snapshot
from rooflang.rules.theory import Theory

from .blocks import layer, mlps


def snapshot(*, hold: bool, root: int) -> Snapshot:
    """Tensors 0 (a leaf) and 1 over one axis; views 10 and 11 of tensor 0, in a cycle, and 12 to 14 of tensor 1."""

    def row(output: int, *inputs: int) -> Row:
        return Row(inputs=inputs, output=output)

    return Snapshot(
        rows={
            "$t0": (row(100),),
            "$t1": (row(101),),
            "View": (row(10, 100, 0), row(11, 100, 3), row(12, 101, 0), row(13, 101, 1), row(14, 101, 2)),
            "Hold": (row(10, 0, 0, 0),) if hold else (),
            "AllGather": (row(10, 3, 0, 11),),
            "Slice": (row(11, 0, 3, 10),),
            "Run1": (row(12, 0, 0, 11),),
            "Run2": (row(13, 1, 0, 10, 14), row(14, 2, 0, 13, 12)),  # each needs the other
            "Root": (row(0, root, 0, 0), row(0, root, 1, 0), row(0, 101, 1, 2)),
        }
    )


def size(pruned: Pruned) -> tuple[int, ...]:
    return tuple(len(rows) for rows in (pruned.runs, pruned.moves, pruned.holds, pruned.exits))


def test_a_cycle_alone_makes_nothing() -> None:
    assert size(prune(snapshot(hold=False, root=101), 1)) == (0, 0, 0, 0)


def test_a_cycle_that_something_feeds_stays() -> None:
    pruned = prune(snapshot(hold=True, root=101), 1)
    assert pruned.runs == ((0, 0, (3,)),)
    assert pruned.moves == ((0, 0, 3, "Slice"), (0, 3, 0, "AllGather"))
    assert pruned.exits == ((1, 0),)
    assert (pruned.classes, pruned.views) == (7, 5)


def test_two_kernels_that_wait_for_each_other_make_nothing() -> None:
    assert 2 not in {spec for _, spec in prune(snapshot(hold=True, root=101), 1).exits}


def test_what_no_output_needs_goes() -> None:
    assert size(prune(snapshot(hold=True, root=100), 1)) == (0, 2, 1, 1)


def test_every_row_left_is_a_row_of_the_e_graph() -> None:
    """Nothing is added after freezing: pruned records are e-nodes, and there are fewer of them."""
    kind = layer(mlps(2))
    engine = Engine()
    engine.load(program(Theory.of(kind, 2), frozenset()).commands)
    while engine.step(ALL):
        pass
    frozen = engine.freeze()
    pruned = prune(frozen, 2)
    runs = {row.inputs[:2] for name, rows in frozen.rows.items() if name.startswith("Run") for row in rows}
    assert {run[:2] for run in pruned.runs} <= runs
    moves = {(name, *row.inputs[:2]) for name, rows in frozen.rows.items() for row in rows if len(row.inputs) == 3}
    assert {(constructor, before, after) for _, before, after, constructor in pruned.moves} <= moves
    assert set(pruned.holds) <= {row.inputs for row in frozen.rows["Hold"]}
    for records in (pruned.runs, pruned.moves, pruned.holds, pruned.arrivals, pruned.exits):
        assert list(records) == sorted(records)
    count = sum(len(frozen.rows[name]) for name in ("AllGather", "AllReduce", "AllToAll", "Broadcast", "Slice"))
    assert len(pruned.moves) <= count + len(frozen.rows["ReduceScatter"])
