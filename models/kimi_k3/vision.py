"""The vision encoder of a prompt with images: MoonViT (Kimi-VL, arXiv 2504.07491, section 2.1), and the projector.

Images are cut into patches, which attend all patches of their own image, in layers with plain multi-head attention and
a two-layer MLP. Squares of `merge_kernel_size` patches become one vector, and an MLP makes tokens of the language model
from them. All is BF16: the checkpoint quantizes neither `vision_tower` nor `mm_projector`.

The config gives the widths. Inferred from the encoders of Kimi-VL and Kimi K2.5, whose config names these parts alike:
the patch is a product with three colours; `patchmergerv2` norms each patch, and its hidden layer is as wide as the
merged patches. Left out: the position table (8 MB, interpolated and added in the epilogue of the first product), 2-D
RoPE, and pooling over the frames of a video.

The images of a prompt are of one size and stand one after the other; patches that merge are neighbours.
"""

from __future__ import annotations

import math

from rooflang.ir.tensor import DTYPES, Dim, Role, Tensor
from rooflang.models.kimi_k3.config import VisionConfig
from rooflang.models.kimi_k3.scope import Scope

_GROUP = "vision"
_COLOURS = 3
_PATCHES, _TOKENS, _WIDTH, _INNER = "batch patch", "batch image_token", "vit", "vit_ffn"
_QUERY, _KEY, _VALUE = "vit_head vit_query", "vit_kv vit_query", "vit_kv vit_value"


def image_tokens(s: Scope, c: VisionConfig) -> Tensor:
    """Vectors (batch image_token hidden) of the images of each request."""
    for dim in _dims(s, c):
        s.define(dim)
    rows, s.rows = s.rows, _PATCHES
    s.enter("vision.patches")
    pixels = s.graph_input("pixels", f"{_PATCHES} pixel")
    x = _linear(s, "patches", pixels, "pixel", _WIDTH)
    for layer in range(c.vt_num_hidden_layers):
        s.enter(f"vision.{layer}")
        x = _add(s, "attn_add", x, _attention(s, c, _norm(s, "attn_norm", x)))
        inner = _gelu(s, _linear(s, "up", _norm(s, "mlp_norm", x), _WIDTH, _INNER))
        x = _add(s, "mlp_add", x, _linear(s, "down", inner, _INNER, _WIDTH))
    s.enter("vision.projector")
    x = _norm(s, "merge_norm", _norm(s, "norm", x))
    merged = s.op("merge", "view", [x], f"{_TOKENS} merged {_WIDTH}", group=_GROUP)
    s.rows = _TOKENS
    inner = _gelu(s, _linear(s, "up", merged, f"merged {_WIDTH}", "projector_ffn"))
    out = _linear(s, "down", inner, "projector_ffn", "hidden")
    s.rows = rows
    return out


def _dims(s: Scope, c: VisionConfig) -> tuple[Dim, ...]:
    merged = math.prod(c.merge_kernel_size)
    tokens = s.assumptions.images * s.assumptions.image_tokens
    heads, width = c.vt_num_attention_heads, c.qkv_hidden_size // c.vt_num_attention_heads
    return (
        Dim(label="patch", size=tokens * merged, meaning="patches"),
        Dim(label="image_token", size=tokens, meaning="image tokens"),
        Dim(label="patch_key", size=tokens * merged, meaning="patches attended"),
        Dim(label="pixel", size=_COLOURS * c.patch_size**2, meaning="pixels"),
        Dim(label="vit", size=c.vt_hidden_size, meaning="encoder width"),
        Dim(label="vit_ffn", size=c.vt_intermediate_size, meaning="ffn"),
        Dim(label="vit_head", size=heads, meaning="head"),
        Dim(label="vit_kv", size=heads, meaning="head"),
        Dim(label="vit_query", size=width, meaning="head width"),
        Dim(label="vit_value", size=width, meaning="value width"),
        Dim(label="merged", size=merged, meaning="merged patches"),
        Dim(label="projector_ffn", size=merged * c.mm_hidden_size, meaning="ffn"),
    )


def _attention(s: Scope, c: VisionConfig, x: Tensor) -> Tensor:
    """Normed patches (batch patch vit) → (batch patch vit), the residual not added."""
    q = _linear(s, "q", x, _WIDTH, _QUERY)
    keys, values = (_kept(s, name, x, out) for name, out in (("k", _KEY), ("v", _VALUE)))
    mixed = s.op(
        "attention",
        "grouped_attention",
        [q, keys, values],
        f"{_PATCHES} vit_head vit_value",
        group=_GROUP,
        chunk=s.assumptions.image_tokens * math.prod(c.merge_kernel_size),
        value_bytes=s.size("vit_value") * DTYPES["bf16"].bytes_per_element,
    )
    return _linear(s, "o", mixed, "vit_head vit_value", _WIDTH)


def _kept(s: Scope, name: str, x: Tensor, out: str) -> Tensor:
    """Keys or values of all patches (batch patch_key …): what the projection of each patch writes."""
    made = _linear(s, name, x, _WIDTH, out, role=Role.ON_CHIP)
    return s.op(f"{name}_all", "pool", [made], f"batch patch_key {out}", group=_GROUP, fused=True)


def _linear(s: Scope, name: str, x: Tensor, inner: str, out: str, *, role: Role = Role.ACTIVATION) -> Tensor:
    """x (rows inner) by a weight → (rows out)."""
    weight = s.weight(f"{name}_w", f"{inner} {out}")
    return s.op(f"{name}_proj", "matmul", [x, weight], f"{s.rows} {out}", group=_GROUP, role=role)


def _norm(s: Scope, name: str, x: Tensor) -> Tensor:
    gain = s.weight(f"{name}_gain", _WIDTH)
    return s.op(name, "rms_norm", [x, gain], " ".join(x.dims), group=_GROUP, over=_WIDTH)


def _gelu(s: Scope, x: Tensor) -> Tensor:
    return s.op("gelu", "activation", [x], " ".join(x.dims), group=_GROUP, function="gelu")


def _add(s: Scope, name: str, x: Tensor, out: Tensor) -> Tensor:
    return s.op(name, "add", [x, out], " ".join(x.dims), group=_GROUP)
