"""What a decoder is made of, whatever the names in its `config.json`: layers, each an attention and an FFN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rooflang.models.common.config import expert_words
from rooflang.models.hf.quantisation import Formats


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """Softmax attention of `heads` query heads that share `kv_heads` key-value heads: MHA, GQA, MQA.

    `window`: positions that a query sees, 0 for all; `chunk`: it sees those of its own chunk of so many. `rotary`:
    elements of a head that are rotated, 0 for none. `qk_norm`: queries and keys are normed per head, or over all heads
    at once, or not. `gate`: the output is multiplied by the sigmoid of a gate of its own width (Qwen3-Next).
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    rotary: int
    window: int = 0
    chunk: int = 0
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: Literal["none", "head", "all", "plain"] = "none"
    sinks: bool = False
    softcap: float = 0.0
    gate: bool = False

    @property
    def words(self) -> str:
        """The attention in words."""
        sort = "MHA" if self.kv_heads == self.heads else "MQA" if self.kv_heads == 1 else "GQA"
        heads = f"{self.heads} heads" if sort == "MHA" else f"{self.heads} heads, {self.kv_heads} KV"
        reach = f", window {self.window}" if self.window else f", chunks of {self.chunk}" if self.chunk else ""
        return f"{sort} ({heads}{reach}{', sinks' if self.sinks else ''})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The indexer of sparse attention (DSA): `heads` of `width` score all entries, `topk` of them are attended."""

    heads: int
    width: int
    topk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention. `q_rank` 0: queries come from the input in one product."""

    heads: int
    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int
    index: Index | None = None

    @property
    def words(self) -> str:
        """The attention in words."""
        chosen = f", top-{self.index.topk} of context" if self.index else ""
        return f"MLA ({self.heads} heads, entries of {self.kv_rank + self.rope}{chosen})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A gated delta rule: a state of key × value elements per value head. `decay`: one number per head (Gated DeltaNet,
    arXiv 2412.06464), or one per channel of the keys by way of `decay_rank` (Kimi Delta Attention). `gate_rank`: the
    output gate's, 0 for a product of full rank. `taps`: inputs of the short convolutions. `state_dtype`: of the state
    as it is kept between steps."""

    heads: int
    key_heads: int
    key: int
    value: int
    taps: int
    decay: Literal["head", "channel"]
    decay_rank: int = 0
    gate_rank: int = 0
    state_dtype: str = "bf16"

    @property
    def words(self) -> str:
        """The attention in words."""
        name = "gated delta" if self.decay == "head" else "KDA"
        return f"{name} (state of {self.heads} heads)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lightning:
    """Linear attention with a fixed decay per head (Lightning Attention, arXiv 2501.08313): a state of head_dim ×
    head_dim per head."""

    heads: int
    head_dim: int

    @property
    def words(self) -> str:
        """The attention in words."""
        return f"lightning (state of {self.heads} heads)"


Attention = Grouped | Latent | Delta | Lightning


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """A feed-forward part that every token runs: up (and gate), activation, down."""

    width: int
    activation: str = "silu"
    gated: bool = True
    bias: bool = False

    @property
    def words(self) -> str:
        """The feed-forward part in words."""
        return f"dense {self.width}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts: `chosen` of `count`, each of `width`, beside a shared one of `shared` in all (0 for none),
    which `shared_gate` weighs by a sigmoid per token. `bias`: the experts' products have one, and `router_bias` the
    router's; `choice_bias`: a number per expert that is added for the choice only. `scores`: what the chosen are
    weighed by (`rooflang.ir.kinds.moe`)."""

    count: int
    chosen: int
    width: int
    shared: int = 0
    shared_gate: bool = False
    activation: str = "silu"
    bias: bool = False
    router_bias: bool = False
    choice_bias: bool = False
    scores: Literal["chosen", "softmax", "sigmoid"] = "chosen"

    @property
    def words(self) -> str:
        """The feed-forward part in words."""
        shared = self.shared // self.width if self.shared >= self.width else bool(self.shared)
        return expert_words(self.chosen, self.count, shared)


FeedForward = Dense | Experts


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer."""

    attention: Attention
    ffn: FeedForward


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """A decoder-only language model.

    `norm`: RMS norm with a gain, or layer norm with gain and bias. `sandwich`: sub-layers are normed after as well as
    before (Gemma 2, GLM-4). `scaled`: embeddings are multiplied by √hidden. `logit_cap`: the head's logits are squashed
    by tanh, 0 for none. `formats`: how weights and caches are stored. `draft_layers`: layers for multi-token
    prediction, of the last layer's kind.
    """

    model_type: str
    vocab: int
    hidden: int
    max_context: int
    tied: bool
    stack: tuple[Layer, ...]
    formats: Formats
    norm: Literal["rms", "layer"] = "rms"
    sandwich: bool = False
    scaled: bool = False
    logit_cap: float = 0.0
    head_bias: bool = False
    draft_layers: int = 0

    @property
    def layers(self) -> int:
        """Number of layers, those for multi-token prediction not counted."""
        return len(self.stack)

    @property
    def attention_words(self) -> str:
        """The layers' attention in words, counted."""
        return _counted(layer.attention.words for layer in self.stack)

    @property
    def ffn_words(self) -> str:
        """The layers' feed-forward part in words, counted."""
        return _counted(layer.ffn.words for layer in self.stack)


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} × {each}" for each, count in Counter(words).items())
