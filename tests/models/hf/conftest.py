"""A small Llama config, and graphs of registered models with a few layers of each sort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rooflang.ir import Graph
from rooflang.models import Model, Workload, load
from rooflang.models.hf import Decoder

Short = Callable[..., Model]


@pytest.fixture
def llama() -> dict[str, Any]:
    """The fields of a Llama of two layers."""
    return {
        "model_type": "llama",
        "vocab_size": 1024,
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
    }


@pytest.fixture(scope="session")
def short() -> Short:
    """A registered model with so many layers of each sort."""

    def of(name: str, each: int = 1) -> Model:
        model = load(name)
        assert isinstance(model.config, Decoder)
        sorts = dict.fromkeys(model.config.stack)
        stack = tuple(layer for layer in sorts for _ in range(each))
        return replace(model, config=replace(model.config, stack=stack))

    return of


@pytest.fixture(scope="session")
def graph(short: Short) -> Callable[..., Graph]:
    """The graph of a registered model with one layer of each sort."""

    def of(name: str, stage: str = "decode", *, context: int = 4096, batch: int = 2, **options: Any) -> Graph:
        workload = Workload(stage=stage, context=context, batch=batch)  # type: ignore[arg-type]
        return short(name).build(workload, **options)

    return of
