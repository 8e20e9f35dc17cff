"""What can be asked of a step beyond a plain one: which models and stages can do it."""

from __future__ import annotations

from rooflang.assumptions import Assumptions
from rooflang.errors import ValueRangeError
from rooflang.models.workload import Workload


def check_extensions(name: str, config: object, workload: Workload, assumptions: Assumptions) -> None:
    """Raise `ValueRangeError` where drafts or images are asked of a model or stage that has none.

    A config says by `draft_layers` how many layers draft tokens and by `sees` whether it has a vision encoder that is
    built here; one that says nothing has neither.
    """
    if assumptions.draft_tokens:
        _check_drafts(name, getattr(config, "draft_layers", 0), workload)
    if assumptions.images:
        _check_images(name, getattr(config, "sees", False), workload, assumptions.images * assumptions.image_tokens)


def _check_drafts(name: str, layers: int, workload: Workload) -> None:
    where = "--draft-tokens"
    if workload.stage != "decode":
        raise ValueRangeError(f"a {workload.stage} step drafts no tokens", where=where, expected="--stage decode")
    if not layers:
        raise ValueRangeError(
            f"{name} has no layers that draft tokens",
            where=where,
            expected="a model whose config.json has num_nextn_predict_layers above 0",
        )


def _check_images(name: str, sees: bool, workload: Workload, tokens: int) -> None:
    where = "--images"
    if not sees:
        raise ValueRangeError(f"{name} has no vision encoder here", where=where, expected="0")
    if workload.stage != "prefill":
        raise ValueRangeError(
            f"a {workload.stage} step encodes no images", where=where, expected="--stage prefill",
            hint="the tokens that images have become are part of the context",
        )  # fmt: skip
    if tokens > workload.context:
        raise ValueRangeError(
            f"images of {tokens:,} tokens in a prompt of {workload.context:,}",
            where=where,
            expected="a prompt that holds its images",
        )
