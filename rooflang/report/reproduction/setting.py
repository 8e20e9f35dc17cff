"""What the paper's evaluation covers, and the part of it that is asked for."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, cast

from rooflang.assumptions import profile
from rooflang.hw import Cluster
from rooflang.models import Workload, load
from rooflang.models.workload import Stage
from rooflang.report.numbers import show_count
from rooflang.search.effort import Depth

MODELS = ("deepseek-v4-flash", "glm-5.3", "deepseek-v4-pro", "kimi-k3")
STAGES: tuple[Stage, ...] = ("prefill", "decode")
CONTEXTS = (2**16, 2**20)
GPUS = (8, 64)
HARDWARE = ("h200", "gh200", "b300", "gb300")

#: Batch sizes of the automatic search; the grid is swept at all powers of two.
BATCHES = tuple(4**k for k in range(9))

#: Longest time of the automatic search for one setting. A look takes seconds, so that this is only a stop.
LIMIT_S = 600.0

#: The paper's own assumptions first.
PROFILES = ("paper", "physical")

#: How models, platforms and profiles are written in figures and tables.
TITLES = {
    "deepseek-v4-flash": "DeepSeek V4 Flash",
    "glm-5.3": "GLM-5.3",
    "deepseek-v4-pro": "DeepSeek V4 Pro",
    "kimi-k3": "Kimi K3",
    "h200": "H200",
    "gh200": "GH200",
    "b300": "B300",
    "gb300": "GB300",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A workload on a cluster: one curve of Figures 3 and 4."""

    model: str
    stage: str
    context: int
    hardware: str
    gpus: int

    def __str__(self) -> str:
        return f"{self.model} {self.stage} {show_count(self.context)}, {self.gpus} {self.hardware}"

    @property
    def stem(self) -> str:
        """The setting as part of a file name."""
        return f"{self.model}-{self.stage}-{show_count(self.context)}-{self.gpus}-{self.hardware}"

    def asked(self) -> dict[str, Any]:
        """Keyword arguments of `optimize` and `simulate`."""
        names = ("model", "stage", "context", "hardware", "gpus")
        return {name: getattr(self, name) for name in names}

    def command(self, *options: str) -> str:
        """The command line that computes it again."""
        words = ["rooflang", "optimize", self.model, "--hardware", self.hardware, "--gpus", str(self.gpus)]
        return shlex.join([*words, "--stage", self.stage, "--context", show_count(self.context), *options])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The part of the evaluation that is computed: all of it, or some of the models, GPU counts and platforms; and at
    which batch sizes, how hard and how long the automatic search tries in each setting."""

    models: tuple[str, ...] = MODELS
    stages: tuple[str, ...] = STAGES
    contexts: tuple[int, ...] = CONTEXTS
    gpus: tuple[int, ...] = GPUS
    hardware: tuple[str, ...] = HARDWARE
    batches: tuple[int, ...] = BATCHES
    effort: Depth = "look"
    limit_s: float = LIMIT_S

    @property
    def whole(self) -> bool:
        return self == Scope(effort=self.effort, limit_s=self.limit_s)

    def settings(self) -> Iterator[Setting]:
        """Every setting, in the order of the figures."""
        for model, stage, context, gpus, hardware in product(
            self.models, self.stages, self.contexts, self.gpus, self.hardware
        ):
            yield Setting(model=model, stage=stage, context=context, hardware=hardware, gpus=gpus)

    def has(self, **fields: object) -> bool:
        """Is a setting with these fields in it? Fields are named as those of `Setting`."""
        plural = {"model": "models", "stage": "stages", "context": "contexts"}
        return all(value in getattr(self, plural.get(name, name)) for name, value in fields.items())


@lru_cache(maxsize=256)
def graph_fingerprint(model: str, stage: str, context: int, assumptions: str) -> str:
    """The fingerprint of the graph that a workload of one request makes."""
    workload = Workload(stage=cast(Stage, stage), context=context, batch=1)
    return load(model).build(workload, profile(assumptions)).fingerprint


@lru_cache(maxsize=256)
def cluster_fingerprint(hardware: str, gpus: int) -> str:
    """The fingerprint of a cluster."""
    return Cluster.of(hardware, gpus).fingerprint()
