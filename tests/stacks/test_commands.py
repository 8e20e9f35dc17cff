"""Launch commands ask for the shape that they are given."""

from __future__ import annotations

from typing import Any

import pytest

from rooflang.stacks import STACKS, Shape
from rooflang.stacks.stack import Launch


def launch(stack: str, layers: tuple[int, ...] = (61,), kv: str = "auto", **shape: Any) -> str:
    asked = Launch(shape=Shape(**{"pp": 1, "ep": False, **shape}), requests=100, tokens=8192, layers=layers, kv=kv)
    return STACKS[stack].command(asked)


def test_vllm() -> None:
    assert launch("vllm", dp=1, tp=8) == (
        'vllm serve "$MODEL" --tensor-parallel-size 8 --max-num-seqs 100 --max-model-len 8192'
    )
    assert launch("vllm", dp=4, tp=2, ep=True, dcp=True, kv="fp8") == (
        'vllm serve "$MODEL" --tensor-parallel-size 2 --data-parallel-size 4 --enable-expert-parallel'
        " --decode-context-parallel-size 2 --max-num-seqs 25 --max-model-len 8192 --kv-cache-dtype fp8"
    )


@pytest.mark.parametrize(("stack", "variable"), [("vllm", "VLLM"), ("sglang", "SGLANG")])
def test_uneven_stages_are_asked_for_in_the_environment(stack: str, variable: str) -> None:
    for layers in ((20, 23, 18), (21, 20, 20)):
        asked = f"{variable}_PP_LAYER_PARTITION={','.join(map(str, layers))} "
        assert launch(stack, dp=1, tp=1, pp=3, layers=layers).startswith(asked)
    assert "PARTITION" not in launch(stack, dp=1, tp=1, pp=3, layers=(20, 20, 20))


def test_sglang_counts_all_ranks_of_a_stage_as_tp() -> None:
    assert launch("sglang", dp=4, tp=2, pp=2, ep=True) == (
        'python -m sglang.launch_server --model-path "$MODEL" --tp-size 8 --pp-size 2 --dp-size 4'
        " --enable-dp-attention --ep-size 8 --max-running-requests 100 --context-length 8192"
    )


def test_trtllm_asks_for_attention_dp_in_a_file() -> None:
    first, second = launch("trtllm", dp=8, tp=1, ep=True).splitlines()
    assert first == "printf 'enable_attention_dp: true\\n' > options.yaml"
    assert second.startswith('trtllm-serve "$MODEL" --tp_size 8 --ep_size 8 --max_batch_size 13')
    assert second.endswith("--extra_llm_api_options options.yaml")


@pytest.mark.parametrize(
    ("stack", "shape", "can"),
    [
        ("vllm", Shape(dp=2, tp=4, pp=1, ep=True, dcp=True), True),
        ("sglang", Shape(dp=1, tp=8, pp=1, ep=False, dcp=True), False),
        ("sglang", Shape(dp=2, tp=4, pp=1, ep=False), True),
        ("trtllm", Shape(dp=2, tp=4, pp=1, ep=False), False),
        ("trtllm", Shape(dp=8, tp=1, pp=1, ep=True), True),
    ],
)
def test_what_a_stack_can_run(stack: str, shape: Shape, can: bool) -> None:
    assert STACKS[stack].runs(shape) is can
