"""Points that the paper and its authors' project page publish, each simulated again as it is described there."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from rooflang.report.numbers import show_layers
from rooflang.report.reproduction.jobs import Job
from rooflang.report.reproduction.setting import HARDWARE, Scope, Setting
from rooflang.search.api import simulate
from rooflang.units import parse_count

#: Our name of a model by its published one. The published GLM is the version before, which has the same dims.
MODELS = {
    "dsv4_flash": "deepseek-v4-flash",
    "dsv4_pro": "deepseek-v4-pro",
    "glm_5_2_fp8": "glm-5.3",
    "kimi_k3": "kimi-k3",
}

#: A point agrees if throughput and interactivity differ by no more than this.
TOLERANCE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPoint:
    """One point of a published frontier. Where the paper quotes it in words, interactivity may be missing, and the
    partition, which is the even one then."""

    setting: Setting
    batch: int
    dp: int
    cp: int
    pp: int
    partition: tuple[int, ...] | None
    tok_s_user: float | None
    tok_s_gpu: float

    @property
    def name(self) -> str:
        """What tells it from other points."""
        layers = f" of {show_layers(self.partition)}" if self.partition and self.pp > 1 else ""
        return f"{self.setting.stem} batch {self.batch} dp{self.dp} cp{self.cp} pp{self.pp}{layers}"

    def layout(self) -> dict[str, Any]:
        """Keyword arguments of `simulate`, beside those of the setting."""
        names = ("batch", "dp", "cp", "pp", "partition")
        return {name: getattr(self, name) for name in names}


@lru_cache(maxsize=1)
def published_points() -> tuple[PublishedPoint, ...]:
    """Sampled and quoted points for the models and platforms of the paper, by setting. Sources: `SOURCES.md` beside
    the files."""
    points: dict[str, PublishedPoint] = {}
    for file in ("quoted_points.csv", "published_points.csv"):  # of a point in both the one with more digits stays
        with Path(__file__).with_name(file).open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                model = MODELS.get(row["model"], row["model"])
                if row["hardware"] in HARDWARE and model in MODELS.values():
                    point = _point(model, row)
                    points[point.name] = point
    return tuple(sorted(points.values(), key=lambda point: (point.setting.stem, point.batch, point.name)))


def _point(model: str, row: Mapping[str, str]) -> PublishedPoint:
    setting = Setting(
        model=model,
        stage=row["stage"],
        context=parse_count(row["context"]),
        hardware=row["hardware"],
        gpus=int(row["gpus"]),
    )
    layers = row["pp_partition"]
    return PublishedPoint(
        setting=setting,
        batch=int(row["batch"]),
        dp=int(row["dp"]),
        cp=int(row["cp"]),
        pp=int(row["pp"]),
        partition=tuple(map(int, layers.split("-"))) if layers else None,
        tok_s_user=float(row["tok_s_user"]) if row["tok_s_user"] else None,
        tok_s_gpu=float(row["tok_s_gpu"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPoint:
    """A published point beside ours."""

    published: PublishedPoint
    tok_s_user: float
    tok_s_gpu: float

    @property
    def error(self) -> float:
        """The larger of the relative errors of throughput and interactivity, with its sign."""
        published = self.published
        errors = [self.tok_s_gpu / published.tok_s_gpu - 1.0]
        if published.tok_s_user is not None:
            errors.append(self.tok_s_user / published.tok_s_user - 1.0)
        return max(errors, key=abs)

    @property
    def agrees(self) -> bool:
        return abs(self.error) <= TOLERANCE


def point_jobs(scope: Scope) -> Iterator[Job]:
    """One job for each setting with published points, whatever its number of GPUs."""
    for setting, points in groupby(published_points(), key=lambda point: point.setting):
        if scope.has(model=setting.model, stage=setting.stage, hardware=setting.hardware) and (
            scope.whole or scope.has(gpus=setting.gpus, context=setting.context)
        ):
            layouts = [point.layout() for point in points]
            yield Job(
                name=f"points/{setting.stem}",
                work=simulate_points,
                asked={**setting.asked(), "assumptions": "paper", "layouts": layouts},
                weight=len(layouts) * (0.6 if setting.model == "kimi-k3" else 0.2),
            )


def simulate_points(*, layouts: Sequence[Mapping[str, Any]], **asked: Any) -> dict[str, Any]:
    """Simulate each layout of a setting: tok/s/user and tok/s/GPU in their order."""
    found = [simulate(**asked, **layout).sim for layout in layouts]
    return {"points": [{"tok_s_user": sim.tok_s_user, "tok_s_gpu": sim.tok_s_gpu} for sim in found]}


def compared_points(results: Mapping[str, Mapping[str, Any]]) -> list[ComparedPoint]:
    """The points whose jobs have results."""
    out = []
    for setting, points in groupby(published_points(), key=lambda point: point.setting):
        data = results.get(f"points/{setting.stem}")
        if data is not None:
            out += [ComparedPoint(published=point, **ours) for point, ours in zip(points, data["points"], strict=True)]
    return out
