"""Some experts laid otherwise than the rest; values kept or computed again."""

from __future__ import annotations

import pytest

from rooflang.agent import Session
from rooflang.errors import RefusedError
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.search.validate import validate
from rooflang.search.verify import certified

from .walks import experts, verified


def moe_layers(count: int = 3) -> Graph:
    """Layers with eight experts each."""
    g = GraphBuilder("moe", batch=16, hidden=8, ffn=8, expert=8)
    x = g.input("x", "batch hidden")
    for n in range(count):
        g.block = b = f"layers.{n}"
        logits = g.op(f"{b}.logits", "matmul", [x, g.weight(f"{b}.w_r", "hidden expert")], "batch expert")
        gates = g.op(f"{b}.route", "route", [logits], "batch expert", top_k=2)
        rows = g.op(f"{b}.dispatch", "dispatch", [x, gates], "batch expert hidden", fill=0.25)
        up = g.op(f"{b}.up", "matmul", [rows, g.weight(f"{b}.w1", "expert hidden ffn")], "batch expert ffn", fill=0.25)
        down = g.op(
            f"{b}.down", "matmul", [up, g.weight(f"{b}.w2", "expert ffn hidden")], "batch expert hidden", fill=0.25
        )
        x = g.op(f"{b}.sum", "add", [x, g.op(f"{b}.combine", "combine", [down, gates], "batch hidden")], "batch hidden")
    return g.build(x)


def test_two_experts_are_replicated_and_the_others_cut() -> None:
    session = Session.start(moe_layers(), hardware="b300", gpus=4)
    initial = session.state_bytes()
    session.graph.split_apart("layers.2.combine", "expert", (2, 6), only="this")
    session.graph.set_compute(mesh=(2, 2))
    session.run("data_parallel axis=x,y\nexpert_parallel axis=x,y ops=layers.1.*")
    session.run("expert_parallel axis=x ops=*.2-8")
    modes = session.plan.blocks["layers.2"].modes
    assert [choice.dim for choice in modes["layers.2.up.expert.0-2"].choices] == ["batch", "batch"]  # type: ignore[union-attr]
    assert modes["layers.2.up.expert.2-8"].cut(0).dim == "expert.2-8"  # type: ignore[union-attr]
    assert "layers.2.up" not in modes
    verified(session, exact=True)
    assert session.simulate().step_s > 0
    again = Session.start(moe_layers(), hardware="b300", gpus=4)
    again.follow(session.certificate())
    assert again.certificate() == session.certificate()
    assert again.simulate() == session.simulate()
    replayed = Session.replay(session.journal, model=moe_layers())
    assert replayed.state_bytes() == session.state_bytes()
    session.undo(len(session.entries))
    assert session.state_bytes() == initial


def test_certificates_say_what_was_taken_apart() -> None:
    session = Session.start(moe_layers(), hardware="b300", gpus=2)
    session.run("split_kernel layers.1.combine dim=expert parts=4x2\ndata_parallel axis=x")
    (point,) = certified(session.base.problem, [session.point()])
    assert point.certificate["apart"] == [
        {"targets": ["layers.1.combine", "layers.2.combine"], "dim": "expert", "counts": [4, 4]}
    ]
    assert point.certificate["evaluated"]["verdict"] == "equal"
    point.certificate["apart"][0]["counts"] = [3, 5]
    with pytest.raises(Exception, match="another graph"):
        certified(session.base.problem, [point])


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("split_kernel combine dim=expert parts=1,2", "uneven"),
        ("split_kernel up dim=ffn parts=4,4", "no-sum"),
        ("split_kernel combine dim=expert parts=2,2 axis=x", "other-fields"),
        ("dup_kernel combine parts=2,2", "other-fields"),
        ("split_kernel up dim=expert\nsplit_kernel combine dim=expert parts=2,2", "in-use"),
        ("set_memory w1 memory=dram\nsplit_kernel combine dim=expert parts=2,2", "in-use"),
        ("set_compute up stream=1\nsplit_kernel combine dim=expert parts=2,2", "in-use"),
    ],
)
def test_what_is_not_taken_apart(lines: str, code: str) -> None:
    session = Session.start(experts(), hardware="b300", gpus=2)
    *before, last = lines.splitlines()
    session.run("\n".join(before))
    state = session.state_bytes()
    with pytest.raises(RefusedError) as caught:
        session.apply(last)
    assert caught.value.refusal == code
    assert session.state_bytes() == state


def recalled() -> Graph:
    """Keys and values that follow from cached latents, or are kept in caches of their own."""
    g = GraphBuilder("recalled", batch=4, context=8, hidden=4, latent=4, head=4, kv=4, key=4, value=4)
    x = g.input("x", "batch hidden")
    q = g.op("q", "matmul", [x, g.weight("wq", "hidden head key")], "batch head key")
    new = g.op("new", "matmul", [x, g.weight("wc", "hidden latent")], "batch latent")
    cache = g.cache("cache", "batch context latent", "bf16")
    latents = g.op("latents", "kv_append", [new, cache], "batch context latent")
    found = []
    for what in ("key", "value"):
        dims, w = f"batch context kv {what}", g.weight(f"w_{what}", f"latent kv {what}")
        again = g.op(f"{what}_again", "matmul", [latents, w], dims)
        step = g.op(f"{what}_step", "matmul", [new, w], f"batch kv {what}")
        kept = g.op(f"{what}_kept", "kv_append", [step, g.cache(f"{what}_cache", dims, "bf16")], dims)
        found.append(g.op(f"{what}s", "recall", [again, kept], dims))
    return g.build(g.op("attend", "grouped_attention", [q, *found], "batch head value"))


def test_a_value_is_kept_or_computed_again() -> None:
    session = Session.start(recalled(), hardware="b300", gpus=2)
    session.apply("remove_identity keys keep=key_kept")
    (block,) = session.plan.blocks.values()
    assert "key_again" not in block.modes and "key_kept" in block.modes
    verified(session)
    other = Session.start(recalled(), hardware="b300", gpus=2)
    other.follow(session.certificate())
    assert other.certificate() == session.certificate()
    session.undo()
    session.apply("remove_identity keys keep=key_again")
    (block,) = session.plan.blocks.values()
    assert "key_again" in block.modes
    assert validate(session.plan, session.placed.blocks, session.problem.cluster)
    with pytest.raises(RefusedError, match="does not read 'q'"):
        session.apply("remove_identity keys keep=q")
