"""Sessions: primitives one at a time, what they cost, and the way back."""

from __future__ import annotations

import pytest

import rooflang
from rooflang.agent import Session
from rooflang.errors import RefusedError, ValueRangeError
from rooflang.rules.record import Ok, Refusal
from rooflang.search.validate import validate

from .graphs import decode, layers, mlp


def start(graph: rooflang.Graph, gpus: int = 8) -> Session:
    return Session.start(graph, hardware="b300", gpus=gpus)


def test_megatron_by_hand_is_the_layout_of_splits() -> None:
    session = start(mlp())
    times = [session.simulate().step_s]
    for op in ("up", "act", "down"):
        session.graph.split_kernel(op, "ffn")
        times.append(session.simulate().step_s)
    session.graph.merge_reduce_broadcast("down")
    times.append(session.simulate().step_s)
    assert times == sorted(times, reverse=True)
    whole = rooflang.Layout.start(mlp(), session.problem.cluster, mesh=[8])
    tp = whole.split_kernel("up", "ffn").split_kernel("act", "ffn").split_kernel("down", "ffn")
    assert session.simulate().step_s == rooflang.simulate_layout(tp).sim.step_s
    assert validate(session.plan, session.placed.blocks, session.problem.cluster)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("split_kernel down dim=nothing", "no-such-cut"),
        ("split_kernel up dim=ffn axis=q", "no-such-axis"),
        ("split_kernel up", "other-fields"),
        ("split_kernel up dim=ffn memory=dram", "other-fields"),
        ("dup_kernel nobody", "unknown-name"),
        ("merge_reduce_broadcast up", "nothing-to-merge"),
        ("fuse_kernels down inner=up", "other-input"),
        ("insert_identity up memory=dram", "not-resident"),
        ("insert_identity w1 memory=tape", "no-such-tier"),
        ("remove_identity up", "no-identity"),
        ("add_control_edge down after=up", "cycle"),
        ("remove_control_edge up after=down", "no-such-edge"),
        ("set_compute graph mesh=3", "no-such-place"),
        ("set_memory up dim=ffn", "no-port"),
    ],
)
def test_refusals_say_why_and_change_nothing(line: str, code: str) -> None:
    session = start(mlp())
    before = session.state_bytes()
    verdict = session.check(line)
    assert isinstance(verdict, Refusal)
    assert verdict.code == code
    assert verdict.reason
    with pytest.raises(RefusedError):
        session.apply(line)
    assert session.state_bytes() == before


def test_undo_and_branch() -> None:
    session = start(layers())
    initial = session.state_bytes()
    session.apply("split_kernel layers.0.up dim=ffn")
    other = session.branch()
    session.apply("split_kernel layers.0.down dim=ffn")
    assert len(other.entries) == 1
    other.apply("dup_kernel layers.0.up")
    session.undo(2)
    assert session.state_bytes() == initial
    with pytest.raises(ValueRangeError, match="undo 1"):
        session.undo()
    assert len(other.entries) == 2


def test_one_layer_is_edited_alone() -> None:
    session = start(layers())
    session.apply("split_kernel layers.1.up dim=ffn only=this")
    cut = {
        label: session.plan.blocks[session.placed.blocks.kind_of[label]].modes[f"{kind.blocks[0]}.up"].cut(0)
        for kind in session.placed.blocks.kinds
        for label in kind.blocks
    }
    assert [label for label, each in cut.items() if each is not None] == ["layers.1"]
    assert validate(session.plan, session.placed.blocks, session.problem.cluster)
    rest = session.check("split_kernel layers.0.up dim=ffn")
    assert isinstance(rest, Ok)


def test_edits_of_other_layers_than_the_one_named() -> None:
    session = start(layers(4))
    session.run(
        "split_kernel layers.1.up dim=ffn only=layers.2-3\n"
        "merge_gather_broadcast layers.2.up reader=layers.2.down only=layers.3\n"
        "fuse_kernels layers.2.sum inner=layers.2.down only=this"
    )
    assert [kind.blocks for kind in session.placed.blocks.kinds] == [
        *(("layers.0",), ("layers.1",), ("layers.2",), ("layers.3",)),
    ]
    third, fourth = (session.plan.blocks[f"layers.{n}"] for n in (2, 3))
    assert [step.collective for step in fourth.paths["layers.3.down", 0]] == ["all_gather"]
    assert third.modes["layers.2.sum"].covers == ("layers.2.down", "layers.2.sum")
    assert "merge" not in str(session.check("merge_gather_broadcast layers.1.up reader=layers.2.down"))
    assert validate(session.plan, session.placed.blocks, session.problem.cluster)
    again = Session.start(layers(4), hardware="b300", gpus=8)
    again.follow(session.certificate())
    assert again.certificate() == session.certificate()


def test_refusals_are_short_however_large_the_model() -> None:
    session = Session.start("deepseek-v4-pro", hardware="b300", gpus=8, context=65536)
    for line in ("dup_kernel layers.3.q_z", "set_memory nothing memory=dram", "dup_kernel layers.3.q_a only=layers.99"):
        verdict = session.check(line)
        assert isinstance(verdict, Refusal)
        assert verdict.code == "unknown-name"
        assert len(verdict.reason) < 300


def test_a_cache_is_cut_for_all_that_share_it() -> None:
    session = start(decode(), gpus=4)
    session.apply("split_kernel attend dim=batch")
    (block,) = session.plan.blocks.values()
    assert block.modes["append"].out == ("batch",)
    assert validate(session.plan, session.placed.blocks, session.problem.cluster)


def test_journals_and_files_come_back(tmp_path: object) -> None:
    from pathlib import Path

    session = start(layers())
    session.run("split_kernel layers.0.up dim=ffn\n# a comment\nsplit_kernel layers.2.down dim=ffn only=layers.1-2")
    again = Session.replay(session.journal, model=layers())
    assert again.state_bytes() == session.state_bytes()
    path = Path(str(tmp_path)) / "session.json"
    session.save(path)
    assert Session.load(path, model=layers()).state_bytes() == session.state_bytes()
    with pytest.raises(ValueRangeError, match="another model"):
        Session.load(path, model=mlp())


def test_an_action_lays_one_kind_anew_and_prices_what_changed() -> None:
    session = Session.start("deepseek-v4-pro", hardware="b300", gpus=64, context=65536, batch=4096)
    session.run("data_parallel axis=x\nexpert_parallel axis=x")
    before = session.plan.blocks
    session.apply("dup_kernel layers.4.shared_up")
    after = session.plan.blocks
    (laid,) = [name for name in after if after[name] is not before[name]]
    new = [name for name, mode in after[laid].modes.items() if mode is not before[laid].modes[name]]
    assert new == [f"{laid}.shared_up"]
