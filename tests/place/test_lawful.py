"""What signatures allow and a block forbids is refused, with what is wrong named."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from rooflang.errors import PlacementError
from rooflang.ir import GraphBuilder, make_mode, make_transfer
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import REPLICATED, CutKind
from rooflang.ir.graph import Graph
from rooflang.ir.layout import Choice, Mode
from rooflang.ir.op import Op, signature
from rooflang.place.lawful import check_lawful
from rooflang.place.plan import BlockPlan


def row(op: Op, dim: str, *kinds: CutKind) -> Choice:
    return next(c for c in signature(op) if c.dim == dim and (not kinds or c.kind in kinds))


def checked(graph: Graph, choices: Mapping[str, Callable[[Op], Choice]], **parts: object) -> None:
    """Check the plan of a graph of one block on one axis; operators without a choice run whole."""
    (kind,) = split_blocks(graph).kinds
    modes: dict[str, Mode] = {}
    for op in kind.ops:
        choose = choices.get(op.name, lambda _: REPLICATED)
        modes[op.output.name] = make_mode(op, [choose(op)])
    check_lawful(kind, BlockPlan(modes=modes, **parts), 1)  # type: ignore[arg-type]


def summed(function: str) -> Graph:
    """Two products, or an attention, added up."""
    g = GraphBuilder("sums", batch=8, head=4, width=16, context=64)
    q, w = g.input("q", "batch head width"), g.weight("w", "width")
    if function == "attention":
        caches = [g.cache(f"kv{n}", "batch context width") for n in "ab"]
        made = [
            g.op(n, "attention", [q, cache], "batch head width", parts=("window",)) for n, cache in zip("ab", caches)
        ]
    else:
        rows = g.input("rows", "batch head context")
        made = [g.op(n, "matmul", [rows, g.weight(f"w{n}", "context width")], "batch head width") for n in "ab"]
    y = g.op("y", "add", made, "batch head width")
    return g.build(g.op("z", "rms_norm", [y, w], "batch head width", over="width"))


def test_summands_pass_through_an_add_and_log_sum_exp_states_do_not() -> None:
    partial = dict.fromkeys("ab", lambda op: row(op, "context"))
    checked(summed("matmul"), {**partial, "y": lambda op: row(op, "partial")})
    with pytest.raises(PlacementError, match="y reads summands of a on axis 0"):
        checked(summed("attention"), {**partial, "y": lambda op: row(op, "partial")})


def test_what_is_never_partial_is_no_summand() -> None:
    with pytest.raises(PlacementError, match="reads summands of"):
        g = GraphBuilder("norms", batch=8, width=16)
        x = g.op("x", "rms_norm", [g.input("in", "batch width")], "batch width", over="width")
        checked(g.build(g.op("y", "add", [x, x], "batch width")), {"y": lambda op: row(op, "partial")})


def selected() -> Graph:
    g = GraphBuilder("select", batch=8, head=4, width=16, context=64, chosen=8)
    operands = [g.input("q", "batch head width"), g.input("w", "batch head"), g.cache("k", "batch context width")]
    ids = g.op("ids", "index_select", operands, "batch chosen", "int32")
    return g.build(g.op("copy", "to_hbm", [ids], "batch chosen", "int32"))


def test_candidates_are_not_combined_shard_by_shard() -> None:
    choices = {"ids": lambda op: row(op, "context"), "copy": lambda op: row(op, "batch")}
    for label in ("batch", "chosen"):
        paths = {("copy", 0): (make_transfer("ids", ("P",), (label,)),)}
        if label == "batch":
            checked(selected(), choices, paths=paths)
            continue
        with pytest.raises(
            PlacementError, match="partial states of ids cannot be combined shard by shard along chosen"
        ):
            checked(selected(), choices, paths=paths)


def appended() -> Graph:
    g = GraphBuilder("decode", batch=8, head=4, width=16, context=64)
    old = g.cache("cache", "batch context width")
    saved = g.op("save", "to_dram", [old], "batch context width", "fp8")
    new = g.op("append", "kv_append", [g.input("entry", "batch width"), old], "batch context width", "fp8")
    q = g.input("q", "batch head width")
    out = g.op("attend", "attention", [q, new], "batch head width", parts=("window",))
    return g.build(saved, g.op("copy", "to_hbm", [out], "batch head width"))


def test_caches_stay_where_they_are() -> None:
    by_batch = {name: (lambda op: row(op, "batch")) for name in ("save", "append", "attend", "copy")}
    checked(appended(), by_batch)
    paths = {("attend", 1): (make_transfer("append", ("batch",), ("context",)),)}
    with pytest.raises(PlacementError, match="all_to_all of append, which stays as it is laid"):
        checked(appended(), by_batch, paths=paths)
    with pytest.raises(PlacementError, match="which is not in the block"):
        checked(appended(), by_batch, paths={("attend", 0): (make_transfer("p", ("batch",), ("R",)),)})


def test_a_copy_of_what_is_overwritten_is_not_left_out() -> None:
    checked(appended(), {}, aliases={"copy": "attend"})
    with pytest.raises(PlacementError, match="remove_identity of save: cache is overwritten in place"):
        checked(appended(), {}, aliases={"save": "cache"})
