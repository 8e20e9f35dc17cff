"""What a first look has of one mesh: the plans known there, and those of them that were simulated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.result import block_plans
from rooflang.extractors.survey import Candidate, Survey
from rooflang.extractors.task import Decisions, Stages
from rooflang.place.plan import Plan
from rooflang.sim.serial import Steps

#: Where plans of this search come from.
ORIGIN = "e-graph"


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """One mesh for one number of stages, with what a first look at all batch sizes found. `seeds` are the plans of the
    paper's grid on it, also as decisions, with the objective of these at every batch size."""

    sizes: tuple[int, ...]
    survey: Survey
    seeds: tuple[tuple[Plan, Decisions, FloatArray], ...] = ()

    @cached_property
    def serial(self) -> Survey:
        """The same plans by C + N."""
        survey = self.survey
        task = replace(survey.task, objective="sum")
        return Survey(task=task, repartition=survey.repartition, pool=survey.pool, bounds_s=survey.bounds_s)

    @property
    def name(self) -> str:
        mesh = "×".join(map(str, self.sizes)) or "1"
        return f"mesh {mesh}, pipeline {len(self.survey.task.stages)}"

    def plan(self, at: int, found: Candidate) -> Plan:
        """The plan of a candidate for a batch size (by number)."""
        task = replace(self.survey.task, at=at, stages=found.stages)
        blocks, boundary = block_plans(task, found.decisions), found.decisions.boundary
        return Plan(mesh=task.mesh, stages=found.stages, blocks=blocks, boundary=boundary, origin=ORIGIN)

    def seeded(self, at: int) -> Iterator[tuple[float, float, Plan]]:
        """The grid's plans that are possible, each after its C + N and its objective, on axes in the order of the
        mesh."""
        for plan, one in self.possible(at):
            laid = plan if plan.mesh == self.survey.task.mesh else self.plan(at, one)
            yield *self.serial_s(at, one.decisions, one.stages), laid

    def possible(self, at: int) -> Iterator[tuple[Plan, Candidate]]:
        """The grid's plans that are possible at a batch size."""
        for plan, seed, values_s in self.seeds:
            if np.isfinite(values_s[at]):
                value_s, stages = float(values_s[at]), self.survey.task.stages
                yield plan, Candidate(value_s=value_s, decisions=seed, stages=stages)

    def rivals(self, at: int) -> Iterator[tuple[float, float, Plan]]:
        """The plans with the least objective and with the least C + N, each after its C + N and its objective."""
        if self.survey.bounds_s[at] < np.inf:
            for survey in (self.survey, self.serial):
                found = survey.best(at)
                if found is not None:
                    yield *self.serial_s(at, found.decisions, found.stages), self.plan(at, found)

    def serial_s(self, at: int, plan: Decisions, stages: Stages) -> tuple[float, float]:
        """C + N and max(C, N) of the slowest stage."""
        task = replace(self.survey.task, stages=stages)
        pairs = [self.survey.pool.stage_s(task, load, plan) for load in task.slowest]
        return max(float((c + n)[at]) for c, n in pairs), max(float(np.maximum(c, n)[at]) for c, n in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A plan that fits and was simulated: the number of its batch size, its mesh, its step time, and the
    peak of the fullest HBM."""

    at: int
    mesh: tuple[int, ...]
    stages: int
    step_s: float
    peak_bytes: float
    plan: Plan

    @classmethod
    def of(cls, plan: Plan, at: int, steps: Steps, number: int) -> Looked:
        """The plan at one of the batch sizes at which it was simulated."""
        return cls(
            at=at,
            mesh=tuple(axis.size for axis in plan.mesh.axes),
            stages=len(plan.stages),
            step_s=float(steps.step_s[number]),
            peak_bytes=float(steps.peak_bytes[number]),
            plan=plan,
        )
