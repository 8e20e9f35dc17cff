"""dedup_kernel: one coordinate runs a pure operator and broadcasts what it made."""

from __future__ import annotations

from rooflang.rules import rule
from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.record import Ok, Refusal

from .saturations import enodes_lost, saturated, specs

RULE = rule("dedup_kernel")


def test_a_pure_operator_is_taken_and_an_append_is_not() -> None:
    taken = RULE.check(mlp().op_by_name["norm"])
    assert isinstance(taken, Ok)
    assert taken.result == "O"
    refused = RULE.check(decode_step().op_by_name["append"])
    assert isinstance(refused, Refusal)
    assert refused.code == "side-effect"


def test_the_owner_reads_and_makes_what_only_it_has() -> None:
    block = saturated(mlp())
    assert ((("O",), ("O",)), ("O",)) in specs(block, "up")
    steps = {(t.tensor, t.collective) for t in block.transfers if t.before == ("O",)}
    assert steps == {(name, "broadcast") for name in ("norm", "up", "down", "y")}
    owned = {step.primitive for m in block.modes if m.out == ("O",) for step in m.derivation}
    assert owned <= {"dedup_kernel", "fuse_kernels"}


def test_a_cache_is_never_left_to_one_owner() -> None:
    block = saturated(decode_step(), 2)
    assert all("O" not in mode.out for mode in block.modes if mode.op.name in ("append", "save"))
    assert not [t for t in block.transfers if t.tensor in ("append", "cache", "save")]


def test_without_it_nothing_is_owned() -> None:
    lost = enodes_lost(mlp(), "dedup_kernel")
    assert lost["Broadcast"] > 0
    assert lost["Run2"] > 0
    block = saturated(mlp(), without="dedup_kernel")
    assert all("O" not in mode.out for mode in block.modes)
    assert all("O" not in (*t.before, *t.after) for t in block.transfers)
