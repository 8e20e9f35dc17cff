"""What separates the two profiles: each assumption in which they differ, changed alone in each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.errors import CapacityError
from rooflang.report.reproduction.jobs import Job
from rooflang.report.reproduction.setting import Scope, Setting
from rooflang.search.api import prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A configuration of the grid that stands for others: same plan under all assumptions, so that only they differ."""

    setting: Setting
    layout: Mapping[str, int]

    @property
    def title(self) -> str:
        layout = ", ".join(f"{name} {size}" for name, size in self.layout.items())
        return f"{self.setting}, {layout}"


def _example(model: str, stage: str, context: int, hardware: str, gpus: int, **layout: int) -> Example:
    setting = Setting(model=model, stage=stage, context=context, hardware=hardware, gpus=gpus)
    return Example(setting=setting, layout=layout)


#: Large and small batches, short and long contexts, both stages, one stage and many, both fabrics.
EXAMPLES = (
    _example("deepseek-v4-flash", "decode", 2**16, "gb300", 64, batch=64, dp=64),
    _example("deepseek-v4-flash", "decode", 2**16, "gb300", 64, batch=16384, dp=64),
    _example("glm-5.3", "decode", 2**16, "gb300", 64, batch=1024, dp=64),
    _example("deepseek-v4-pro", "decode", 2**16, "b300", 256, batch=4096, dp=16, pp=16),
    _example("deepseek-v4-pro", "decode", 2**20, "b300", 8, batch=64, dp=8),
    _example("kimi-k3", "decode", 2**16, "gb300", 64, batch=1024, dp=64),
    _example("deepseek-v4-pro", "prefill", 2**16, "h200", 64, batch=64, dp=64),
    _example("deepseek-v4-pro", "prefill", 2**20, "b300", 16, batch=1, cp=16),
    _example("kimi-k3", "prefill", 2**16, "gb300", 64, batch=16, dp=16, cp=4),
)


def differing() -> tuple[str, ...]:
    """The assumptions in which the profiles differ."""
    return tuple(PAPER.differs_from(PHYSICAL))


def attribution_jobs(scope: Scope) -> Iterator[Job]:
    """One job for each example of a model in the scope."""
    for example in EXAMPLES:
        if scope.has(model=example.setting.model):
            yield Job(
                name=f"assumptions/{example.setting.stem}-{example.layout['batch']}",
                work=attributed,
                asked={**example.setting.asked(), "assumptions": "paper", "layout": dict(example.layout)},
                weight=18.0 if example.setting.model == "kimi-k3" else 7.0,
            )


def attributed(*, assumptions: str, layout: Mapping[str, int], **asked: Any) -> dict[str, Any]:
    """Step times and peaks of memory under both profiles, and under each with one of its assumptions taken from the
    other."""
    step_s: dict[str, float | None] = {}
    peak_bytes: dict[str, float | None] = {}
    for base, other in ((PAPER, PHYSICAL), (PHYSICAL, PAPER)):
        changed = {f"{base.name} {field}": replace(base, **{field: getattr(other, field)}) for field in differing()}
        for name, taken in {base.name: base, **changed}.items():
            step_s[name], peak_bytes[name] = _step(asked, layout, taken)
    return {"step_s": step_s, "peak_bytes": peak_bytes}


def _step(
    asked: Mapping[str, Any], layout: Mapping[str, int], assumptions: Assumptions
) -> tuple[float, int] | tuple[None, None]:
    """The step time and the peak of memory; None where it does not fit."""
    try:
        sim = prepare(**{**asked, **layout}, assumptions=assumptions).point().sim
    except CapacityError:
        return None, None
    return sim.step_s, sim.peak_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """A quantity of an example by profile, and by `PROFILE FIELD`, the profile with this field of the other."""

    amount: Mapping[str, float | None]

    @property
    def whole(self) -> float | None:
        """By how much more it is under `physical` than under `paper`."""
        return _ratio(self.amount["physical"], self.amount["paper"])

    def added(self, field: str) -> float | None:
        """By how much more it is if `paper` gives up this assumption alone."""
        return _ratio(self.amount[f"paper {field}"], self.amount["paper"])

    def removed(self, field: str) -> float | None:
        """By how much more it is under `physical` than if that gave up this assumption alone."""
        return _ratio(self.amount["physical"], self.amount[f"physical {field}"])

    def most(self, field: str) -> float:
        """The larger one of both, whatever its sign."""
        return max(abs(self.added(field) or 0.0), abs(self.removed(field) or 0.0))


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """An example with its step times and its peaks of memory."""

    example: Example
    step: Effects
    peak: Effects


def attributed_examples(results: Mapping[str, Mapping[str, Any]]) -> list[Attributed]:
    """The examples whose jobs have results."""
    out = []
    for example in EXAMPLES:
        data = results.get(f"assumptions/{example.setting.stem}-{example.layout['batch']}")
        if data is not None:
            step, peak = (Effects(amount=data[name]) for name in ("step_s", "peak_bytes"))
            out.append(Attributed(example=example, step=step, peak=peak))
    return out
