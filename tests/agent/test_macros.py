"""Macros: parallelisms as scripts of primitives, against the grid and what is known of them."""

from __future__ import annotations

import pytest

import rooflang
from rooflang.agent import Session
from rooflang.agent.macros import MACROS
from rooflang.errors import RefusedError, RooflangError, UnknownNameError, ValueRangeError
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.models import load
from rooflang.models.disaggregated import prefill_then_decode
from rooflang.search.validate import validate

from .graphs import decode, layers, mlp


def start(graph: Graph, gpus: int = 8) -> Session:
    return Session.start(graph, hardware="b300", gpus=gpus)


def actions(session: Session) -> list[str]:
    return [str(entry.action) for entry in session.entries]


def test_tensor_parallel_is_megatron() -> None:
    session = start(mlp())
    session.run("tensor_parallel axis=x")
    assert actions(session) == [
        "split_kernel up dim=ffn axis=x",
        "split_kernel act dim=ffn axis=x",
        "split_kernel down dim=ffn axis=x",
        "merge_reduce_broadcast down axis=x reader=@exit",
    ]
    assert {entry.macro for entry in session.entries} == {"tensor_parallel axis=x"}


def test_heads_are_cut_and_their_products_summed() -> None:
    session = start(decode(), gpus=4)
    session.run("tensor_parallel")
    assert actions(session) == [
        "split_kernel q dim=head axis=x",
        "split_kernel attend dim=head axis=x",
        "split_kernel copy dim=head axis=x",
        "split_kernel o dim=head axis=x",
        "merge_reduce_broadcast o axis=x reader=sum",
    ]
    assert validate(session.plan, session.placed.blocks, session.problem.cluster)


def test_contexts_are_cut_and_their_states_combined() -> None:
    session = start(decode(), gpus=4)
    session.run("context_parallel axis=x")
    (block,) = session.plan.blocks.values()
    assert block.modes["append"].out == ("context",)
    assert block.modes["attend"].out == ("P",)
    assert [step.collective for step in block.paths["copy", 0]] == ["reduce_scatter"]
    assert validate(session.plan, session.placed.blocks, session.problem.cluster)


@pytest.mark.parametrize(
    ("stage", "context", "shape", "lines"),
    [
        ("decode", 65536, {"dp": 8, "pp": 2}, "pipeline stages=2\ndata_parallel\nexpert_parallel"),
        ("prefill", 8192, {"dp": 8, "pp": 2}, "pipeline stages=2\ndata_parallel\nexpert_parallel"),
        (
            "prefill",
            8192,
            {"dp": 2, "cp": 4, "pp": 2},
            "pipeline stages=2 mesh=2x4\ndata_parallel axis=x\ncontext_parallel axis=y\nexpert_parallel axis=x,y",
        ),
        (
            "decode",
            65536,
            {"dp": 2, "cp": 4, "pp": 2},
            "pipeline stages=2 mesh=2x4\ndata_parallel axis=x\ncontext_parallel axis=y\nexpert_parallel axis=x,y",
        ),
    ],
)
def test_macros_lead_to_the_grid(stage: str, context: int, shape: dict[str, int], lines: str) -> None:
    given = {"hardware": "b300", "gpus": 16, "stage": stage, "context": context, "batch": 16, "assumptions": "paper"}
    session = Session.start("deepseek-v4-pro", **given)
    session.run(lines)
    grid = rooflang.simulate("deepseek-v4-pro", **given, **shape)
    assert session.simulate().step_s == pytest.approx(
        grid.sim.step_s, rel=1e-5
    )  # in decode CP the grid embeds on every rank


def two_halves() -> Graph:
    """A prompt block that makes keys, and a decode block that attends to them."""
    g = GraphBuilder("pd", batch=4, seq=64, hidden=32, head=4, width=8)
    g.block = "prefill"
    kv = g.op(
        "kv", "matmul", [g.input("prompt", "batch seq hidden"), g.weight("w_k", "hidden width")], "batch seq width"
    )
    g.block = "decode"
    q = g.op("q", "matmul", [g.input("x", "batch hidden"), g.weight("w_q", "hidden head width")], "batch head width")
    out = g.op("attend", "attention", [q, kv], "batch head width", parts=("context",))
    return g.build(g.op("o", "matmul", [out, g.weight("w_o", "head width hidden")], "batch hidden"))


def test_prefill_and_decode_on_devices_of_their_own() -> None:
    session = start(two_halves(), gpus=4)
    session.run("disaggregate first=prefill*\ndata_parallel axis=x")
    assert session.plan.stages == (("prefill",), ("decode",))
    sends = [op for op in session.prepared().placed.ops if op.kind == "send"]
    assert [op.write[0] for op in sends] == ["kv"]
    assert validate(session.plan, session.placed.blocks, session.problem.cluster)
    with pytest.raises(RefusedError, match="part the blocks"):
        start(two_halves(), gpus=4).run("disaggregate first=nothing*")


def test_a_model_s_caches_travel_from_prefill_to_decode() -> None:
    graph = prefill_then_decode(load("deepseek-v4-flash"), 4096)
    session = Session.start(graph, hardware="b300", gpus=16, batch=64)
    session.run("disaggregate first=prefill*\ndata_parallel axis=x\nexpert_parallel axis=x")
    for stage, half in zip(session.plan.stages, ("prefill", "decode"), strict=True):
        assert {label.split(".")[0] for label in stage} == {half}
    sends = {op.write[0] for op in session.prepared().placed.ops if op.kind == "send"}
    assert len(sends) > 43  # a cache or more of each layer, and the first token
    prefill, decode = session.simulate(check_memory=False).stages
    assert prefill.elapsed_s > decode.elapsed_s > 0


def test_caches_rest_where_the_policy_says() -> None:
    session = start(decode(), gpus=2)
    near_s = session.simulate().step_s
    session.run("keep_caches memory=dram")
    assert session.simulate().step_s > near_s
    session.apply("remove_identity cache")
    assert session.simulate().step_s == near_s
    with pytest.raises(RefusedError, match="no KV cache"):
        session.run("keep_caches memory=dram leaves=nothing")


def test_what_was_sent_is_computed_again() -> None:
    session = start(layers(2))
    session.run("split_kernel layers.0.up dim=ffn\nmerge_all")
    sent = session.simulate().step_s
    session.run("recompute target=layers.0.up axis=x")
    block = session.plan.blocks["layers.0"]
    assert block.modes["layers.0.up"].cut(0) is None
    assert not block.paths
    assert session.simulate().step_s != sent


def test_macros_are_taken_as_a_whole_or_not_at_all() -> None:
    session = start(mlp(), gpus=8)
    before = session.state_bytes()
    with pytest.raises(RooflangError):
        session.run("data_parallel axis=x dim=ffn ops=down\ndata_parallel axis=q")
    assert len(session.entries) > 0
    session.undo(len(session.entries))
    with pytest.raises(RefusedError):
        session.run("pipeline stages=3")
    with pytest.raises(ValueRangeError, match="lacks a parameter"):
        session.run("pipeline")
    with pytest.raises(UnknownNameError, match="parameter of pipeline"):
        session.run("pipeline stages=2 depth=3")
    with pytest.raises(UnknownNameError, match="primitive or macro"):
        session.run("pipelines stages=2")
    assert session.state_bytes() == before


def test_every_macro_says_what_it_is() -> None:
    assert all(macro.__doc__ for macro in MACROS.values())
