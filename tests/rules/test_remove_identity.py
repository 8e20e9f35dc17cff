"""remove_identity: readers of a copy may read what was copied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.evaluate import evaluate, random_leaves
from rooflang.rules import rule
from rooflang.rules.examples import decode_step
from rooflang.rules.record import Ok, Refusal

from .saturations import enodes_lost, saturated, snapshot

RULE = rule("remove_identity")


def copied() -> Graph:
    """A product, copied, then read by a norm."""
    g = GraphBuilder("copied", batch=8, hidden=4, ffn=6)
    up = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden ffn")], "batch ffn")
    copy = g.op("copy", "to_hbm", [up], "batch ffn")
    return g.build(g.op("norm", "rms_norm", [copy], "batch ffn", over="ffn"))


def test_moves_are_taken_and_nothing_else() -> None:
    graph = decode_step()
    taken = RULE.check(graph.op_by_name["copy"])
    assert isinstance(taken, Ok)
    assert taken.result == "attend"
    refused = RULE.check(graph.op_by_name["attend"])
    assert isinstance(refused, Refusal)
    assert refused.code == "no-identity"


def test_a_cast_is_no_identity() -> None:
    copy = copied().op_by_name["copy"]
    refused = RULE.check(replace(copy, output=replace(copy.output, dtype="fp8")))
    assert isinstance(refused, Refusal)
    assert refused.code == "lossy"


def test_another_order_of_dims_is_no_identity_for_who_reads_it() -> None:
    copy = copied().op_by_name["copy"]
    refused = RULE.check(replace(copy, output=replace(copy.output, dims=copy.output.dims[::-1])))
    assert isinstance(refused, Refusal)
    assert refused.code == "reordered"
    g = GraphBuilder("turned", batch=8, hidden=4, ffn=6)
    up = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden ffn")], "batch ffn")
    turned = g.op("turned", "to_hbm", [up], "ffn batch")
    graph = g.build(g.op("act", "activation", [turned], "ffn batch"))
    assert saturated(graph).aliases["turned"] == "turned"


def test_copy_and_operand_are_one_class() -> None:
    theory, egraph = snapshot(copied())
    up, copy = (egraph.rows[theory.term(copied().op_by_name[name].output)][0].output for name in ("up", "copy"))
    assert up == copy
    block = saturated(copied())
    assert block.aliases == {"x": "x", "w": "w", "up": "up", "copy": "up", "norm": "norm"}
    assert {t.tensor for t in block.transfers} == {"up", "norm"}


def test_a_copy_is_still_there_for_those_who_want_it() -> None:
    assert "copy" in {mode.op.name for mode in saturated(copied()).modes}


def test_a_copy_that_is_overwritten_itself_is_kept() -> None:
    """Without it the append would go into what was copied, which a later reader wants as it was."""
    g = GraphBuilder("forked", batch=2, head=2, context=4, width=2)
    old = g.cache("cache", "batch context width")
    copy = g.op("copy", "to_hbm", [old], "batch context width", "fp8")
    new = g.op("new", "kv_append", [g.input("entry", "batch width"), copy], "batch context width", "fp8")
    out = g.op("attend", "attention", [g.input("q", "batch head width"), new], "batch head width", parts=("window",))
    graph = g.build(out, g.op("kept", "to_hbm", [old], "batch context width", "fp8"))
    refused = RULE.check(graph.op_by_name["copy"], ops=graph.ops)
    assert isinstance(refused, Refusal)
    assert refused.code == "snapshot"
    assert isinstance(RULE.check(graph.op_by_name["kept"], ops=graph.ops), Ok)


def test_a_copy_of_what_is_overwritten_is_a_snapshot() -> None:
    graph = decode_step()
    refused = RULE.check(graph.op_by_name["save"], ops=graph.ops)
    assert isinstance(refused, Refusal)
    assert refused.code == "snapshot"
    assert isinstance(RULE.check(graph.op_by_name["copy"], ops=graph.ops), Ok)
    block = saturated(graph)
    assert block.aliases["save"] == "save"
    assert block.aliases["copy"] == "attend"
    assert not [t for t in block.transfers if t.tensor in ("save", "cache")]


def recalled(*, again: bool = False) -> Graph:
    """Keys that are computed from kept latents, or read from a cache of their own, to which the step appends."""
    g = GraphBuilder("recalled", batch=2, context=4, latent=2, width=3)
    new, w = g.input("new", "batch latent"), g.weight("w", "latent width")
    latents = g.op(
        "latents", "kv_append", [new, g.cache("latent_cache", "batch context latent")], "batch context latent"
    )
    keys = g.op("keys", "matmul", [latents, w], "batch context width")
    step = g.op("step", "matmul", [new, w], "batch width")
    kept = g.op("kept", "kv_append", [step, g.cache("key_cache", "batch context width")], "batch context width")
    chosen = g.op("chosen", "recall", [keys, kept], "batch context width")
    if again:
        g.op("later", "kv_append", [step, kept], "batch context width")
    return g.build(g.op("norm", "rms_norm", [chosen], "batch context width", over="width"))


def test_a_recall_is_either_of_its_operands() -> None:
    graph = recalled()
    for operand, name in enumerate(("keys", "kept")):
        taken = RULE.check(graph.op_by_name["chosen"], ops=graph.ops, operand=operand)
        assert isinstance(taken, Ok)
        assert taken.result == name
    block = saturated(graph)
    assert {block.aliases[name] for name in ("chosen", "keys", "kept")} == {"keys"}
    assert {t.tensor for t in block.transfers} >= {"keys"}


def test_a_cache_that_is_appended_to_again_is_not_recalled() -> None:
    graph = recalled(again=True)
    refused = RULE.check(graph.op_by_name["chosen"], ops=graph.ops, operand=1)
    assert isinstance(refused, Refusal)
    assert refused.code == "snapshot"
    assert isinstance(RULE.check(graph.op_by_name["chosen"], ops=graph.ops), Ok)
    block = saturated(graph)
    assert block.aliases["chosen"] == "keys"
    assert block.aliases["kept"] == "kept"


def test_a_cache_of_another_dtype_is_not_recalled() -> None:
    op = recalled().op_by_name["chosen"]
    keys, kept = op.operands
    refused = RULE.check(replace(op, operands=(keys, replace(kept, dtype="fp8"))), operand=1)
    assert isinstance(refused, Refusal)
    assert refused.code == "lossy"


def test_recalled_caches_hold_what_is_computed_in_their_place() -> None:
    graph = recalled()
    for exact in (False, True):
        values = evaluate(graph, random_leaves(graph, exact=exact))
        assert (values["kept"] == values["keys"]).all() if exact else np.allclose(values["kept"], values["keys"])


def test_without_it_readers_need_the_copy() -> None:
    assert enodes_lost(copied(), "remove_identity")["View"] < 0  # one class less to view
    block = saturated(copied(), without="remove_identity")
    assert block.aliases["copy"] == "copy"
    assert {"up", "copy"} <= {t.tensor for t in block.transfers}
