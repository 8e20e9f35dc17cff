"""Stacks by name: what each can run, and how it is asked to. Flag names are those of the version that is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rooflang.stacks.shape import Shape

#: Stands for the model's name or folder.
MODEL = '"$MODEL"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a launch command needs to know: the shape, `requests` in flight over all groups, `tokens` of context at
    most, `layers` of each stage, the dtype of the cache. The model is left to the variable `MODEL`."""

    shape: Shape
    requests: int
    tokens: int
    layers: tuple[int, ...]
    kv: str

    @property
    def requests_of_a_group(self) -> int:
        return max(1, -(-self.requests // self.shape.dp))

    def partition(self, variable: str) -> str:
        """The variable that says how many layers each stage has, unless all have as many: which stage gets one more,
        each stack decides otherwise."""
        return "" if len(set(self.layers)) == 1 else f"{variable}={','.join(map(str, self.layers))} "


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A serving stack. `runs` says whether it has flags for a shape, `command` gives them."""

    name: str
    version: str
    runs: Callable[[Shape], bool]
    command: Callable[[Launch], str]
    partitions: bool
    """Can the layers of each stage be given?"""


def _vllm(launch: Launch) -> str:
    shape = launch.shape
    words = ["vllm", "serve", MODEL, "--tensor-parallel-size", str(shape.tp)]
    words += ["--pipeline-parallel-size", str(shape.pp)] if shape.pp > 1 else []
    words += ["--data-parallel-size", str(shape.dp)] if shape.dp > 1 else []
    words += ["--enable-expert-parallel"] if shape.ep else []
    words += ["--decode-context-parallel-size", str(shape.tp)] if shape.dcp else []
    words += ["--max-num-seqs", str(launch.requests_of_a_group), "--max-model-len", str(launch.tokens)]
    words += ["--kv-cache-dtype", "fp8"] if launch.kv == "fp8" else []
    return launch.partition("VLLM_PP_LAYER_PARTITION") + " ".join(words)


def _sglang(launch: Launch) -> str:
    shape = launch.shape
    ranks = shape.dp * shape.tp
    words = ["python", "-m", "sglang.launch_server", "--model-path", MODEL, "--tp-size", str(ranks)]
    words += ["--pp-size", str(shape.pp)] if shape.pp > 1 else []
    words += ["--dp-size", str(shape.dp), "--enable-dp-attention"] if shape.dp > 1 else []
    words += ["--ep-size", str(ranks)] if shape.ep else []
    words += ["--max-running-requests", str(launch.requests), "--context-length", str(launch.tokens)]
    words += ["--kv-cache-dtype", "fp8_e4m3"] if launch.kv == "fp8" else []
    return launch.partition("SGLANG_PP_LAYER_PARTITION") + " ".join(words)


def _trtllm(launch: Launch) -> str:
    shape = launch.shape
    ranks = shape.dp * shape.tp
    words = ["trtllm-serve", MODEL, "--tp_size", str(ranks)]
    words += ["--pp_size", str(shape.pp)] if shape.pp > 1 else []
    words += ["--ep_size", str(ranks)] if shape.ep else []
    words += ["--max_batch_size", str(launch.requests_of_a_group), "--max_seq_len", str(launch.tokens)]
    lines = ["enable_attention_dp: true"] if shape.dp > 1 else []
    lines += ["kv_cache_config: {dtype: fp8}"] if launch.kv == "fp8" else []
    if not lines:
        return " ".join(words)
    options = "\\n".join(lines)
    return f"printf '{options}\\n' > options.yaml\n" + " ".join([*words, "--extra_llm_api_options", "options.yaml"])


STACKS: dict[str, Stack] = {
    stack.name: stack
    for stack in (
        Stack(name="vllm", version="vLLM 0.11", runs=lambda shape: True, command=_vllm, partitions=True),
        Stack(
            name="sglang",
            version="SGLang 0.5",
            runs=lambda shape: not shape.dcp,
            command=_sglang,
            partitions=True,
        ),
        Stack(
            name="trtllm",
            version="TensorRT-LLM 1.0",
            runs=lambda shape: not shape.dcp and 1 in (shape.dp, shape.tp),
            command=_trtllm,
            partitions=False,
        ),
    )
}
