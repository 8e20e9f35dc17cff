"""What the best choice costs with each state of each variable: the min-marginals of a sum of tables.

Elimination leaves one table for each variable, and says what the best choice of all costs. On the way back each of
these tables is told what all the others add to it; the variable's own tables and that make its marginals (message
passing on the tree of eliminations: Shenoy and Shafer, 1990).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.tables import Names, Table, Tables


def marginals(tables: Tables, extra: Table) -> list[FloatArray]:
    """For each variable what the best choice with each of its states costs, (points, states), with one more table that
    is `extra`. All variables have been eliminated but those that were kept, and no table was split (`Tables.exact`);
    the variables of `extra` are among the kept ones."""
    counts, kept = tables.counts, set(range(len(tables.counts))) - {step.variable for step in tables.steps}
    final = [*tables.parts, extra]
    out = {variable: _least(final, counts, (variable,)) for variable in kept}
    told: dict[int, list[Table]] = {id(step.left): [] for step in tables.steps}
    _tell(final, counts, told)
    for step in reversed(tables.steps):
        around = [*step.tables, *told[id(step.left)]]
        out[step.variable] = _least(around, counts, (step.variable,))
        _tell(around, counts, told)
    return [out[variable] for variable in range(len(counts))]


def _tell(around: Sequence[Table], counts: Sequence[int], told: dict[int, list[Table]]) -> None:
    """Tell each of some tables that a variable left what the others add to it."""
    for number, table in enumerate(around):
        if id(table) in told:
            others = [*around[:number], *around[number + 1 :]]
            told[id(table)].append((table[0], _least(others, counts, table[0])))


def _least(tables: Sequence[Table], counts: Sequence[int], keep: Names) -> FloatArray:
    """The minimum of a sum of tables over all variables but `keep`, (points, states …)."""
    mine = Tables(max((len(table) for _, table in tables), default=1))
    number = {name: mine.variable(counts[name]) for name in sorted({*keep}.union(*(names for names, _ in tables)))}
    for names, table in tables:
        mine.add([number[name] for name in names], table)
    return mine.eliminate([number[name] for name in keep], sys.maxsize)
