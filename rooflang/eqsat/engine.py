"""The one module that talks to egglog, by its bindings: it loads commands, steps rulesets, counts, and takes the
e-graph out.

It works with egglog 13.2 and 14. Importing it takes 0.4 s, most of it egglog's own, so it is imported when a saturation
begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice, repeat
from typing import Any

from egglog.bindings import EGraph

from rooflang.eqsat.snapshot import Row, Snapshot

#: One call of egglog's parser takes time and memory quadratic in its input; short texts keep it linear.
LINES_PER_PARSE = 8

#: Columns of these sorts are numbers; all others are e-classes.
_NUMBER = "i64"


class _Numbered(dict[Any, int]):
    """The integers of a sort's values: what they are, or as many as there were before."""

    def __init__(self, integer: Callable[[Any], int] | None = None) -> None:
        self._integer = integer

    def __missing__(self, value: Any) -> int:
        self[value] = found = len(self) if self._integer is None else self._integer(value)
        return found


class Engine:
    """One e-graph."""

    def __init__(self) -> None:
        self._egraph = EGraph()

    def load(self, commands: Iterable[str]) -> int:
        """Run commands, one per item; returns their number."""
        count, rest = 0, iter(commands)
        while chunk := list(islice(rest, LINES_PER_PARSE)):
            self._run("\n".join(chunk))
            count += len(chunk)
        return count

    def step(self, ruleset: str) -> bool:
        """Apply every rule of the ruleset once to everything it matches; True when that changed anything."""
        (output,) = self._run(f"(run-schedule (run {ruleset}))")
        return bool(output.report.updated)

    def sizes(self) -> dict[str, int]:
        """Number of rows by constructor and relation."""
        (output,) = self._run("(print-size)")
        return dict(output.sizes)

    def freeze(self) -> Snapshot:
        """The whole e-graph as integers."""
        known: dict[str, _Numbered] = {_NUMBER: _Numbered(self._egraph.value_to_i64)}
        rows = {}
        for name, function in self._egraph.freeze().functions.items():
            for sort in (*function.input_sorts, function.output_sort):
                known.setdefault(sort, _Numbered())
            # Column by column: that takes half of what row by row does.
            columns = zip(*(row.inputs for row in function.rows), strict=True)
            inputs = [map(known[sort].__getitem__, column) for sort, column in zip(function.input_sorts, columns)]
            outputs = map(known[function.output_sort].__getitem__, (row.output for row in function.rows))
            rows[name] = tuple(map(Row, zip(*inputs, strict=True) if inputs else repeat(()), outputs))
        return Snapshot(rows=rows)

    def _run(self, text: str) -> list[Any]:
        outputs: list[Any] = self._egraph.run_program(*self._egraph.parse_program(text))
        return outputs
