"""Both ends of the model, where the residual stream begins and ends."""

from __future__ import annotations

from rooflang.ir.tensor import Tensor
from rooflang.models.common import ends
from rooflang.models.deepseek_v4 import hyper
from rooflang.models.deepseek_v4.scope import Scope


def embedding(s: Scope, tokens: Tensor) -> Tensor:
    """Ids (rows) → the residual stream."""
    return hyper.start(s, ends.embedding(s, tokens))


def head(s: Scope, stream: Tensor) -> Tensor:
    """The stream → the id of each request's next token (batch); with drafts, of what follows each token checked."""
    return ends.next_token(s, hyper.end(s, ends.last_token(s, stream)), tied=s.config.tie_word_embeddings)
