"""Every error a user can meet: what went wrong, where, what was expected, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class RooflangError(Exception):
    """Base of all errors that a user's input can cause.

    `code` is stable and short (`unknown-name`), `where` names the input at fault (a flag, a file and line, an
    op), `expected` says what would have been accepted, `hint` what to try next. The command line prints
    `str(error)` and exits with `exit_code`; it never shows a traceback for one of these.
    """

    code = "error"
    exit_code = 2

    def __init__(self, what: str, *, where: str = "", expected: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class UnknownNameError(RooflangError):
    """A name (model, hardware, rule, field) that nothing is registered under."""

    code = "unknown-name"

    def __init__(self, kind: str, name: str, known: Iterable[str], *, where: str = "") -> None:
        spelling = {each.lower(): each for each in sorted(known)}
        name = str(name)
        near = [spelling[each] for each in get_close_matches(name.lower(), spelling, n=3, cutoff=0.4)]
        super().__init__(
            f"unknown {kind} {name!r}",
            where=where,
            expected=f"one of {', '.join(spelling.values())}" if spelling else f"no {kind} is known here",
            hint=f"did you mean {' or '.join(near)}?" if near else "",
        )
        # Pickle rebuilds an exception from `args`; without these none could come back from a worker process.
        self.args = (kind, name, tuple(spelling.values()))


class ValueRangeError(RooflangError):
    """A value of the right kind, outside what is possible (context 0, a partition that does not sum)."""

    code = "value-range"


class UnitError(RooflangError):
    """A quantity that cannot be read, such as `3.35 TBps`."""

    code = "unit"


class GraphError(RooflangError):
    """A compute graph that is not well formed: a cycle, a dangling tensor, two writers, unequal shapes."""

    code = "graph"


class ModelError(RooflangError):
    """A model's config.json that is not well formed, lacks a field, or asks for what no builder can express."""

    code = "model"


class HardwareError(RooflangError):
    """A hardware file or cluster that is not well formed, or lacks what the graph needs (a dtype's peak)."""

    code = "hardware"


class PlacementError(RooflangError):
    """A plan that cannot be laid on the mesh: sizes that do not divide, a spec that no path reaches."""

    code = "placement"


class RefusedError(RooflangError):
    """A rewrite that does not apply. `refusal` is the rule's own short, stable code for it (`not-partial`)."""

    code = "refused"

    def __init__(self, refusal: str, what: str, *, where: str = "", expected: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, expected=expected, hint=hint)
        self.refusal = refusal
        self.args = (refusal, what)  # as in `UnknownNameError`


class CapacityError(RooflangError):
    """The plan needs more memory than a device has; the message names the largest tensors.

    `needs_bytes` is what it needs on the fullest device, so that the nearest of several failures can be told.
    """

    code = "capacity"
    exit_code = 3

    def __init__(
        self, what: str, *, needs_bytes: float = float("inf"), where: str = "", expected: str = "", hint: str = ""
    ) -> None:
        super().__init__(what, where=where, expected=expected, hint=hint)
        self.needs_bytes = needs_bytes


class LimitReached(RooflangError):
    """A time, node or memory limit ended the work before any valid result existed."""

    code = "limit"
    exit_code = 4


class UnreachableError(RooflangError):
    """No plan that was found meets the constraints. The message has the numbers of the nearest one, which is `nearest`
    (a `rooflang.search.point.Point`)."""

    code = "unreachable"
    exit_code = 5

    def __init__(
        self, what: str, *, nearest: object = None, where: str = "", expected: str = "", hint: str = ""
    ) -> None:
        super().__init__(what, where=where, expected=expected, hint=hint)
        self.nearest = nearest


class StoreError(RooflangError):
    """A store of a sweep that cannot be opened, read or written."""

    code = "store"
