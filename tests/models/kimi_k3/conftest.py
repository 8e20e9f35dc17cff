"""Kimi K3 cut to its first six layers in blocks of three: the first dense, the fourth with latent attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from rooflang.assumptions import Assumptions
from rooflang.ir import Graph
from rooflang.models import Workload, load
from rooflang.models.kimi_k3 import Config, build

Build = Callable[..., Graph]


@pytest.fixture(scope="session")
def small(maker: Callable[..., Build]) -> Build:
    """Fields to change are those of `text_config`."""
    config = load("kimi-k3").config
    assert isinstance(config, Config)
    text = msgspec.structs.replace(config.text_config, num_hidden_layers=6, attn_res_block_size=3)

    def of_text(name: str, fields: Any, workload: Workload, assumptions: Assumptions) -> Graph:
        return build(name, msgspec.structs.replace(config, text_config=fields), workload, assumptions)

    return maker(of_text, text)
