"""The scope of a builder, and the one table of dims of a decoder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from rooflang.errors import ModelError
from rooflang.ir.tensor import Dim
from rooflang.models.common import scope
from rooflang.models.hf.records import Attention, Decoder, Delta, Dense, FeedForward, Grouped, Latent, Lightning
from rooflang.models.workload import Workload

Scope: TypeAlias = scope.Scope[Decoder]


def dim_table(decoder: Decoder, workload: Workload) -> dict[str, Dim]:
    """Every dim that a decoder's graph can have, by label. The words are those that plans show to people.

    Raises `ModelError` where layers would give one label two sizes.
    """
    table = {d.label: d for d in _shared(decoder, workload)}
    for layer in decoder.stack:
        for dim in (*_attention_dims(layer.attention, workload), *_ffn_dims(layer.ffn)):
            if table.setdefault(dim.label, dim).size != dim.size:
                raise ModelError(
                    f"layers differ in {dim.word}: {table[dim.label].size} and {dim.size}", where=decoder.model_type
                )
    return table


def _shared(decoder: Decoder, workload: Workload) -> Iterator[Dim]:
    yield Dim(label="batch", size=workload.batch)
    yield Dim(label="seq", size=workload.tokens, meaning="sequence")
    yield Dim(label="ctx", size=workload.context, meaning="context")
    yield Dim(label="hidden", size=decoder.hidden)
    yield Dim(label="vocab", size=decoder.vocab, meaning="vocabulary")
    yield Dim(label="gate", size=2, meaning="gate and up")


def _attention_dims(attention: Attention, workload: Workload) -> Iterator[Dim]:
    match attention:
        case Grouped():
            yield from _grouped_dims(attention, workload)
        case Latent():
            yield from _latent_dims(attention, workload)
        case Delta():
            yield Dim(label="delta_head", size=attention.heads, meaning="head")
            yield Dim(label="delta_group", size=attention.key_heads, meaning="key head")
            yield Dim(label="delta_key", size=attention.key, meaning="key width")
            yield Dim(label="delta_value", size=attention.value, meaning="value width")
            yield Dim(label="tap", size=attention.taps, meaning="convolution")
            yield Dim(label="decay_rank", size=max(1, attention.decay_rank), meaning="decay rank")
            yield Dim(label="gate_rank", size=max(1, attention.gate_rank), meaning="gate rank")
        case Lightning():
            yield Dim(label="linear_head", size=attention.heads, meaning="head")
            yield Dim(label="linear_key", size=attention.head_dim, meaning="key width")
            yield Dim(label="linear_value", size=attention.head_dim, meaning="value width")
            yield Dim(label="linear_wide", size=attention.heads * attention.head_dim, meaning="all heads")


def _grouped_dims(a: Grouped, workload: Workload) -> Iterator[Dim]:
    yield Dim(label="head", size=a.heads)
    yield Dim(label="kv", size=a.kv_heads, meaning="key-value head")
    yield Dim(label="head_dim", size=a.head_dim, meaning="head width")
    yield Dim(label="value", size=a.value_dim, meaning="value width")
    yield Dim(label="heads_wide", size=a.heads * a.head_dim, meaning="all heads")
    yield Dim(label="kv_wide", size=a.kv_heads * a.head_dim, meaning="all key-value heads")
    if reach(a):
        yield Dim(label=cache_label(a), size=min(reach(a), workload.context), meaning="window")


def reach(a: Grouped) -> int:
    """Positions that the cache of a windowed or chunked layer keeps, 0 for all."""
    return a.window or a.chunk


def cache_label(a: Grouped) -> str:
    """Label of the positions in the cache."""
    return f"window{reach(a)}" if reach(a) else "ctx"


def _latent_dims(a: Latent, workload: Workload) -> Iterator[Dim]:
    yield Dim(label="head", size=a.heads)
    yield Dim(label="key_head", size=a.heads, meaning="head")  # of keys and values that are made for every head
    if a.q_rank:
        yield Dim(label="q_lora", size=a.q_rank, meaning="query rank")
    yield Dim(label="query", size=a.nope + a.rope, meaning="query width")
    yield Dim(label="nope", size=a.nope, meaning="unrotated query width")
    yield Dim(label="latent", size=a.kv_rank + a.rope, meaning="entry width")
    yield Dim(label="kv_lora", size=a.kv_rank, meaning="latent rank")
    yield Dim(label="value", size=a.value, meaning="value width")
    if a.index:
        yield Dim(label="index_head", size=a.index.heads, meaning="index head")
        yield Dim(label="index_dim", size=a.index.width, meaning="index width")
        yield Dim(label="chosen", size=min(a.index.topk, workload.context), meaning="chosen entries")


def _ffn_dims(ffn: FeedForward) -> Iterator[Dim]:
    if isinstance(ffn, Dense):
        yield Dim(label="dense_ffn", size=ffn.width, meaning="ffn")
        return
    yield Dim(label="expert", size=ffn.count)
    yield Dim(label="ffn", size=ffn.width)
    if ffn.shared:
        yield Dim(label="shared_ffn", size=ffn.shared, meaning="ffn")
        yield Dim(label="one", size=1, meaning="one number")
