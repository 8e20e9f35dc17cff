"""The feed-forward part of a layer: a gated product, and the same per expert, with router, dispatch and combine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rooflang.ir.tensor import Dim, Tensor
from rooflang.models.common.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The routed experts of a layer: each token goes to `chosen` of `count`. They take vectors of the label `width`.

    `function` is what is done to the gate (`rooflang.ir.kinds.gated`), `biased` says that both products of an expert
    add a bias, `scores` what the chosen are weighed by (`rooflang.ir.kinds.moe`).
    """

    count: int
    chosen: int
    dtype: str
    router_dtype: str = "bf16"
    width: str = "hidden"
    function: str = ""
    biased: bool = False
    scores: str = ""

    @property
    def fill(self) -> float:
        """Share of (token, expert) pairs that exist."""
        return self.chosen / self.count

    def logits(self, s: Scope[Any], x: Tensor) -> Tensor:
        """Scores of all experts (rows expert) for vectors x (rows hidden), in FP32."""
        weight = s.weight("router_w", "hidden expert", self.router_dtype)
        return s.project("logits", x, weight, "expert", "fp32", group="router")

    def gates(self, s: Scope[Any], logits: Tensor, kind: str = "route", *choice: Tensor) -> Tensor:
        """Weights of the chosen experts (rows expert), `chosen` of them filled. `kind` may be another choice than the
        largest logits, from the operands `choice`."""
        dims = f"{s.rows} expert"
        attrs: dict[str, Any] = {"top_k": self.chosen, **({"scores": self.scores} if self.scores else {})}
        return s.op("route", kind, [logits, *choice], dims, "fp32", fill=self.fill, group="router", **attrs)

    def routed(self, s: Scope[Any], x: Tensor, gates: Tensor) -> Tensor:
        """Vectors x (rows width) to their experts, up, gate and down there, and back as a weighted sum (rows width)."""
        fill = self.fill
        wide, narrow = f"{s.rows} expert {self.width}", f"{s.rows} expert ffn"
        travel = s.assumptions.routed_dtype
        rows = s.op("dispatch", "dispatch", [x, gates], wide, travel, fill=fill, group="dispatch")
        copy: dict[str, Any] = {"fill": fill, "group": "experts", "one_pass": True, "across": "expert"}
        if s.assumptions.expert_copies:
            rows = s.op("expert_gather", "to_hbm", [rows], wide, travel, **copy)
        up = s.weight("experts_w13", f"expert {self.width} gate ffn", self.dtype)
        # Where the profile copies rows to and from each expert, it runs the experts one after the other.
        one_by_one: dict[str, Any] = {"streamed": True} if s.assumptions.expert_copies else {}
        if self.function:
            one_by_one["function"] = self.function
        first = [rows, up, *([s.weight("experts_b13", "expert gate ffn")] if self.biased else [])]
        inner = s.op("expert_up", "gated_matmul", first, narrow, fill=fill, group="experts", **one_by_one)
        down = s.weight("experts_w2", f"expert ffn {self.width}", self.dtype)
        out = s.op("expert_down", "matmul", [inner, down], wide, fill=fill, group="experts")
        if self.biased:
            bias = s.weight("experts_b2", f"expert {self.width}")
            out = s.op("expert_bias", "bias", [out, bias], wide, fill=fill, group="experts")
        if s.assumptions.expert_copies:
            out = s.op("expert_scatter", "to_hbm", [out], wide, **copy)
        return s.op("combine", "combine", [out, gates], f"{s.rows} {self.width}", group="dispatch")


def dims(*, experts: int, width: int, shared: int, dense: int = 0) -> tuple[Dim, ...]:
    """The dims of a feed-forward part: inner widths of an expert, of all `shared` ones, and of a dense layer."""
    return (
        Dim(label="expert", size=experts),
        Dim(label="ffn", size=width),
        Dim(label="shared_ffn", size=max(1, shared) * width, meaning="ffn"),
        Dim(label="dense_ffn", size=dense, meaning="ffn"),
        Dim(label="gate", size=2, meaning="gate and up"),
    )


def with_shared(s: Scope[Any], x: Tensor, routed: Tensor, *, shared: int, dtype: str) -> Tensor:
    """The routed experts' output plus that of the `shared` experts, which every token of x (rows hidden) runs."""
    if not shared:
        return routed
    own = gated_ffn(s, "shared", x, "shared_ffn", dtype, group="shared expert")
    return s.op("experts_sum", "add", [routed, own], f"{s.rows} hidden", group="residual")


def gated_ffn(s: Scope[Any], name: str, x: Tensor, inner: str, dtype: str, *, group: str, function: str = "") -> Tensor:
    """Up, gate and down of every token of x (rows hidden) → (rows hidden); `inner` is the label between, `function`
    what is done to the gate, silu by default."""
    up = s.weight(f"{name}_w13", f"hidden gate {inner}", dtype)
    attrs: dict[str, Any] = {"function": function} if function else {}
    middle = s.op(f"{name}_up", "gated_matmul", [x, up], f"{s.rows} {inner}", group=group, **attrs)
    down = s.weight(f"{name}_w2", f"{inner} hidden", dtype)
    return s.project(f"{name}_down", middle, down, "hidden", group=group)
