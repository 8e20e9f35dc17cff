"""HiGHS (`highspy`) with arrays in and arrays out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rooflang.extractors.layouts import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Programme:
    """Minimise cost·x subject to low ≤ A·x ≤ high, 0 ≤ x ≤ upper; `integral` columns are whole numbers.

    A is given by rows: row r has the entries start[r] … start[r + 1] of `column` and `value`.
    """

    cost: FloatArray
    upper: FloatArray
    integral: BoolArray
    low: FloatArray
    high: FloatArray
    start: IntArray
    column: IntArray
    value: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """`status` is `optimal`, `infeasible`, `limit` (of time), `node limit` or `failed`. `x` is None where no solution
    was found; `bound` is a lower bound on the cost of every solution."""

    status: str
    x: FloatArray | None
    bound: float
    basis: Any = None


class Solver:
    """A HiGHS instance with its settings: one thread and a fixed seed, so that equal inputs give equal results."""

    def __init__(self) -> None:
        import highspy  # here: it takes a quarter of a second

        self._api = highspy
        # The class beneath `highspy.Highs`, which would print a banner.
        self._highs = highspy._core._Highs()
        for option, setting in (("output_flag", False), ("threads", 1), ("random_seed", 0)):
            self._highs.setOptionValue(option, setting)

    def solve(
        self,
        programme: Programme,
        *,
        time_limit_s: float = float("inf"),
        nodes: int | None = None,
        gap: float = 0.0,
        start: Mapping[int, float] | None = None,
    ) -> Outcome:
        """The integer programme. `gap` is relative, `start` the values of some columns of a known solution, `nodes` the
        most nodes of the search tree."""
        highs = self._load(programme, programme.integral)
        highs.setOptionValue("time_limit", time_limit_s)
        if nodes is not None:
            highs.setOptionValue("mip_max_nodes", nodes)
        highs.setOptionValue("mip_rel_gap", gap)
        if start:
            highs.setSolution(len(start), np.array(list(start), np.int32), np.array(list(start.values()), np.float64))
        highs.run()
        info = highs.getInfo()
        return self._outcome(info.mip_dual_bound)

    def relax(self, programme: Programme, *, basis: Any = None) -> Outcome:
        """The linear relaxation, started from the basis of a programme of the same size."""
        highs = self._load(programme, np.zeros(len(programme.cost), bool))
        highs.setOptionValue("time_limit", float("inf"))
        if basis is not None:
            highs.setBasis(basis)
        highs.run()
        return self._outcome(highs.getInfo().objective_function_value)

    def _load(self, programme: Programme, integral: BoolArray) -> Any:
        api, highs = self._api, self._highs
        highs.clearModel()
        lp = api.HighsLp()
        lp.num_col_, lp.num_row_ = len(programme.cost), len(programme.low)
        lp.col_cost_, lp.row_lower_, lp.row_upper_ = programme.cost, programme.low, programme.high
        lp.col_lower_, lp.col_upper_ = np.zeros(len(programme.cost)), programme.upper
        lp.a_matrix_.format_ = api.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = programme.start.astype(np.int32)
        lp.a_matrix_.index_ = programme.column.astype(np.int32)
        lp.a_matrix_.value_ = programme.value
        if integral.any():
            kinds = (api.HighsVarType.kContinuous, api.HighsVarType.kInteger)
            lp.integrality_ = [kinds[flag] for flag in integral.tolist()]
        highs.passModel(lp)
        return highs

    def _outcome(self, bound: float) -> Outcome:
        api, highs = self._api, self._highs
        status = {
            api.HighsModelStatus.kOptimal: "optimal",
            api.HighsModelStatus.kInfeasible: "infeasible",
            api.HighsModelStatus.kTimeLimit: "limit",
            api.HighsModelStatus.kSolutionLimit: "node limit",
        }.get(highs.getModelStatus(), "failed")
        feasible = highs.getInfo().primal_solution_status == api.SolutionStatus.kSolutionStatusFeasible
        x = np.array(highs.getSolution().col_value) if feasible else None
        if x is not None and not np.isfinite(x).all():  # it does happen that HiGHS calls such a thing optimal
            return Outcome(status="failed", x=None, bound=-np.inf)
        return Outcome(status=status, x=x, bound=bound, basis=highs.getBasis())
