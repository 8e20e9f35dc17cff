"""References against plain loops, written again from what each kind is said to compute."""

from __future__ import annotations

from math import erf, exp, sqrt, tanh

import numpy as np
import pytest

from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.reference import reference
from rooflang.ir.reference.base import Array

from .cases import CASES, the_op


def run(graph: Graph, *operands: object, **sizes: int) -> Array:
    op = the_op(graph.resized(**sizes))
    return reference(op.kind).full(op, graph.resized(**sizes).sizes, *(np.asarray(a) for a in operands))


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def silu(x: float) -> float:
    return x / (1 + exp(-x))


def test_matmul_with_a_batch_label() -> None:
    x, w = numbers(2, 3, 4, 5), numbers(3, 5, 2, 4, seed=1)
    found = run(CASES["matmul_per_expert"](), x, w, b=2, e=3, k=4, j=5, n=2)
    for b, e, n in np.ndindex(2, 3, 2):
        assert found[b, e, n] == pytest.approx(sum(x[b, e, k, j] * w[e, j, n, k] for k in range(4) for j in range(5)))


def test_gated_matmul_is_the_activated_first_half_times_the_second() -> None:
    x, w = numbers(2, 3, 4), numbers(3, 4, 2, 5, seed=1)
    found = run(CASES["gated_matmul"](), x, w, b=2, e=3, k=4, n=5)
    for b, e, n in np.ndindex(2, 3, 5):
        gate, up = (sum(x[b, e, k] * w[e, k, half, n] for k in range(4)) for half in (0, 1))
        assert found[b, e, n] == pytest.approx(silu(gate) * up)


def test_add_follows_labels_not_positions() -> None:
    x, z = numbers(2, 3), numbers(3, 2, seed=1)
    assert np.array_equal(run(CASES["add"](), x, z, b=2, h=3), x + z.T)


@pytest.mark.parametrize(
    ("function", "formula"),
    [
        ("silu", silu),
        ("gelu", lambda x: x * (1 + erf(x / sqrt(2))) / 2),
        ("relu", lambda x: max(x, 0)),
        ("sigmoid", lambda x: 1 / (1 + exp(-x))),
        ("tanh", tanh),
    ],
)
def test_activations(function: str, formula: object) -> None:
    g = GraphBuilder("g", b=9)
    graph = g.build(g.op("y", "activation", [g.input("x", "b")], "b", function=function))
    x = np.linspace(-4, 4, 9)
    assert run(graph, x) == pytest.approx([formula(v) for v in x], abs=1e-3)  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["to_hbm", "to_dram", "to_nvme"])
def test_moves_are_bit_exact(kind: str) -> None:
    x = np.array([[1e-300, 2**53 + 2.0], [-0.0, np.pi]])
    g = GraphBuilder("g", b=2, h=2)
    assert run(g.build(g.op("y", kind, [g.input("x", "b h")], "b h")), x).tobytes() == x.tobytes()


def test_rms_norm() -> None:
    x, gain = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([1.0, 2.0])
    rms = sqrt(12.5 + 1e-6)
    assert run(CASES["rms_norm_gain"](), x, gain) == pytest.approx(np.array([[3 / rms, 8 / rms], [0, 0]]))


def softmax_mix(q: Array, keys: list[Array]) -> Array:
    if not keys:
        return np.zeros_like(q)
    weights = [exp(float(q @ key) / sqrt(len(q))) for key in keys]
    return np.asarray(sum(w * key for w, key in zip(weights, keys)) / sum(weights))


def test_attention_over_window_and_chosen_entries() -> None:
    """Keys are values; ids name entries once however often they are repeated; −1 names none."""
    q, near, far = numbers(2, 2, 3, 4), numbers(2, 2, 4, seed=1), numbers(2, 5, 4, seed=2)
    ids = np.array([[[0, 3], [3, 3]], [[-1, 4], [1, 2]]])
    found = run(
        CASES["attention_chosen"](), q, near, far, ids, batch=2, seq=2, head=3, dim=4, window=2, ctx=5, chosen=2
    )
    for b, s, h in np.ndindex(2, 2, 3):
        entries = [far[b, i] for i in sorted(set(ids[b, s].tolist()) - {-1})]
        assert found[b, s, h] == pytest.approx(softmax_mix(q[b, s, h], [*near[b], *entries]))


def test_attention_that_scores_its_index_takes_the_best_entries() -> None:
    q, far = numbers(1, 2, 4), numbers(1, 3, 4, seed=1)
    keys = np.array([[[1.0, 1.0], [0.0, 3.0], [2.0, 0.0]]])  # sums 2, 3, 2: entry 1, then 0 before 2
    found = run(CASES["attention_indexed"](), q, far, keys, batch=1, head=2, dim=4, ctx=3, width=2)
    for h in range(2):
        assert found[0, h] == pytest.approx(softmax_mix(q[0, h], [far[0, 0], far[0, 1]]))


def test_attention_to_nothing_is_zero() -> None:
    g = GraphBuilder("g", batch=1, dim=2, ctx=2, chosen=1)
    operands = [g.input("q", "batch dim"), g.cache("far", "batch ctx dim"), g.input("ids", "batch chosen", "int32")]
    graph = g.build(g.op("y", "attention", operands, "batch dim", parts=("context", "selection"), select=1))
    assert np.array_equal(run(graph, numbers(1, 2), numbers(1, 2, 2), [[-1]]), np.zeros((1, 2)))


def test_index_select_orders_by_score_then_id() -> None:
    q = np.array([[[[1.0], [-1.0]]]])  # two heads of width 1
    weights, keys = np.array([[[2.0, 3.0]]]), np.array([[[1.0], [-1.0], [1.5], [1.5]]])
    # Σ weight · relu(query · key): 2, 3, 3, 3
    found = run(CASES["index_select"](), q, weights, keys, batch=1, seq=1, head=2, width=1, ctx=4, chosen=3)
    assert found.tolist() == [[[1, 2, 3]]]
    more = run(CASES["index_select"](), q, weights, keys, batch=1, seq=1, head=2, width=1, ctx=4, chosen=6)
    assert more.tolist() == [[[1, 2, 3, 0, -1, -1]]]


def test_route_normalises_the_chosen() -> None:
    logits = np.array([[[1.0], [3.0], [3.0], [2.0]]])
    assert run(CASES["route"](), logits, b=1, t=1, expert=4)[0, 0] == pytest.approx([0, 0.5, 0.5, 0])
    total = exp(1) + exp(3)
    few = run(CASES["route"](), logits[:, :2], b=1, t=1, expert=2)[0, 0]
    assert few == pytest.approx([exp(1) / total, exp(3) / total])


def test_hash_route_takes_experts_from_a_table() -> None:
    logits, table = np.array([[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]]), np.array([[2, 0], [1, 1]])
    found = run(CASES["hash_route"](), logits, [[0, 1]], table, b=1, t=2, expert=3)
    total = exp(1) + exp(3)
    assert found[0, 0] == pytest.approx([exp(1) / total, 0, exp(3) / total])
    assert found[0, 1] == pytest.approx([0, 1, 0])


def test_dispatch_and_combine() -> None:
    x, gates = numbers(2, 1, 3), np.array([[[0.25, 0.75, 0.0]], [[0.0, 0.0, 1.0]]])
    rows = run(CASES["dispatch"](), x, gates, b=2, t=1, expert=3, h=3)
    assert rows.shape == (2, 3, 1, 3)
    for b, e in np.ndindex(2, 3):
        assert rows[b, e, 0] == pytest.approx(x[b, 0] * (gates[b, 0, e] > 0))
    mixed = run(CASES["combine"](), rows.transpose(0, 2, 1, 3), gates, b=2, t=1, expert=3, h=3)
    assert mixed == pytest.approx(x)  # the weights of a token sum to 1


def test_embed_gives_zeros_for_what_is_no_id() -> None:
    table = numbers(4, 3)
    found = run(CASES["embed"](), [[3, 0, 4, -1]], table, b=1, t=4, vocab=4, h=3)
    assert pytest.approx(np.array([table[3], table[0], np.zeros(3), np.zeros(3)])) == found[0].T


def test_last_token_and_argmax() -> None:
    x = numbers(2, 4, 3)
    assert np.array_equal(run(CASES["last_token"](), x, b=2, seq=4, h=3), x[:, -1].T)
    assert run(CASES["argmax"](), [[[1.0, 2.0, 2.0], [-3.0, -5.0, -3.0]]], b=1, t=2, vocab=3).tolist() == [[1], [0]]


def gated_mean(values: list[float]) -> float:
    weights = [exp(v) for v in values]
    return sum(w * v for w, v in zip(weights, values)) / sum(weights)


def test_pool_makes_an_entry_of_its_positions() -> None:
    """Five positions make two entries of three and two; labels that an entry lacks are consumed."""
    x = numbers(1, 5, 2, 3)
    found = run(CASES["pool"](), x, b=1, seq=5, ctx=2, part=2, h=3, wide=2)
    for entry, positions in enumerate(([0, 1, 2], [3, 4])):
        for h, wide in np.ndindex(3, 2):
            values = [x[0, p, part, h] for p in positions for part in range(2)]
            assert found[0, entry, h, wide] == pytest.approx(gated_mean(values))


def test_a_window_longer_than_the_sequence_begins_with_zeros() -> None:
    x = numbers(1, 2, 3)
    found = run(CASES["last_window"](), x, b=1, seq=2, window=4, h=3)
    assert np.array_equal(found[0], np.concatenate([np.zeros((2, 3)), x[0]]))
    assert np.array_equal(run(CASES["last_window"](), x, b=1, seq=2, window=1, h=3)[0], x[0, 1:])


def test_append_writes_the_last_position_only() -> None:
    new, old = numbers(2, 1, 3), numbers(1, 4, 3, seed=1)
    found = run(CASES["kv_append"](), new, old, b=1, window=4, h=3, part=2)
    assert np.array_equal(found[0, :3], old[0, :3])
    assert found[0, 3] == pytest.approx([gated_mean([new[0, 0, h], new[1, 0, h]]) for h in range(3)])


def test_several_entries_are_appended_in_their_order() -> None:
    new, old = numbers(1, 2, 1, 3), numbers(1, 4, 3, seed=1)
    found = run(CASES["kv_append_several"](), new, old, b=1, window=4, several=2, h=3, part=1)
    assert np.array_equal(found[0], np.concatenate([old[0, :2], new[0, :, 0]]))
    longer = run(CASES["kv_append_several"](), new, old[:, :1], b=1, window=1, several=2, h=3, part=1)
    assert np.array_equal(longer[0], new[0, 1:, 0])


def test_a_dim_under_another_label_has_the_same_elements() -> None:
    x = numbers(2, 3, 4)
    assert np.array_equal(run(CASES["rename"](), x, b=2, old=3, t=4, new=3), x.transpose(2, 1, 0))


def test_what_is_given_stands_first() -> None:
    x, z = numbers(2, 4, 3), numbers(2, 2, 3, seed=1)
    found = run(CASES["fill_in"](), x, z, b=2, seq=4, image=2, h=3)
    assert np.array_equal(found, np.concatenate([z, x[:, 2:]], 1).transpose(2, 0, 1))


def test_hyper_connections() -> None:
    x, c, z = numbers(1, 2, 3), numbers(8, 1, seed=1), numbers(1, 3, seed=2)
    assert np.array_equal(run(CASES["hyper_expand"](), z, b=1, copy=2, h=3), np.stack([z, z], 1))
    weights = [1 / (1 + exp(-v)) for v in c[:, 0]]
    read = run(CASES["hyper_read"](), x[:, None], c.T[:, None], b=1, t=1, copy=2, h=3, mix=8)
    assert read[0, 0] == pytest.approx(weights[0] * x[0, 0] + weights[1] * x[0, 1])
    found = run(CASES["hyper_write"](), x, c, z, b=1, copy=2, h=3, mix=8)
    for copy in range(2):
        mix = [exp(v) for v in c[4 + 2 * copy : 6 + 2 * copy, 0]]
        old = (mix[0] * x[0, 0] + mix[1] * x[0, 1]) / sum(mix)
        assert found[0, copy] == pytest.approx(old + weights[2 + copy] * z[0])


def test_a_fused_operator_is_its_two_in_turn() -> None:
    rows, gates, z = numbers(2, 3, 4), numbers(2, 3, seed=1), numbers(2, 4, seed=2)
    found = run(CASES["combine_add"](), rows, gates, z, b=2, expert=3, h=4)
    assert found == pytest.approx(np.einsum("beh,be->bh", rows, gates) + z)
    raw, gain, w = numbers(2, 2, 3), numbers(3, seed=1), numbers(2, 3, 4, seed=2)
    normed = raw / np.sqrt((raw**2).mean(-1, keepdims=True) + 1e-6) * gain
    assert run(CASES["norm_matmul"](), raw, gain, w, b=2, t=2, h=3, n=4) == pytest.approx(
        np.einsum("bth,thn->bn", normed, w)
    )
