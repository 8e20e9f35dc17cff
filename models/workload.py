"""`Workload`: what is asked of a model in one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rooflang.errors import UnknownNameError
from rooflang.units import whole

Stage = Literal["prefill", "decode"]

STAGES: tuple[Stage, ...] = ("prefill", "decode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One step: `batch` requests over a context of `context` tokens each.

    `prefill` runs the whole prompt and writes the KV cache; `decode` makes one token beside `context` cached ones.
    Raises `UnknownNameError` for another stage, `ValueRangeError` for a context or batch below 1.
    """

    stage: Stage
    context: int
    batch: int

    def __post_init__(self) -> None:
        if self.stage not in STAGES:
            raise UnknownNameError("stage", str(self.stage), STAGES, where="--stage")
        whole(self.context, where="--context")
        whole(self.batch, where="--batch")

    @property
    def tokens(self) -> int:
        """Tokens that each request runs in this step: one in decode, the whole prompt in prefill."""
        return 1 if self.stage == "decode" else self.context
