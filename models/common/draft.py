"""Speculative decoding with a model's own multi-token-prediction (MTP) layers (DeepSeek-V3, arXiv 2412.19437, section
2.2; there and here the embedding and the head are those of the model).

A decode step checks the last token of each request and the k tokens drafted after it in one run of the model, then
drafts the next k. An MTP layer takes the stream of the model where it has run, and the embedding of the token that
follows: each is normed and projected, both are added, and a layer of the model's own kind follows. The first run has
all k + 1 tokens, since the layer's cache has to have what was accepted; the others go on from the last token, one by
one. A model with fewer MTP layers than runs uses its last one again, with its weights and its cache.

What is accepted is not known here: all k + 1 tokens are run, and `Assumptions.accepted_tokens` says what a step gains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rooflang.ir.tensor import Dim, Tensor
from rooflang.models.common import ends
from rooflang.models.common.scope import DRAFT, Scope

#: Label of what an MTP layer takes: a vector of the model's width, under a name of its own.
JOINED = "mtp_in"

#: Runs one MTP layer: (its number from 0, its input (rows … hidden), ids of its tokens (rows)) → its stream.
Layer = Callable[[int, Tensor, Tensor], Tensor]


def drafted(
    s: Scope[Any],
    checked: Tensor,
    stream: Tensor,
    *,
    layers: int,
    layer: Layer,
    read: Callable[[Tensor], Tensor],
    tied: bool,
    dtype: str,
) -> tuple[Tensor, ...]:
    """Ids (batch) of the tokens that a step drafts, in the block `draft`.

    The model has `layers` for it, of which `layer` runs one. `checked` are the ids (batch draft) that the model found,
    `stream` (batch draft … hidden) what it found them from. `read` makes of a stream (batch … hidden) what the head
    reads (batch hidden); `dtype` is that of the two matrices.
    """
    s.define(Dim(label=JOINED, size=s.size("hidden"), meaning="hidden"))
    ids, found = checked, []
    for run in range(s.assumptions.draft_tokens):
        number = min(run, layers - 1)
        s.enter("draft", run=f"run{run}", layer=f"mtp{number}")
        stream = layer(number, _joined(s, ids, stream, dtype), ids)
        if run == 0:
            s.rows = "batch"
            stream = ends.last_of(s, stream, DRAFT)
        s.enter("draft", run=f"run{run}.head", layer=f"mtp{number}.head")
        ids = ends.next_token(s, read(stream), tied=tied)
        found.append(ids)
    return tuple(found)


def _joined(s: Scope[Any], ids: Tensor, stream: Tensor, dtype: str) -> Tensor:
    """The next tokens (rows) and the stream (rows … hidden) → the input of the layer (rows … hidden)."""
    table = s.shared("embed.table", "vocab hidden")
    token = s.op("rows", "embed", [ids, table], f"{s.rows} hidden", group="embedding")
    token = _projected(s, "token", token, dtype)
    copies = tuple(d for d in stream.dims if d not in token.dims)
    if copies:
        token = s.op("token_copies", "hyper_expand", [token], " ".join(stream.dims), group="drafting")
    return s.op(
        "joined", "add", [token, _projected(s, "stream", stream, dtype)], " ".join(stream.dims), group="drafting"
    )


def _projected(s: Scope[Any], name: str, x: Tensor, dtype: str) -> Tensor:
    """x (… hidden) normed, and by a square matrix."""
    normed = s.norm(f"{name}_norm", x, "hidden")
    inner = " ".join(JOINED if d == "hidden" else d for d in x.dims)
    read = s.op(f"{name}_in", "rename", [normed], inner, group="drafting")
    weight = s.weight(f"{name}_w", f"{JOINED} hidden", dtype)
    return s.op(f"{name}_proj", "matmul", [read, weight], " ".join(x.dims), group="drafting")
