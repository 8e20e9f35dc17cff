"""Lowering: what every stage runs, what it reads and what it shares; nothing is read before it is made."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from rooflang.errors import PlacementError
from rooflang.hw import Cluster
from rooflang.ir.blocks import Blocks, split_blocks
from rooflang.ir.cut import REPLICATED
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.layout import make_mode
from rooflang.ir.op import signature
from rooflang.ir.tensor import RESIDENT_ROLES
from rooflang.place.connect import connect
from rooflang.place.grid import grid_plan
from rooflang.place.lower import PlacedGraph, lower
from rooflang.place.plan import Plan

from .graphs import decode, mlp, random_plan, small_v4

R = REPLICATED
B300 = Cluster.of("b300", 16)


def check_well_formed(placed: PlacedGraph) -> None:
    """Every read was written before, on its stage and in its spec; every value is written once; stages only look
    ahead by sends."""
    graph, made = placed.blocks.graph, set(placed.inputs)
    for op in placed.ops:
        for value in op.reads:
            assert value in made, f"{op.name} reads {value}"
            assert value[2] == op.stage
        assert op.write not in made, f"{op.write} is written twice"
        assert op.write[2] == op.stage + (op.kind == "send")
        made.add(op.write)
        assert [op.mode is not None, op.transfer is not None] == [op.kind == "kernel", op.kind == "transfer"]
        if op.mode is not None:
            names = placed.blocks.rename[op.block]
            reads = [
                (names[tensor.name], spec, op.stage)
                for tensor, spec in zip(op.mode.op.operands, op.mode.operands, strict=True)
                if tensor.role not in RESIDENT_ROLES or names[tensor.name] in graph.producer
            ]
            assert list(op.reads) == reads or placed.plan.blocks[placed.blocks.kind_of[op.block]].aliases
        if op.transfer is not None:
            assert (op.reads[0][1], op.write[1]) == (op.transfer.before, op.transfer.after)
            assert (op.aliases == op.reads[0]) == op.transfer.free
    assert placed.outputs <= made
    assert {value[0] for value in placed.outputs} == set(graph.outputs) or any(
        block.aliases for block in placed.plan.blocks.values()
    )


@pytest.mark.parametrize("make", [mlp, decode, lambda: small_v4("decode"), lambda: small_v4("prefill")])
@pytest.mark.parametrize("stages", [1, 2])
def test_random_plans_lower_to_well_formed_graphs(make, stages: int) -> None:  # type: ignore[no-untyped-def]
    graph = make()
    found = 0
    for seed in range(20):
        drawn = random_plan(Random(seed), graph, B300, (4, 4 // stages), stages=stages)
        if drawn is None:
            continue
        found += 1
        placed = lower(*drawn)
        check_well_formed(placed)
        kernels = Counter(op.name for op in placed.ops if op.kind == "kernel")
        assert set(kernels) == {op.output.name for op in graph.ops}
        assert set(kernels.values()) == {1}
    assert found > 10


def test_operators_run_in_program_order_with_the_transfers_they_need() -> None:
    graph = mlp(2)
    plan = grid_plan(graph, B300, dp=16, cp=1, pp=1)
    placed = lower(plan, split_blocks(graph))
    assert [op.name for op in placed.ops] == [op.output.name for op in graph.ops]
    assert {op.kind for op in placed.ops} == {"kernel"}
    assert [op.group for op in placed.ops] == [op.group for op in graph.ops]
    assert [op.block for op in placed.ops] == [op.block for op in graph.ops]
    # x is read by the embedding alone; weights of every layer stay.
    assert list(placed.inputs) == [("x", ("batch",), 0)]
    assert [r.name for r in placed.residents] == ["u0", "d0", "u1", "d1"]
    assert placed.outputs == {("last", ("batch",), 0)}


def two_readers(first: str, second: str, made: str = "batch") -> PlacedGraph:
    """One value of two readers, along one axis of four ranks; dims name what each does."""
    g = GraphBuilder("readers", batch=8, hidden=16)
    x = g.op("x", "activation", [g.input("in", "batch hidden")], "batch hidden")
    a = g.op("a", "activation", [x], "batch hidden")
    b = g.op("b", "activation", [x], "batch hidden")
    graph = g.build(a, b)
    blocks = split_blocks(graph)
    kind = blocks.kinds[0]
    ways = {"x": made, "a": first, "b": second}
    modes = {op.output.name: make_mode(op, [_way(op, ways[op.name])]) for op in kind.ops}
    boundary = {p.name: modes[p.name].out for p in kind.outputs}
    cluster = Cluster.of("b300", 4)
    mesh = grid_plan(graph, cluster, dp=4, cp=1, pp=1).mesh
    plan = Plan(
        mesh=mesh,
        stages=(blocks.sequence,),
        blocks={kind.name: connect(kind, modes, boundary)},
        boundary={blocks.port_group[(kind.name, name)]: spec for name, spec in boundary.items()},
    )
    return lower(plan, blocks)


def _way(op, dim: str):  # type: ignore[no-untyped-def]
    return R if dim == R else next(cut for cut in signature(op) if cut.dim == dim)


def test_readers_of_one_spec_share_its_transfer() -> None:
    assert [op.name for op in two_readers(R, R).ops] == ["x", "x all_gather", "a", "b"]
    assert [op.name for op in two_readers(R, "hidden").ops] == ["x", "x all_gather", "a", "x all_to_all", "b"]
    placed = two_readers("batch", "hidden", made=R)
    assert [op.name for op in placed.ops] == ["x", "x slice", "a", "x slice", "b"]
    assert [op.aliases for op in placed.ops if op.kind == "transfer"] == [("x", (R,), 0)] * 2
    assert [op.group for op in placed.ops if op.kind == "transfer"] == ["slices"] * 2
    assert [op.group for op in two_readers(R, R).ops if op.kind == "transfer"] == ["collectives"]


# -- leaves -----------------------------------------------------------------------------------------------------------


def test_a_leaf_stays_once_however_often_it_is_read() -> None:
    g = GraphBuilder("shared", batch=8, hidden=16)
    w, ids = g.weight("w", "hidden hidden2"), g.input("x", "batch hidden")
    g.dim("hidden2", 16)
    y = g.op("y", "matmul", [ids, w], "batch hidden2")
    z = g.op("z", "matmul", [ids, w], "batch hidden2")
    graph = g.build(g.op("sum", "add", [y, z], "batch hidden2"))
    placed = lower(grid_plan(graph, Cluster.of("b300", 4), dp=4, cp=1, pp=1), split_blocks(graph))
    assert [(r.name, r.spec, r.stage, r.tier) for r in placed.residents] == [("w", (R,), 0, "hbm")]
    assert list(placed.inputs) == [("x", ("batch",), 0)]


def test_a_leaf_of_several_stages_is_on_each_of_them() -> None:
    g = GraphBuilder("tied", batch=8, hidden=16)
    w, ids = g.weight("w", "hidden hidden2"), g.input("x", "batch hidden")
    g.dim("hidden2", 16)
    g.block = "layers.0"
    y = g.op("y", "matmul", [ids, w], "batch hidden2")
    g.block = "layers.1"
    z = g.op("z", "matmul", [ids, w], "batch hidden2")
    graph = g.build(g.op("sum", "add", [y, z], "batch hidden2"))
    placed = lower(grid_plan(graph, Cluster.of("b300", 4), dp=2, cp=1, pp=2), split_blocks(graph))
    assert [(r.name, r.stage) for r in placed.residents] == [("w", 0), ("w", 1)]
    assert sorted(placed.inputs) == [("x", ("batch",), 0), ("x", ("batch",), 1)]


def test_a_leaf_read_in_two_layouts_is_there_in_both() -> None:
    g = GraphBuilder("tied", batch=8, hidden=16)
    w, ids = g.weight("w", "hidden hidden2"), g.input("x", "batch hidden")
    g.dim("hidden2", 16)
    y = g.op("y", "matmul", [ids, w], "batch hidden2")
    z = g.op("z", "matmul", [ids, w], "batch hidden2")
    graph = g.build(y, z)
    blocks = split_blocks(graph)
    kind = blocks.kinds[0]
    modes = {op.output.name: make_mode(op, [_way(op, dim)]) for op, dim in zip(kind.ops, ("batch", "hidden2"))}
    boundary = {p.name: modes[p.name].out for p in kind.outputs}
    plan = replace(
        grid_plan(graph, Cluster.of("b300", 4), dp=4, cp=1, pp=1),
        blocks={kind.name: connect(kind, modes, boundary)},
        boundary={blocks.port_group[(kind.name, name)]: spec for name, spec in boundary.items()},
    )
    assert [(r.name, r.spec) for r in lower(plan, blocks).residents] == [("w", (R,)), ("w", ("hidden2",))]


def test_a_leaf_may_rest_in_another_tier() -> None:
    graph = decode(2)
    blocks = split_blocks(graph)
    plan = grid_plan(graph, Cluster.of("b300", 8), dp=8, cp=1, pp=1)
    block = replace(plan.blocks["layers.0"], tiers={"cache0": "dram"})
    placed = lower(replace(plan, blocks={**plan.blocks, "layers.0": block}), blocks)
    assert {r.name: r.tier for r in placed.residents if r.name.startswith("cache")} == {
        "cache0": "dram",
        "cache1": "hbm",
    }


# -- memory that is shared --------------------------------------------------------------------------------------------


def test_an_append_takes_over_its_cache() -> None:
    graph = decode(1)
    placed = lower(grid_plan(graph, Cluster.of("b300", 8), dp=8, cp=1, pp=1), split_blocks(graph))
    (append,) = (op for op in placed.ops if op.name == "after0")
    assert append.aliases == ("cache0", ("batch",), 0)
    assert append.reads == (("kv0", ("batch",), 0),)
    (attend,) = (op for op in placed.ops if op.name == "attend0")
    assert attend.reads == (("q0", ("batch",), 0), ("after0", ("batch",), 0))


def without_copies(plan: Plan, blocks: Blocks, outputs: dict[str, str]) -> Plan:
    """The plan with these identities (output → operand, representatives' names) removed from their kinds."""
    changed = {}
    for name, block in plan.blocks.items():
        own = {op.output.name for op in blocks.by_name[name].ops}
        aliases = {copy: operand for copy, operand in outputs.items() if copy in own}
        modes = {key: mode for key, mode in block.modes.items() if key not in aliases}
        changed[name] = replace(block, modes=modes, aliases=aliases)
    return replace(plan, blocks=changed)


def test_readers_of_a_removed_copy_read_its_operand() -> None:
    graph = mlp(3)
    blocks = split_blocks(graph)
    plan = without_copies(grid_plan(graph, B300, dp=16, cp=1, pp=1), blocks, {"copy0": "up0"})
    placed = lower(plan, blocks)
    check_well_formed(placed)
    assert not [op.name for op in placed.ops if op.name.startswith("copy")]
    for layer in range(3):
        (down,) = (op for op in placed.ops if op.name == f"down{layer}")
        assert down.reads == ((f"up{layer}", ("batch",), 0),)


def copying_ports() -> Graph:
    """Each layer hands over a copy; the last one's copy is an output, and the head reads a copy of a copy."""
    g = GraphBuilder("ports", batch=16, hidden=16)
    g.block = "embed"
    x = g.op("x", "activation", [g.input("in", "batch hidden")], "batch hidden")
    for layer in range(3):
        g.block = f"layers.{layer}"
        y = g.op(f"y{layer}", "activation", [x], "batch hidden")
        x = g.op(f"copy{layer}", "to_hbm", [y], "batch hidden")
    g.block = "head"
    again = g.op("again", "to_hbm", [x], "batch hidden")
    return g.build(g.op("z", "activation", [again], "batch hidden"), again)


@pytest.mark.parametrize("pp", [1, 3])
def test_a_removed_copy_may_be_what_a_block_hands_over(pp: int) -> None:
    graph = copying_ports()
    blocks = split_blocks(graph)
    cluster = Cluster.of("b300", 2 * pp)
    plan = without_copies(
        grid_plan(graph, cluster, dp=2, cp=1, pp=pp), blocks, {"copy0": "y0", "copy2": "y2", "again": "copy2"}
    )
    placed = lower(plan, blocks)
    check_well_formed(placed)
    readers = {op.name: op.reads[0][0] for op in placed.ops if op.kind == "kernel"}
    assert readers == {"x": "in", "y0": "x", "y1": "y0", "y2": "y1", "z": "y2"}
    assert [op.name for op in placed.ops if op.kind == "send"] == ["y0 send", "y1 send"][: pp - 1]
    assert placed.outputs == {("y2", ("batch",), pp - 1), ("z", ("batch",), pp - 1)}


def test_an_append_to_a_removed_copy_takes_over_the_cache_itself() -> None:
    g = GraphBuilder("restored", batch=8, ctx=16, width=4)
    cache = g.cache("cold", "batch ctx width")
    here = g.op("here", "to_hbm", [cache], "batch ctx width", "fp8")
    new = g.op("new", "activation", [g.input("x", "batch width")], "batch width")
    graph = g.build(g.op("after", "kv_append", [new, here], "batch ctx width", "fp8"))
    blocks = split_blocks(graph)
    plan = without_copies(grid_plan(graph, Cluster.of("b300", 4), dp=4, cp=1, pp=1), blocks, {"here": "cold"})
    placed = lower(plan, blocks)
    (append,) = (op for op in placed.ops if op.name == "after")
    assert append.aliases == ("cold", ("batch",), 0)
    # The leaf is the cache as it is declared, not the copy.
    assert [(r.name, r.tensor) for r in placed.residents] == [("cold", cache)]


# -- stages -----------------------------------------------------------------------------------------------------------


def test_ports_are_sent_on_to_the_stage_that_reads_them() -> None:
    graph = mlp(3)  # the head reads what the embedding made, three stages later
    placed = lower(grid_plan(graph, Cluster.of("b300", 6), dp=2, cp=1, pp=3), split_blocks(graph))
    check_well_formed(placed)
    sends = [(op.name, op.stage, op.block) for op in placed.ops if op.kind == "send"]
    assert sorted(sends) == [
        ("add0 send", 0, "layers.0"),
        ("add1 send", 1, "layers.1"),
        ("first send", 0, "layers.0"),
        ("first send", 1, "layers.1"),
    ]
    assert {op.group for op in placed.ops if op.kind == "send"} == {"pipeline"}
    assert {op.stage for op in placed.ops if op.block == "head"} == {2}


def test_a_port_and_a_removed_copy_of_it_are_sent_once() -> None:
    g = GraphBuilder("both", batch=16, hidden=16)
    g.block = "layers.0"
    y = g.op("y", "activation", [g.input("in", "batch hidden")], "batch hidden")
    copy = g.op("copy", "to_hbm", [y], "batch hidden")
    g.block = "layers.1"
    graph = g.build(g.op("z", "add", [y, copy], "batch hidden"))
    blocks = split_blocks(graph)
    plan = without_copies(grid_plan(graph, Cluster.of("b300", 4), dp=2, cp=1, pp=2), blocks, {"copy": "y"})
    ops = lower(plan, blocks).ops
    assert [op.name for op in ops] == ["y", "y send", "z"]
    assert ops[2].reads == (ops[1].write, ops[1].write)


def test_one_stage_sends_nothing() -> None:
    graph = mlp(3)
    placed = lower(grid_plan(graph, Cluster.of("b300", 2), dp=2, cp=1, pp=1), split_blocks(graph))
    assert not [op for op in placed.ops if op.kind == "send"]


def test_stages_out_of_order_are_refused() -> None:
    graph = mlp(2)
    blocks = split_blocks(graph)
    plan = grid_plan(graph, Cluster.of("b300", 4), dp=2, cp=1, pp=2)
    with pytest.raises(PlacementError, match="nothing has made it yet"):
        lower(replace(plan, stages=plan.stages[::-1]), blocks)
