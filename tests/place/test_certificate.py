"""Certificates: through JSON and back to the very plan; whatever is changed in one is refused, or is another plan."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import PlacementError, RooflangError
from rooflang.hw import Cluster
from rooflang.ir.blocks import Blocks, split_blocks
from rooflang.ir.cut import OWNER, REPLICATED
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.kinds.fused import FUSIONS, fuse
from rooflang.ir.layout import make_mode
from rooflang.ir.op import op_kinds, signature
from rooflang.place.certificate import certificate, replay
from rooflang.place.connect import connect
from rooflang.place.grid import grid_plan
from rooflang.place.lower import lower
from rooflang.place.plan import Plan

from .graphs import decode, mlp, random_plan, small_v4
from .test_lower import without_copies

R = REPLICATED
B300 = Cluster.of("b300", 16)


def through_json(plan: Plan, blocks: Blocks) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(certificate(plan, blocks)))
    assert data == certificate(plan, blocks)
    return data


def check_round_trip(plan: Plan, blocks: Blocks, cluster: Cluster) -> None:
    again = replay(through_json(plan, blocks), blocks, cluster)
    assert replace(again, origin=plan.origin) == plan
    assert again.origin == "replayed certificate"


@pytest.mark.parametrize("shape", [(16, 1, 1), (4, 4, 1), (1, 16, 1), (4, 1, 4), (2, 2, 4)], ids=str)
@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_grid_plans_come_back_as_they_were(stage: str, shape: tuple[int, int, int]) -> None:
    graph, (dp, cp, pp) = small_v4(stage), shape
    check_round_trip(grid_plan(graph, B300, dp=dp, cp=cp, pp=pp), split_blocks(graph), B300)


@pytest.mark.parametrize("make", [mlp, decode, lambda: small_v4("decode"), lambda: small_v4("prefill")])
def test_random_plans_come_back_as_they_were(make) -> None:  # type: ignore[no-untyped-def]
    graph = make()
    for seed in range(10):
        drawn = random_plan(Random(seed), graph, B300, (4, 2), stages=2)
        if drawn is not None:
            check_round_trip(*drawn, B300)


def fused(graph: Graph, cluster: Cluster) -> tuple[Plan, Blocks]:
    """Norm and product of every layer in one kernel, on one axis, cut by requests."""
    blocks = split_blocks(graph)
    plan = grid_plan(graph, cluster, dp=cluster.gpus, cp=1, pp=1)
    plans = {}
    fusion = next(f for f in FUSIONS if f.name == "norm_matmul")
    for kind in blocks.kinds:
        ops = {op.kind: op for op in kind.ops if op.kind != "matmul" or op.name.startswith("up")}
        modes = dict(plan.blocks[kind.name].modes)
        if "rms_norm" in ops:
            norm, up = ops["rms_norm"], ops["matmul"]
            kernel = fuse(fusion, up, norm)
            cut = next(cut for cut in signature(kernel) if cut.dim == "batch")
            del modes[norm.output.name]
            modes[up.output.name] = make_mode(kernel, [cut], covers=(norm.name, up.name))
        ports = {p.name: plan.boundary[blocks.port_group[kind.name, p.name]] for p in (*kind.inputs, *kind.outputs)}
        plans[kind.name] = connect(kind, modes, ports)
    return replace(plan, blocks=plans), blocks


def test_fused_kernels_removed_copies_and_tiers_come_back() -> None:
    plan, blocks = fused(mlp(3), B300)
    plan = without_copies(plan, blocks, {"copy0": "up0"})
    block = replace(plan.blocks["layers.0"], tiers={"d0": "dram"})
    plan = replace(plan, blocks={**plan.blocks, "layers.0": block})
    check_round_trip(plan, blocks, B300)
    assert [op.name for op in lower(plan, blocks).ops if op.block == "layers.1"] == ["up1", "down1", "add1"]


def test_one_row_of_a_signature_answers_to_a_dim() -> None:
    """Replaying finds a cut by its dim and whether it routes: no signature may have two of those."""
    graphs = [mlp(), decode(), small_v4("decode"), small_v4("prefill")]
    ops = {op.kind: op for graph in graphs for op in graph.ops}
    assert len(ops) > 15 and set(ops) <= set(op_kinds())
    for op in (op for graph in graphs for op in graph.ops):
        keys = [(cut.kind == "route", cut.dim, cut.out if cut.kind == "route" else "") for cut in signature(op)]
        assert len(set(keys)) == len(keys), op.name


# -- what is changed --------------------------------------------------------------------------------------------------

GRAPH = decode(2)
BLOCKS = split_blocks(GRAPH)
CLUSTER = Cluster.of("b300", 8)


_V4 = small_v4("decode")
V4 = grid_plan(_V4, CLUSTER, dp=2, cp=2, pp=2), split_blocks(_V4)
FUSED = fused(mlp(2), CLUSTER)
PLANS = [
    V4,
    FUSED,
    (without_copies(*FUSED, {"copy0": "up0"}), FUSED[1]),
    *filter(None, (random_plan(Random(seed), GRAPH, CLUSTER, (2, 2), stages=2) for seed in range(6))),
]


def spots(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value in JSON data."""
    yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from spots(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from spots(value, (*path, index))


def changed(data: Any, path: tuple[Any, ...], draw: st.DataObject) -> Any:
    """The data with one value replaced, removed, repeated or put in another place."""
    out = copy.deepcopy(data)
    if not path:
        return {**out, "extra": 1}
    holder = out
    for key in path[:-1]:
        holder = holder[key]
    old = holder[path[-1]]
    words = ["R", "P", "O", "batch", "ctx", "split_kernel", "dup_kernel", "fuse_kernels", "", "zzz"]
    kinds = {str: st.sampled_from(words), int: st.integers(-3, 9)}
    if type(old) in kinds:
        holder[path[-1]] = draw.draw(st.one_of(kinds[type(old)], st.none(), st.just([])))
        return out
    how = draw.draw(st.sampled_from(["remove", "repeat", "reverse", "empty"]))
    if how == "remove" or not isinstance(old, list):
        del holder[path[-1]]
    elif how == "repeat" and old:
        old.append(copy.deepcopy(old[0]))
    elif how == "reverse":
        old.reverse()
    else:
        old.clear()
    return out


@given(draw=st.data())
def test_a_change_anywhere_is_refused_or_makes_another_plan(draw: st.DataObject) -> None:
    plan, blocks = draw.draw(st.sampled_from(PLANS))
    script = through_json(plan, blocks)
    bad = changed(script, draw.draw(st.sampled_from(list(spots(script)))), draw)
    try:
        other = replay(bad, blocks, CLUSTER)
    except PlacementError as error:
        assert error.where and str(error)
        return
    # Nothing was overlooked: what was replayed is what was written, to the letter.
    assert certificate(other, blocks) == bad
    lower(other, blocks)


def refused(change: Callable[[dict[str, Any]], object], of: tuple[Plan, Blocks] = V4) -> str:
    """How the certificate of a plan is refused after a change made in place."""
    plan, blocks = of
    script = through_json(plan, blocks)
    change(script)
    with pytest.raises(PlacementError) as caught:
        replay(script, blocks, CLUSTER)
    return str(caught.value)


def kind(script: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in script["kinds"] if entry["kind"] == name)


def kernel(script: dict[str, Any], name: str) -> dict[str, Any]:
    return next(k for entry in script["kinds"] for k in entry["kernels"] if k["kernel"] == name)


def test_refusals_say_what_is_wrong() -> None:
    assert "schema" in refused(lambda s: s.update(schema="rooflang.certificate/0"))
    assert "another graph" in refused(lambda s: s.update(graph="0" * 16))
    assert "`$.mesh[0]`" in refused(lambda s: s.update(mesh=["2", 2]))
    assert "unknown field `note`" in refused(lambda s: s.update(note="hello"))
    assert "missing required field `stages`" in refused(lambda s: s.pop("stages"))
    assert "do not fill 4 GPUs" in refused(lambda s: s.update(mesh=[2, 3]))
    assert "blocks of the stages" in refused(lambda s: s["stages"][0].pop())
    assert "blocks of the stages" in refused(lambda s: s["stages"].reverse())
    assert "block kinds" in refused(lambda s: s["kinds"].pop())
    assert "no block kind 'zzz'" in refused(lambda s: s["kinds"][0].update(kind="zzz"))
    assert "port groups" in refused(lambda s: s["boundary"].update({"99": ["R", "R"]}))


def test_refusals_of_steps() -> None:
    name = "layers.2.q_b"
    assert "no operator makes 'zzz'" in refused(lambda s: kernel(s, name).update(kernel="zzz"))
    assert "axis 7 of a mesh with 2" in refused(lambda s: kernel(s, name)["steps"][0].update(axis=7))
    assert "axis 2 of a mesh with 2" in refused(lambda s: kernel(s, name)["steps"][1].update(axis=2))
    assert "left undecided" in refused(lambda s: kernel(s, name)["steps"].pop())
    assert "no such row" in refused(lambda s: kernel(s, name)["steps"][0].update(dim="vocab"))
    assert "steps[0].target is 'layers.2.q_a'" in refused(
        lambda s: kernel(s, name)["steps"][0].update(target="layers.2.q_a")
    )
    assert "not in the order" in refused(lambda s: kind(s, "layers.2")["kernels"].reverse())
    fusion = {"primitive": "fuse_kernels", "target": "x", "dim": "norm_matmul", "axis": -1}
    assert "no fusion 'norm_matmul' applies" in refused(lambda s: kernel(s, "layers.2.o_b")["steps"].insert(0, fusion))
    assert "no fusion 'zzz'" in refused(lambda s: kernel(s, name)["steps"].insert(0, {**fusion, "dim": "zzz"}))
    dup = {"primitive": "dup_kernel", "target": "layers.2.context", "dim": "", "axis": 1}
    assert "side effects" in refused(lambda s: kernel(s, "layers.2.context")["steps"].__setitem__(1, dup))
    assert "side effects" in refused(
        lambda s: kernel(s, "layers.2.context")["steps"].__setitem__(1, {**dup, "primitive": "dedup_kernel"})
    )


def test_refusals_of_reads_exits_and_identities() -> None:
    def read(script: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = kernel(script, "layers.2.o_a")["reads"][0]
        return found

    def step(script: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = read(script)["steps"][0]
        return found

    assert "laid batch,P, read batch,batch" in refused(lambda s: kernel(s, "layers.2.o_a")["reads"].clear())
    twice = {"operand": 1, "steps": []}
    assert "no kernel reads: ('layers.2.o_a', 1)" in refused(lambda s: kernel(s, "layers.2.o_a")["reads"].append(twice))
    assert "not one collective" in refused(lambda s: step(s).update(before=["R", "head"]))
    assert "nothing leads from" in refused(lambda s: step(s).update(before=["batch", "R"], after=["batch", "P"]))
    assert "of a value laid batch,P" in refused(lambda s: step(s).update(before=["batch", "head"]))
    assert "has no dim ffn" in refused(lambda s: step(s).update(after=["batch", "ffn"]))
    assert "leads to no port" in refused(lambda s: kind(s, "layers.2")["exits"].update({"layers.2.q_b": []}))
    tier = {"primitive": "insert_identity", "target": "layers.2.wq_a", "dim": "tape"}
    assert "cannot be kept in tape" in refused(lambda s: kind(s, "layers.2")["tiers"].append(tier))
    tier = {**tier, "target": "zzz", "dim": "dram"}
    assert "zzz cannot be kept in dram" in refused(lambda s: kind(s, "layers.2")["tiers"].append(tier))
    gone = {"primitive": "remove_identity", "target": "layers.2.q_b", "dim": "layers.2.q_norm"}
    assert "is not an identity of" in refused(lambda s: kind(s, "layers.2")["removed"].append(gone))


def test_a_copy_that_changes_the_dtype_cannot_be_removed() -> None:
    g = GraphBuilder("rounded", batch=8, width=4)
    short = g.op(
        "short",
        "to_hbm",
        [g.op("x", "activation", [g.input("in", "batch width")], "batch width")],
        "batch width",
        "fp8",
    )
    graph = g.build(g.op("y", "activation", [short], "batch width"))
    blocks = split_blocks(graph)
    plan = without_copies(grid_plan(graph, CLUSTER, dp=8, cp=1, pp=1), blocks, {"short": "x"})
    with pytest.raises(PlacementError, match="short is not an identity of x"):
        replay(certificate(plan, blocks), blocks, CLUSTER)


def test_a_fused_kernel_is_not_replayed_when_its_inner_result_is_read_elsewhere() -> None:
    assert "steps[0].target is 'norm0'" in refused(lambda s: kernel(s, "up0")["steps"][0].update(target="norm0"), FUSED)
    assert "reads norm0, which no kernel" in refused(
        lambda s: kernel(s, "up0").update(steps=[{**kernel(s, "up0")["steps"][1], "target": "up0"}]), FUSED
    )


def test_owners_and_copies_replay() -> None:
    graph = mlp(1)
    blocks = split_blocks(graph)
    cluster = Cluster.of("b300", 4)
    plan = grid_plan(graph, cluster, dp=4, cp=1, pp=1)
    kinds = {}
    for k in blocks.kinds:
        modes = {op.output.name: make_mode(op, [OWNER if k.name == "embed" else R]) for op in k.ops}
        kinds[k.name] = connect(k, modes, {p.name: (R,) for p in (*k.inputs, *k.outputs)})
    plan = replace(plan, blocks=kinds, boundary=dict.fromkeys(plan.boundary, (R,)))
    check_round_trip(plan, blocks, cluster)
    steps = [step["primitive"] for step in kernel(through_json(plan, blocks), "first")["steps"]]
    assert steps == ["dedup_kernel"]


def test_a_certificate_for_more_gpus_than_there_are_is_refused() -> None:
    plan, blocks = V4
    with pytest.raises(RooflangError):
        replay(certificate(plan, blocks), blocks, Cluster.of("b300", 4))
