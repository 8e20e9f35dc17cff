"""GLM-5.3 cut to its first eight layers: three dense ones with an indexer each, then experts; layers 3 to 5 and 7
attend what the layer before has attended."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from rooflang.ir import Graph
from rooflang.models import load
from rooflang.models.glm5 import Config, build

Build = Callable[..., Graph]


@pytest.fixture(scope="session")
def small(maker: Callable[..., Build]) -> Build:
    config = load("glm-5.3").config
    assert isinstance(config, Config)
    return maker(build, msgspec.structs.replace(config, num_hidden_layers=8))
