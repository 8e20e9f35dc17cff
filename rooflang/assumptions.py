"""Assumption profiles: what a cost is allowed to take for granted. One record, read by the builders and by `cost`.

An assumption changes which operators a builder emits and what they cost. It never changes what a rewrite means.
`physical` is what hardware does; `paper` is what the published numbers of the RoofLang paper (arXiv 2609.12551) take
for granted, as its authors' released presets and program declarations show. Each field says both. The last ones are
about the requests: both profiles leave out what they switch on (docs/extensions.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Literal

from rooflang.errors import UnknownNameError, ValueRangeError
from rooflang.units import whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What is taken for granted. Defaults are the `physical` profile."""

    name: str = "physical"

    embedding_read: Literal["rows", "table"] = "rows"
    """Bytes an embedding reads: the rows of its tokens (physical), or the whole table every step (paper)."""

    expert_coverage: Literal["expected", "distinct"] = "expected"
    """Experts whose weights are read: E·(1 − (1 − k/E)^tokens) for independent routes (physical), or every route
    hits another expert until all are hit (paper)."""

    expert_copies: bool = False
    """Rows are gathered before and scattered after the experts by copies at HBM speed (paper), or written where
    they are used (physical)."""

    dispatch_copies: Literal["rank", "expert"] = "rank"
    """What travels to the experts: one copy of a token per destination rank (physical) or per expert (paper)."""

    routed_dtype: Literal["bf16", "fp8_block"] = "bf16"
    """Dtype in which routed tokens are dispatched. Both profiles use BF16; serving stacks also use FP8."""

    remote_latency: bool = True
    """Remote reads and writes pay the path's latency, as the paper's equation 3 says (physical), or not (paper)."""

    remote_memory_traffic: bool = True
    """A remote write also costs the HBM bandwidth of the writer (physical), or only that of the link (paper)."""

    partial_state: bool = True
    """Partial attention outputs carry their log-sum-exp statistics (physical) or not (paper)."""

    collective: Literal["hierarchical", "bottleneck"] = "hierarchical"
    """Bandwidth of a collective across domains: by fabric level, slowest level counts (physical), or one effective
    bandwidth for the whole group, the smallest number of participants in a domain times their NICs (paper)."""

    switch_reduction: bool = False
    """The scale-up switch adds the values of an all-reduce itself (NVLink SHARP). Off in both profiles: it has to be
    asked for, as not every message size and dtype gets it."""

    compressor: Literal["always", "prefill"] = "always"
    """V4's KV compressor projections run in decode too (physical), or only in prefill, in FP32 (paper)."""

    indexer: bool = True
    """V4's indexer projections are operators (physical); the paper counts only its scores."""

    hyper_connections: bool = True
    """V4's residual stream has `hc_mult` copies mixed before and after each sub-layer (physical); the paper has one."""

    kv_append: bool = True
    """A decode step appends to the KV cache (physical); the paper omits it."""

    hash_routing: bool = True
    """V4's first layers pick experts by a token table (physical); the paper routes every layer by its gate."""

    fused_attention: bool = False
    """MLA's products with the absorbed projections and KDA's short convolutions are kernels of their own (physical), or
    part of the attention kernel (paper)."""

    checkpoint_weights: bool = True
    """Weights are those of the published checkpoint (physical), or those that the paper's programs declare: K3's
    projections, shared experts and dense layer in FP8 (Table 4) where the checkpoint has BF16, a bias for its short
    convolutions, and an output norm gain per channel of all heads."""

    gathered_blocks: bool = False
    """K3's head takes the last token of every finished block of layers where it is (physical), or has the whole
    sequences come together for it and reads them (paper; inferred from published points, decision 005)."""

    receive_buffers: bool = True
    """What a collective receives occupies memory until its last use (physical) or is free (paper)."""

    draft_tokens: int = 0
    """Tokens that each request drafts in a decode step with the model's multi-token-prediction layers, and checks in
    the next one together with the last token. 0, as in both profiles, is plain decoding."""

    accepted_tokens: float = 1.0
    """Tokens that a request gains in a step with drafts, on average: the accepted ones and the one that the check
    itself makes. It depends on model and text and is an input here: at least 1, at most `draft_tokens` + 1."""

    expert_zipf: float = 0.0
    """Exponent s of the experts' popularity: the i-th most popular one is chosen in proportion to 1/iˢ. 0, as in both
    profiles, is perfect balance. Popular experts lie as far from each other as they can."""

    expert_histogram: tuple[float, ...] = ()
    """Instead: how often each expert is chosen, by its number, in any unit. Ranks own experts of consecutive numbers.
    Empty in both profiles."""

    images: int = 0
    """Images in each prompt that the model's vision encoder has to encode. None in both profiles."""

    image_tokens: int = 1024
    """Tokens of the prompt that an image takes. Kimi K3 makes one of 28 × 28 pixels: 1,024 of 896 × 896."""

    def __post_init__(self) -> None:
        _check_drafts(self.draft_tokens, self.accepted_tokens)
        _check_load(self.expert_zipf, self.expert_histogram)
        whole(self.images, where="--images", least=0)
        whole(self.image_tokens, where="--image-tokens")

    @property
    def skewed(self) -> bool:
        """Whether some experts are chosen more often than others."""
        return self.expert_zipf > 0 or bool(self.expert_histogram)

    def differs_from(self, other: Assumptions) -> dict[str, tuple[object, object]]:
        """Fields in which two profiles differ, as name → (own value, other's value); the name itself is left out."""
        mine = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "name"}
        return {k: (v, getattr(other, k)) for k, v in mine.items() if v != getattr(other, k)}


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _check_drafts(drafted: int, accepted: float) -> None:
    whole(drafted, where="--draft-tokens", least=0)
    if not _number(accepted) or not 1 <= accepted <= drafted + 1:
        raise ValueRangeError(
            f"{accepted!r} tokens a step with {drafted} drafted",
            where="--accepted-tokens",
            expected=f"1 to {drafted + 1}: the drafts that are accepted, and one more",
        )


def _check_load(zipf: float, histogram: tuple[float, ...]) -> None:
    if not _number(zipf) or zipf < 0:
        raise ValueRangeError(f"{zipf!r} is not possible", where="--expert-zipf", expected="0 (balanced) or more")
    if not isinstance(histogram, tuple) or not all(_number(each) and each >= 0 for each in histogram):
        raise ValueRangeError(
            "not a number of choices for each expert", where="--expert-histogram", expected="numbers, 0 or more"
        )
    if histogram and not any(histogram):
        raise ValueRangeError("no expert is ever chosen", where="--expert-histogram", expected="a number above 0")
    if zipf and histogram:
        raise ValueRangeError("the experts' load is given twice", where="--expert-zipf, --expert-histogram")


PHYSICAL = Assumptions()

PAPER = replace(
    PHYSICAL,
    name="paper",
    embedding_read="table",
    expert_coverage="distinct",
    expert_copies=True,
    dispatch_copies="expert",
    remote_latency=False,
    remote_memory_traffic=False,
    partial_state=False,
    collective="bottleneck",
    compressor="prefill",
    indexer=False,
    hyper_connections=False,
    kv_append=False,
    hash_routing=False,
    fused_attention=True,
    checkpoint_weights=False,
    gathered_blocks=True,
    receive_buffers=False,
)

PROFILES = {p.name: p for p in (PHYSICAL, PAPER)}


def profile(name: str) -> Assumptions:
    """The profile of that name. Raises `UnknownNameError`."""
    if name not in PROFILES:
        raise UnknownNameError("assumption profile", str(name), PROFILES, where="--assumptions")
    return PROFILES[name]
