"""The graph of a session as objects: each primitive under its own name; proposals and explanations beside it."""

from __future__ import annotations

import pytest

from rooflang.agent import Session
from rooflang.agent.graph import GraphView, OperatorView, TensorView
from rooflang.errors import RefusedError
from rooflang.rules import rule_names

from .graphs import decode, layers
from .walks import experts


def test_every_primitive_has_its_name() -> None:
    on_objects = {"set_compute": OperatorView, "set_memory": TensorView}
    for name in rule_names():
        assert callable(getattr(on_objects.get(name, GraphView), name))


def test_each_of_them_is_taken() -> None:
    session = Session.start(decode(), hardware="b300", gpus=4, overlap="none")
    graph = session.graph
    graph.set_compute(mesh=[2, 2])
    graph.split_kernel("q", "head", axis="x,y")
    graph.split_kernel("attend", "head", axis="x")
    graph.split_kernel("o", "width", axis="x")
    graph.split_kernel("copy", "head", axis="x")
    graph.merge_gather_scatter("copy", reader="o", axis="x")
    graph.merge_reduce_scatter("o", "hidden", axis="x", reader="sum")
    graph.merge_gather_broadcast("q", axis="y", reader="attend")
    graph.dedup_kernel("entry", axis="y")
    graph.dup_kernel("entry", axis="y")
    graph.insert_identity("w_o", "dram")
    graph.remove_identity("w_o")
    graph.remove_identity("copy")
    graph.tensor("cache").set_memory("dram")
    graph.operator("q").set_compute(stream=1)
    graph.add_control_edge("q", "o")
    graph.remove_control_edge("q", "o")
    done = {entry.action.primitive for entry in session.entries}
    assert done >= set(rule_names()) - {"fuse_kernels", "merge_reduce_broadcast"}
    assert "cache rests in dram" in graph.show()
    assert "q on stream 1" in graph.show()
    assert "copy is left out: attend is read" in graph.show()
    for view in (graph.operator, graph.tensor):
        with pytest.raises(RefusedError, match="did you mean"):
            view("atend")


def test_routed_experts_and_stages() -> None:
    session = Session.start(experts(), hardware="b300", gpus=4)
    graph = session.graph
    graph.split_kernel("dispatch", "batch")
    graph.fuse_kernels("dispatch", dim="batch→expert")
    graph.split_apart("logits", "hidden", (4, 4))
    assert "dispatch = dispatch: x: batch (route)" in graph.show()
    staged = Session.start(layers(4), hardware="b300", gpus=4)
    staged.graph.set_compute(stages=2, layers=[3, 1])
    staged.graph.operator("layers.2.up").set_compute(stage=1)
    assert staged.plan.stages == (("layers.0", "layers.1"), ("layers.2", "layers.3"))
    for line, code in [
        ("set_compute layers.0 stage=1", "order"),
        ("set_compute layers.3 stage=2", "no-such-place"),
        ("set_compute nowhere stage=1", "no-such-block"),
        ("set_compute graph stages=3", "no-such-place"),
        ("set_compute graph", "other-fields"),
    ]:
        with pytest.raises(RefusedError) as caught:
            staged.apply(line)
        assert caught.value.refusal == code


def test_proposals_fit_the_filter_and_are_ordered() -> None:
    session = Session.start(layers(2), hardware="b300", gpus=4)
    found = session.actions("split_kernel layers.1.*")
    assert found
    assert {p.action.primitive for p in found} == {"split_kernel"}
    assert all(p.action.target.startswith("layers.1.") for p in found)
    gains = [p.gain for p in found if p.gain is not None]
    assert gains == sorted(gains, reverse=True)
    assert len(session.actions("split_kernel", limit=3)) == 3
    quick = session.actions("dup* dedup*", predict=False)
    assert not quick
    assert all(p.predicted_s is None for p in session.actions("dedup*", predict=False, limit=2))
    before = session.state_bytes()
    for proposal in session.actions():
        branch = session.branch()
        branch.apply(proposal.action)
        assert branch.plan != session.plan
    assert session.state_bytes() == before


def test_a_step_is_explained() -> None:
    session = Session.start(layers(2), hardware="b300", gpus=4)
    session.run("tensor_parallel axis=x")
    found = session.explain()
    assert found.result == session.simulate()
    assert found.path and found.by_bound and found.what_if
