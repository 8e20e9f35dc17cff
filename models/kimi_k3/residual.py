"""Attention residuals by blocks of layers (Kimi team, arXiv 2603.15031; Kimi K3 report, arXiv 2607.24653, section 2.2).

Within a block of layers outputs are summed; across blocks, each sub-layer reads a softmax mix of the finished blocks'
sums and the running one. The first block is the embedding alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rooflang.ir.tensor import Tensor
from rooflang.models.common import ends
from rooflang.models.kimi_k3.scope import Scope

_GROUP = "residual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Sums of finished blocks and of the running one, all (rows hidden); a block that has just begun has no sum yet."""

    running: Tensor | None
    finished: tuple[Tensor, ...] = ()

    def closed(self) -> Stream:
        """The stream where a block of layers ends and the next begins."""
        assert self.running is not None
        return Stream(running=None, finished=(*self.finished, self.running))

    def read(self, s: Scope, part: str) -> Tensor:
        """Input of the sub-layer `part` (rows hidden), mixed from all depths."""
        vectors = (*self.finished, *([self.running] if self.running is not None else []))
        if len(vectors) == 1:
            return vectors[0]
        weights = [s.weight(f"{part}_mix_{name}", "hidden") for name in ("gain", "query")]
        dims = " ".join(vectors[-1].dims)
        return s.op(f"{part}_mix", "depth_mix", [*weights, *vectors], dims, group=_GROUP)

    def write(self, s: Scope, part: str, out: Tensor) -> Stream:
        """The stream after the sub-layer `part`, whose output is `out` (rows hidden)."""
        if self.running is not None:
            out = s.op(f"{part}_add", "add", [self.running, out], " ".join(out.dims), group=_GROUP)
        return replace(self, running=out)

    def last_tokens(self, s: Scope) -> Stream:
        """The stream of the positions that the head reads."""
        assert self.running is not None
        whole = {"whole": True} if s.assumptions.gathered_blocks else {}
        # The embedding comes from one rank as it is: nothing is gathered.
        finished = [
            ends.last_token(s, x, f"last_token_{depth}", **whole if depth else {})
            for depth, x in enumerate(self.finished)
        ]
        return Stream(running=ends.last_token(s, self.running), finished=tuple(finished))
