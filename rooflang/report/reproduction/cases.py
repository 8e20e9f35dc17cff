"""The three cases in which the paper's agent improves a plan: what plain `optimize` finds in the same settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rooflang.assumptions import profile
from rooflang.errors import CapacityError
from rooflang.report.reproduction.jobs import Job
from rooflang.report.reproduction.setting import PROFILES, Scope, Setting
from rooflang.search.api import optimize, simulate
from rooflang.search.point import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A setting of V4 Pro on B300; the grid's layout that the agent starts from, and what the agent makes of it where
    that can be said as a configuration; published: the step time of the grid and the gain of the agent."""

    name: str
    title: str
    setting: Setting
    layout: Mapping[str, int]
    agent: Mapping[str, Any] | None
    agent_title: str
    published_s: float
    published_gain: float


def _setting(stage: str, context: int, gpus: int) -> Setting:
    return Setting(model="deepseek-v4-pro", stage=stage, context=context, hardware="b300", gpus=gpus)


#: The RoofLang paper (arXiv 2609.12551), agent mode.
CASES = (
    Case(
        name="decode-64k",
        title="Decode 64K, 256 B300, batch 4,096, PP16",
        setting=_setting("decode", 2**16, 256),
        layout={"batch": 4096, "dp": 16, "pp": 16},
        agent={"partition": (3, *[4] * 14, 2)},
        agent_title="a pipeline partition of 3, 4×14, 2 layers",
        published_s=1165.49e-6,
        published_gain=0.203,
    ),
    Case(
        name="prefill-8k",
        title="Prefill 8K, 8 B300, batch 512",
        setting=_setting("prefill", 2**13, 8),
        layout={"batch": 512, "dp": 8},
        agent={"expert_copies": False},
        agent_title="no copies of tokens around the experts",
        published_s=12.106,
        published_gain=0.0623,
    ),
    Case(
        name="prefill-1m",
        title="Prefill 1M, 16 B300, batch 1",
        setting=_setting("prefill", 2**20, 16),
        layout={"batch": 1, "cp": 16},
        agent=None,
        agent_title="experts on both nodes",
        published_s=3.441,
        published_gain=0.501,
    ),
)


def case_jobs(scope: Scope) -> Iterator[Job]:
    """Two jobs for each profile and each case of a model in the scope: the plans of the paper, and the search."""
    for assumptions in PROFILES:
        for case in CASES:
            if not scope.has(model=case.setting.model):
                continue
            asked = {**case.setting.asked(), "assumptions": assumptions}
            layout, stem = dict(case.layout), f"cases/{case.name}-{assumptions}"
            agent = None if case.agent is None else dict(case.agent)
            yield Job(
                name=f"{stem}-grid", work=paper_plans, asked={**asked, "layout": layout, "agent": agent}, weight=8
            )
            searched = {**asked, "batch": [layout["batch"]], "pp": layout.get("pp", 1)}
            yield Job(
                name=f"{stem}-search",
                work=searched_plan,
                asked=searched,
                weight=40.0 if assumptions == "physical" else 15.0,
            )


def paper_plans(*, layout: Mapping[str, int], agent: Mapping[str, Any] | None, **asked: Any) -> dict[str, Any]:
    """Step times of the grid's plan and of the agent's; None for one that cannot be said or does not fit."""
    grid_s = _step_s({**asked, **layout})
    if agent is None:
        return {"grid_s": grid_s, "agent_s": None}
    change = dict(agent)
    if "expert_copies" in change:
        asked["assumptions"] = replace(profile(asked["assumptions"]), expert_copies=change.pop("expert_copies"))
    return {"grid_s": grid_s, "agent_s": _step_s({**asked, **layout, **change})}


def _step_s(asked: Mapping[str, Any]) -> float | None:
    try:
        return simulate(**asked).sim.step_s
    except CapacityError:
        return None


def searched_plan(**asked: Any) -> dict[str, Any]:
    """The plan of most throughput that `optimize` finds."""
    found = optimize(**asked, jobs=1).frontier[-1]
    return {"step_s": found.sim.step_s, "gap": found.gap, "plan": found.plan, "mesh": list(found.mesh), **_shape(found)}


def _shape(point: Point) -> dict[str, Any]:
    return {"pp_partition": list(point.pp_partition), "bottleneck": point.sim.bottleneck, "origin": point.origin}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCase:
    """A case with what came out under a profile."""

    case: Case
    assumptions: str
    grid_s: float | None
    agent_s: float | None
    found: Mapping[str, Any]

    @property
    def base_s(self) -> float | None:
        """What gains are counted from: under `paper` the faster one of the published and our own step time of the
        grid, elsewhere our own."""
        if self.assumptions == "paper" and self.grid_s is not None:
            return min(self.grid_s, self.case.published_s)
        return self.grid_s

    @property
    def gain(self) -> float | None:
        """By how much the found plan has more throughput than the grid's."""
        return None if self.base_s is None else self.base_s / float(self.found["step_s"]) - 1.0

    @property
    def agent_gain(self) -> float | None:
        """The same of the agent's plan, as we simulate it."""
        return None if self.grid_s is None or self.agent_s is None else self.grid_s / self.agent_s - 1.0

    def command(self) -> str:
        layout = self.case.layout
        pp = ("--pp", str(layout.get("pp", 1)))
        return self.case.setting.command(*pp, "--batch", str(layout["batch"]), "--assumptions", self.assumptions)


def found_cases(results: Mapping[str, Mapping[str, Any]]) -> list[FoundCase]:
    """The cases whose jobs have results."""
    out = []
    for assumptions in PROFILES:
        for case in CASES:
            stem = f"cases/{case.name}-{assumptions}"
            grid, search = results.get(f"{stem}-grid"), results.get(f"{stem}-search")
            if grid is not None and search is not None:
                out.append(FoundCase(case=case, assumptions=assumptions, found=search, **grid))
    return out
