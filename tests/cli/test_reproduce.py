"""`rooflang reproduce`: where the report goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    def report(names: tuple[str, ...], folder: Path | None, progress: object) -> str:
        return f"# parts: {' '.join(names)}; kept: {folder is not None}\n"

    monkeypatch.setattr("rooflang.report.reproduce.reproduce", report)


def test_without_a_folder_the_report_is_printed(run: Run) -> None:
    assert run("reproduce").stdout == "# parts: tables ratios; kept: False\n\n"
    assert "parts: ratios;" in run("reproduce", "--what", "ratios").stdout


def test_a_folder_is_made_and_gets_the_report(run: Run, folder: Path) -> None:
    outcome = run("reproduce", "--what", "tables", "--out", "new/place")
    assert outcome.exit_code == 0
    assert outcome.stdout.split() == ["wrote", str(Path("new/place/report.md"))]
    assert (folder / "new/place/report.md").read_text(encoding="utf-8") == "# parts: tables; kept: True\n"


def test_an_unknown_part_is_refused(run: Run) -> None:
    outcome = run("reproduce", "--what", "table")
    assert outcome.exit_code == 2
    assert "tables" in outcome.stderr


def test_a_file_is_no_folder(run: Run, folder: Path) -> None:
    (folder / "taken").write_text("", encoding="utf-8")
    outcome = run("reproduce", "--out", "taken")
    assert outcome.exit_code == 2
    assert "--out" in outcome.stderr
    assert (folder / "taken").read_text(encoding="utf-8") == ""
