"""The three agent cases of the RoofLang paper (arXiv 2609.12551, section on agent mode) as journals, under its
assumptions. Published figures: the grid's and the agent's step time in seconds, or the agent's gain in throughput."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflang.agent.journal import replay
from rooflang.agent.replayed import replayed, show_rows
from rooflang.search.validate import validate

CASES = Path(__file__).parents[2] / "docs" / "cases"


@pytest.mark.parametrize(
    ("name", "edits", "grid_s", "gain", "within"),
    [
        ("decode-64k", 1, 1165.49e-6, 1165.49 / 968.91 - 1, 5e-4),
        ("prefill-8k", 4, 12.106, 46005 / 43307.6 - 1, 1e-3),
        # The paper's 2.29 s is 1.4% more than the same plan takes here: it does not say how its steps look.
        ("prefill-1m", 1, 3.441, 0.501, 2e-2),
    ],
)
def test_the_paper_s_agent(name: str, edits: int, grid_s: float, gain: float, within: float) -> None:
    text = (CASES / f"{name}.journal").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    before = len(lines) - edits
    sessions = [session.branch() for _, session in replay(text, where=name)]
    grid, found = sessions[before - _head(lines)], sessions[-1]
    assert grid.simulate().step_s == pytest.approx(grid_s, rel=2e-3)
    assert grid.simulate().step_s / found.simulate().step_s - 1 == pytest.approx(gain, abs=within * (1 + gain))
    assert validate(found.plan, found.placed.blocks, found.problem.cluster)


def _head(lines: list[str]) -> int:
    """Lines that say what a journal is about; the initial graph stands for one line."""
    names = ("model", "hardware", "gpus", "stage", "context", "batch", "assumptions", "overlap")
    return sum(line.split()[0] in names for line in lines)


def test_a_journal_as_a_table() -> None:
    text = (CASES / "prefill-8k.journal").read_text(encoding="utf-8")
    rows = [row for row, _ in replayed(text.replace("context 8192", "context 1024"), where="short")]
    assert show_rows(rows).splitlines()[-1].endswith("remove_identity layers.2.expert_scatter")
    assert "too much  (initial graph)" in show_rows(rows)
