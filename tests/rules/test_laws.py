"""The merges as equations: both sides on arrays, and mutants that would pass for them on easy inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from rooflang.ir import Tensor, make_transfer
from rooflang.ir.layout import PRIMITIVE_OF, collective_of
from rooflang.ir.tensor import LEAF_ROLES, Role
from rooflang.rules.laws import ALL_GATHER, LABEL, LAWS, SLICE, Law, check_transfer
from rooflang.rules.record import Ok, Refusal

from .lifted import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    cuts,
    equal,
    gather,
    reduce,
    reduce_scatter,
    scatter,
    whole,
)

BATCH, HIDDEN = 0, 1
Cuts = tuple[int, list[list[int]]]


def parts(shape: tuple[int, ...], coordinates: int) -> list[np.ndarray]:
    """A partial value: arrays that have to be added."""
    return [whole(shape) * (i + 2) ** 3 for i in range(coordinates)]


@settings(max_examples=300)
@given(cuts())
def test_gather_then_broadcast_is_all_gather(cut: Cuts) -> None:
    coordinates, (batch, hidden) = cut
    shards = scatter(whole((sum(batch), sum(hidden))), BATCH, batch)
    assert equal(broadcast(gather(shards, BATCH), coordinates), all_gather(shards, BATCH))


@settings(max_examples=300)
@given(cuts())
def test_gather_then_scatter_is_all_to_all(cut: Cuts) -> None:
    _, (batch, hidden) = cut
    shards = scatter(whole((sum(batch), sum(hidden))), BATCH, batch)
    assert equal(scatter(gather(shards, BATCH), HIDDEN, hidden), all_to_all(shards, BATCH, HIDDEN, hidden))
    assert equal(scatter(gather(shards, BATCH), BATCH, batch), shards)


@settings(max_examples=300)
@given(cuts())
def test_reduce_then_scatter_is_reduce_scatter(cut: Cuts) -> None:
    coordinates, (batch, hidden) = cut
    partial = parts((sum(batch), sum(hidden)), coordinates)
    assert equal(scatter(reduce(partial), HIDDEN, hidden), reduce_scatter(partial, HIDDEN, hidden))


@settings(max_examples=300)
@given(cuts())
def test_reduce_then_broadcast_is_all_reduce(cut: Cuts) -> None:
    coordinates, (batch, hidden) = cut
    partial = parts((sum(batch), sum(hidden)), coordinates)
    assert equal(broadcast(reduce(partial), coordinates), all_reduce(partial))


@settings(max_examples=300)
@given(cuts())
def test_a_function_of_broadcast_operands_is_broadcast(cut: Cuts) -> None:
    """dup_kernel, and read backwards dedup_kernel: the owner's result is everyone's."""
    coordinates, (batch, hidden) = cut
    x = whole((sum(batch), sum(hidden)))
    results = [shard * shard for shard in broadcast(x, coordinates)]
    assert equal(broadcast(x * x, coordinates), results)
    assert equal(broadcast(results[0], coordinates), results)


@settings(max_examples=300)
@given(cuts())
def test_a_slice_is_a_scatter_of_a_broadcast_value(cut: Cuts) -> None:
    coordinates, (batch, hidden) = cut
    x = whole((sum(batch), sum(hidden)))
    copies = broadcast(x, coordinates)
    kept = [scatter(copies[i], BATCH, batch)[i] for i in range(coordinates)]
    assert equal(scatter(x, BATCH, batch), kept)


def test_mutants_are_told_apart() -> None:
    batch, hidden = [1, 2], [3, 1]
    shards = scatter(whole((3, 4)), BATCH, batch)
    partial = parts((3, 4), 2)
    wanted = scatter(gather(shards, BATCH), HIDDEN, hidden)
    assert not equal(wanted, list(reversed(all_to_all(shards, BATCH, HIDDEN, hidden)))), "order of the coordinates"
    assert not equal(wanted, all_to_all(shards[::-1], BATCH, HIDDEN, hidden)), "order of the pieces"
    assert not equal(broadcast(gather(shards, BATCH), 2), all_gather(shards[::-1], BATCH)), "gather order"
    assert not equal(broadcast(reduce(partial), 2), partial), "missing reduce"
    assert not equal(scatter(reduce(partial), HIDDEN, hidden), scatter(partial[0], HIDDEN, hidden)), "missing reduce"
    square = scatter(whole((4, 4)), BATCH, [2, 2])
    swapped = all_to_all(square, HIDDEN, HIDDEN, [2, 2])
    assert not equal(scatter(gather(square, BATCH), HIDDEN, [2, 2]), swapped), "concatenated along the wrong dim"
    permuted = all_to_all(square, BATCH, BATCH, [1, 1])
    assert not equal(square, permuted), "an all-to-all with equal dims permutes"


def test_top_k_states_cannot_be_combined_shard_by_shard_along_their_row() -> None:
    """Why a partial value that is no sum may be scattered only where its producer may be cut (`Spread`)."""

    def merge(states: list[np.ndarray]) -> np.ndarray:
        return np.sort(np.concatenate(states))[::-1][: len(states[0])]

    states = [np.array([9, 1]), np.array([8, 7])]
    halves = [merge([state[:1] for state in states]), merge([state[1:] for state in states])]
    assert merge(states).tolist() == [9, 8]
    assert np.concatenate(halves).tolist() == [9, 7]


TENSOR = Tensor(name="h", dims=("batch", "hidden"), dtype="bf16")
ENTRIES = {"R": "R", "P": "P", "O": "O", LABEL: "batch"}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.constructor} to {law.after}")
def test_each_law_is_the_collective_that_a_layout_makes_of_its_change(law: Law) -> None:
    old, new = ENTRIES[law.before], "hidden" if law.after == LABEL else ENTRIES[law.after]
    assert collective_of(old, new) == law.collective
    assert make_transfer("x", (old,), (new,)).derivation[0].primitive == PRIMITIVE_OF[law.collective]


def test_every_collective_has_one_law() -> None:
    states = ("R", "P", "O", "batch", "hidden")
    found = {collective_of(old, new) for old in states for new in states} - {""}
    assert found == {law.collective for law in LAWS}


def test_check_takes_exactly_what_the_law_is_for() -> None:
    pairs = {(old, new) for old in ENTRIES.values() for new in ("R", "P", "O", "hidden")}
    taken = set()
    for law in LAWS:
        for old, new in pairs:
            verdict = check_transfer(law, TENSOR, (old,), (new,))
            if isinstance(verdict, Ok):
                taken.add((old, new, law.collective))
                assert verdict.result.collective == law.collective
    assert taken == {(old, new, collective_of(old, new)) for old, new in pairs if collective_of(old, new)}


def test_several_axes_move_together_only_alike() -> None:
    alike = check_transfer(ALL_GATHER, TENSOR, ("batch", "batch"), ("R", "R"))
    assert isinstance(alike, Ok)
    assert alike.result.axes == (0, 1)
    refused = check_transfer(ALL_GATHER, TENSOR, ("batch", "hidden"), ("R", "R"))
    assert isinstance(refused, Refusal)
    assert refused.code == "not-one-step"


def test_a_dim_that_the_tensor_lacks_is_refused() -> None:
    refused = check_transfer(SLICE, TENSOR, ("R",), ("vocab",))
    assert isinstance(refused, Refusal)
    assert refused.code == "no-such-dim"


@pytest.mark.parametrize("role", sorted(LEAF_ROLES))
def test_of_what_rests_only_a_weight_moves_and_only_to_be_gathered(role: Role) -> None:
    tensor = Tensor(name="w", dims=("batch", "hidden"), dtype="bf16", role=role)
    for law in LAWS:
        old, new = ENTRIES[law.before], "hidden" if law.after == LABEL else ENTRIES[law.after]
        taken = isinstance(check_transfer(law, tensor, (old,), (new,)), Ok)
        assert taken == (law is ALL_GATHER and role is Role.WEIGHT), law.collective
