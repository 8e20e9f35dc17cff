"""The residual stream: one copy and plain adds, or `hc_mult` copies and hyper-connections (DeepSeek-V4 report, 2.2).

A sub-layer reads a mix of the copies and writes its output back into a mix of them. The coefficients of both come from
one FP32 product of the whole stream; their Sinkhorn iterations, on a few numbers per token, are not counted.
"""

from __future__ import annotations

from rooflang.ir.tensor import Tensor
from rooflang.models.deepseek_v4.scope import Scope

_GROUP = "hyper-connections"


def start(s: Scope, x: Tensor) -> Tensor:
    """The stream that begins with the embedded tokens x (rows hidden)."""
    if not s.assumptions.hyper_connections:
        return x
    return s.op("stream", "hyper_expand", [x], f"{s.rows} copy hidden", group=_GROUP)


def read(s: Scope, part: str, stream: Tensor) -> tuple[Tensor, Tensor | None]:
    """Input of the sub-layer `part` (rows hidden), and the coefficients (rows mix) with which to write back."""
    if not s.assumptions.hyper_connections:
        return stream, None
    mix = _coefficients(s, part, stream, "mix")
    return s.op(f"{part}_read", "hyper_read", [stream, mix], f"{s.rows} hidden", group=_GROUP), mix


def write(s: Scope, part: str, stream: Tensor, mix: Tensor | None, out: Tensor) -> Tensor:
    """The stream after the sub-layer `part`, whose output is `out` (rows hidden)."""
    if mix is None:
        return s.op(f"{part}_add", "add", [stream, out], f"{s.rows} hidden", group="residual")
    return s.op(f"{part}_write", "hyper_write", [stream, mix, out], f"{s.rows} copy hidden", group=_GROUP)


def end(s: Scope, stream: Tensor) -> Tensor:
    """The tokens' vectors (… hidden) from their stream (… copy hidden), as the head reads them."""
    if not s.assumptions.hyper_connections:
        return stream
    mix = _coefficients(s, "head", stream, "head_mix")
    return s.op("head_read", "hyper_read", [stream, mix], " ".join(d for d in stream.dims if d != "copy"), group=_GROUP)


def _coefficients(s: Scope, part: str, stream: Tensor, label: str) -> Tensor:
    rows = " ".join(stream.dims[:-2])
    weight = s.weight(f"{part}_mix_w", f"copy hidden {label}", "fp32")
    return s.op(f"{part}_mix", "matmul", [stream, weight], f"{rows} {label}", "fp32", group=_GROUP)
