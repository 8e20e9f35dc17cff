"""Why a step takes as long as it does, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rooflang.report.layout import paragraph, table
from rooflang.report.numbers import show_share
from rooflang.sim.explain import Explanation, Share
from rooflang.units import show_seconds

#: Operators that are listed; the JSON has all of them.
_OPERATORS = 10


def show_explanation(explanation: Explanation) -> str:
    """The critical path of the slowest stage by bound, by group and by operator, and what would help."""
    result = explanation.result
    intro = f"critical path of the slowest stage: {show_seconds(explanation.path_s)}"
    if result.overlap == "perfect":
        intro += (
            f", operators one after the other; perfect overlap hides part of it, {show_seconds(result.step_s)} remain"
        )
    parts = [paragraph(intro, then="  "), _shares("waiting for", explanation.by_bound)]
    if result.overlap == "two-batch":  # otherwise every operator is on the path, and the point tells the groups
        parts.append(_shares("operators on the path", explanation.by_group))
    parts.append(_shares("longest, all layers together", explanation.by_operator[:_OPERATORS]))
    parts.append(_what_if(explanation))
    return "\n\n".join(parts)


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """The explanation as JSON-ready data, times in seconds; `path` is in order of time."""
    return {
        "path_s": explanation.path_s,
        "by_bound": [asdict(share) for share in explanation.by_bound],
        "by_group": [asdict(share) for share in explanation.by_group],
        "by_operator": [asdict(share) for share in explanation.by_operator],
        "what_if": [asdict(change) for change in explanation.what_if],
        "path": [asdict(step) for step in explanation.path],
    }


def _shares(head: str, shares: Sequence[Share]) -> str:
    return table(
        (f"<{head}", "time", "share"), [(s.name, show_seconds(s.seconds), show_share(s.share)) for s in shares]
    )


def _what_if(explanation: Explanation) -> str:
    rows = [
        (f"{change.change} {change.factor - 1:.0%} better", show_seconds(change.step_s), _gain(change.gain))
        for change in explanation.what_if
    ]
    return table(("<what if", "step", "throughput"), rows)


def _gain(gain: float) -> str:
    """`+4.1%`; a change that rounds to nothing as `–`."""
    return "–" if abs(gain) < 5e-4 else f"{gain:+.1%}"
