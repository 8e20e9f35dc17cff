"""The program itself: what it lists, how it ends, what it imports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import rooflang
from rooflang.cli import program
from rooflang.errors import CapacityError, LimitReached, RooflangError

Run = Callable[..., Result]

HEAVY = ("egglog", "numpy", "networkx", "rich", "plotly", "highspy")


def heavy_after(*arguments: str) -> list[str]:
    """The heavy packages that a command line imports, in a process of its own."""
    script = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print(*[n for n in {HEAVY!r} if n in sys.modules], file=sys.stderr))\n"
        f"sys.argv = ['rooflang', *{list(arguments)!r}]\n"
        "from rooflang.cli import main\n"
        "main()\n"
    )
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stderr.split()


def test_help_lists_every_command_and_the_exit_codes(run: Run) -> None:
    outcome = run("--help")
    assert outcome.exit_code == 0
    for name in ("optimize", "simulate", "models", "hardware", "rules", "tables", "reproduce"):
        assert f"\n  {name} " in outcome.output
    for code in (0, 1, 2, 3, 4, 130):
        assert f"\n    {code} " in outcome.output


@pytest.mark.parametrize("arguments", [("--help",), ("optimize", "--help"), ("hardware",)], ids=" ".join)
def test_what_computes_nothing_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert set(heavy_after(*arguments)) <= ({"networkx"} if arguments == ("hardware",) else set())


@pytest.mark.parametrize("command", ["optimize", "simulate", "tables", "reproduce", "models", "hardware", "rules"])
def test_every_help_text_has_an_example(run: Run, command: str) -> None:
    outcome = run(command, "--help")
    assert outcome.exit_code == 0
    assert f"\n    rooflang {command}" in outcome.output


def test_version(run: Run) -> None:
    assert run("--version").output == f"rooflang {rooflang.__version__}\n"


def test_the_help_text_says_where_names_of_hardware_are_listed(run: Run) -> None:
    text = run("optimize", "--help").output
    assert "NAME|FILE.toml" in text
    assert "`rooflang hardware`" in text


def test_an_unknown_command_is_answered_with_the_nearest(run: Run) -> None:
    outcome = run("optimise")
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert "unknown command 'optimise'" in outcome.stderr
    assert "did you mean optimize" in outcome.stderr


def test_an_unknown_option_is_answered_with_the_nearest(run: Run) -> None:
    outcome = run("tables", "--jsn", "x")
    assert outcome.exit_code == 2
    assert "--json" in outcome.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RooflangError, 2),
        (CapacityError, 3),
        (LimitReached, 4),
    ],
)
def test_an_error_gives_its_text_and_exit_code(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: type[RooflangError], code: int
) -> None:
    def refuse() -> None:
        raise error("no", where="here")

    monkeypatch.setattr("rooflang.hw.platform_names", refuse)
    outcome = run("hardware")
    assert outcome.exit_code == code
    assert (outcome.stdout, outcome.stderr) == ("", "Error: here: no\n")


def test_ctrl_c_exits_as_shells_expect(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rooflang.hw.platform_names", interrupt)
    outcome = run("hardware")
    assert outcome.exit_code == 130
    assert outcome.stderr == "interrupted\n"


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("rooflang.hw.platform_names", fail)
    outcome = CliRunner().invoke(program, ["hardware"])
    assert outcome.exit_code == 1
    assert isinstance(outcome.exception, ZeroDivisionError)


def test_the_module_is_the_program() -> None:
    outcome = subprocess.run([sys.executable, "-m", "rooflang", "--version"], capture_output=True, text=True)
    assert outcome.stdout == f"rooflang {rooflang.__version__}\n"
    outcome = subprocess.run([sys.executable, "-m", "rooflang", "optimise"], capture_output=True, text=True)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert "Traceback" not in outcome.stderr


def test_a_terminal_that_lacks_a_letter_is_no_error() -> None:
    command = [sys.executable, "-X", "utf8=0", "-m", "rooflang", "optimize", "--help"]
    outcome = subprocess.run(command, capture_output=True, env={"PYTHONIOENCODING": "latin-1"})
    assert outcome.returncode == 0, outcome.stderr
    assert b"N,N,?" in outcome.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [("models",), ("hardware", "--json", "-"), ("--help",)])
def test_a_full_disk_under_standard_output_is_no_bug(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "rooflang", *arguments]
        outcome = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert outcome.returncode == 2, outcome.stderr
    assert outcome.stderr.startswith("Error: standard output: No space left on device")
    assert "Traceback" not in outcome.stderr
