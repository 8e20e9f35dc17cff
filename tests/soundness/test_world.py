"""The machine with memory, and the claims about order that run on it."""

from __future__ import annotations

from rooflang.ir import Graph, GraphBuilder
from rooflang.rules.examples import decode_step
from rooflang.rules.record import Ok
from rooflang.soundness.orders import (
    AddedEdges,
    Owned,
    RemovedEdges,
    RemovedMoves,
    Repeated,
    random_edges,
    random_graph,
)
from rooflang.soundness.search import falsify, shrunk
from rooflang.soundness.source import RandomSource
from rooflang.soundness.world import Program


def draws() -> Graph:
    g = GraphBuilder("draws", batch=2, width=2)
    x = g.input("x", "batch width")
    return g.build(*(g.op(name, "stateful_sample", [x], "batch", "int32") for name in ("one", "two")))


def test_a_reader_sees_what_lies_in_memory_when_it_reads() -> None:
    program = Program(graph=decode_step())
    assert len(program.outcomes()) == 2  # the copy is of the old cache, or of the new one
    assert len(program.outcomes([("save", "append")])) == 1
    assert len(program.outcomes([("append", "save")])) == 1
    assert program.outcomes([("save", "append")]) != program.outcomes([("append", "save")])


def test_a_cycle_leaves_no_order() -> None:
    assert Program(graph=decode_step()).outcomes([("attend", "append")]) == frozenset()


def test_a_generator_is_moved_on_by_every_draw() -> None:
    program = Program(graph=draws())
    assert len(program.outcomes()) == 2
    one, two = program.graph.ops
    assert program.run([one, two]) != program.run([one, one, two])


def test_an_append_run_twice_appends_twice_and_a_pure_operator_does_not() -> None:
    program = Program(graph=decode_step())
    save, append, attend, copy = program.graph.ops
    assert program.run([save, append, append, attend, copy]) != program.run([save, append, attend, copy])
    assert program.run([save, append, attend, attend, copy]) == program.run([save, append, attend, copy])


def test_coordinates_have_memory_of_their_own() -> None:
    program = Program(graph=decode_step())
    everyone = program.run(program.graph.ops, coordinates=3)
    assert len(set(everyone)) == 1
    owned = program.run(program.graph.ops, coordinates=3, owned="append")
    assert owned[0] == everyone[0]
    assert owned[1] == owned[2] != everyone[1]  # its cache has not been written
    assert program.run(program.graph.ops, coordinates=3, owned="attend") == everyone


def test_readers_of_a_move_that_is_left_out_read_its_operand() -> None:
    program = Program(graph=decode_step(), without=frozenset({"copy"}))
    assert [op.name for op in program.ops] == ["save", "append", "attend"]
    assert program.outcomes() == Program(graph=decode_step()).outcomes()
    gone = Program(graph=decode_step(), without=frozenset({"save"}))
    assert gone.outcomes() != Program(graph=decode_step()).outcomes()


def test_random_graphs_and_their_edges_have_an_order() -> None:
    kinds = set()
    for seed in range(60):
        source = RandomSource(seed)
        graph = random_graph(source)
        kinds |= {op.kind for op in graph.ops}
        assert Program(graph=graph).outcomes(random_edges(graph, source))
    assert kinds == {"activation", "attention", "to_dram", "kv_append", "conv_push", "stateful_sample"}


def test_a_counterexample_is_told_in_operators_and_edges() -> None:
    claim = RemovedEdges(check=lambda graph, *edge, control: Ok(result=edge))
    found = falsify(claim, examples=300)
    assert found is not None
    small = shrunk(claim, found)
    assert small.message.startswith("without ('op")
    assert "before" in small.message
    assert len(small.message.splitlines()) <= 5


def test_the_rules_hold() -> None:
    for claim in (AddedEdges(), RemovedEdges(), RemovedMoves(), Repeated(), Owned()):
        assert falsify(claim, examples=400, seed=9) is None
