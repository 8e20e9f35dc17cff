"""The one module that talks to egglog, by its bindings: it loads commands, steps rulesets, counts, and takes the
e-graph out.

It works with egglog 13.2 and 14. Importing it takes 0.4 s, most of it egglog's own, so it is imported when a saturation
begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from egglog.bindings import EGraph

from rooflang.eqsat.snapshot import Row, Snapshot

#: One call of egglog's parser takes time and memory quadratic in its input; short texts keep it linear.
LINES_PER_PARSE = 32

#: Columns of these sorts are numbers; all others are e-classes.
_NUMBER = "i64"


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
        frozen = self._egraph.freeze()
        number: dict[Any, int] = {}
        classes: dict[str, dict[Any, int]] = {}

        def column(sort: str, value: Any) -> int:
            if sort == _NUMBER:
                if value not in number:
                    number[value] = self._egraph.value_to_i64(value)
                return number[value]
            known = classes.setdefault(sort, {})
            return known.setdefault(value, len(known))

        rows = {}
        for name, function in frozen.functions.items():
            sorts = tuple(function.input_sorts)
            rows[name] = tuple(
                Row(
                    inputs=tuple(column(sort, value) for sort, value in zip(sorts, row.inputs, strict=True)),
                    output=column(function.output_sort, row.output),
                )
                for row in function.rows
            )
        return Snapshot(rows=rows)

    def _run(self, text: str) -> list[Any]:
        outputs: list[Any] = self._egraph.run_program(*self._egraph.parse_program(text))
        return outputs
