"""Defaults from a file, and completion of names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from rooflang.cli import program
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No file of the person who runs the tests is read."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ROOFLANG_CONFIG", raising=False)
    return tmp_path / "home"


def test_defaults_come_from_the_file_and_options_win(run: Run, folder: Path, graph: str) -> None:
    (folder / "rooflang.toml").write_text('[simulate]\nhardware = "b300"\ngpus = 8\ndp = 8\n', encoding="utf-8")
    outcome = run("simulate", graph)
    assert outcome.exit_code == 0
    assert "on 8 b300" in outcome.stdout
    assert f"rooflang simulate {graph} --hardware b300 --gpus 8 --dp 8" in " ".join(outcome.stdout.split())
    assert "on 8 h200" in run("simulate", graph, "--hardware", "h200").stdout


def test_the_file_of_the_home_is_read_if_there_is_none_here(run: Run, home: Path, graph: str) -> None:
    (home / "rooflang").mkdir(parents=True)
    (home / "rooflang" / "config.toml").write_text('[simulate]\nhardware = "b300"\ngpus = 8\n', encoding="utf-8")
    assert "on 8 b300" in run("simulate", graph, "--dp", "8").stdout
    shown = run("config").stdout
    assert "config.toml" in shown and "simulate --hardware b300" in shown


def test_defaults_are_shown_as_they_would_be_typed(run: Run, folder: Path) -> None:
    (folder / "rooflang.toml").write_text("[optimize]\nbatch = [1, 8]\nquiet = true\npp = 1\n", encoding="utf-8")
    lines = run("config").stdout.splitlines()[1:]
    assert lines == ["  optimize --batch 1,8", "  optimize --quiet", "  optimize --pp 1"]


@pytest.mark.parametrize(
    ("text", "what", "told"),  # told by `rooflang config` as well, which knows names and no values
    [
        ("[simulte]\n", "did you mean simulate", True),
        ('[simulate]\nhardwre = "b300"\n', "did you mean 'hardware'", True),
        ("gpus = 8\n", "outside of any table", True),
        ("[simulate\n", "cannot read it", True),
        ('[simulate]\nhardware = "b301"\n', "b301", False),
        ('[simulate]\nhardware = "b300"\ngpus = nan\n', "cannot read the count 'nan'", False),
        ("[simulate]\ngpus = {a = 1}\n", "unknown option: 'gpus'", True),
        ('[simulate]\nhardware = ["b300", "h100"]\n', "b300,h100", False),
    ],
)
def test_what_a_file_cannot_say(run: Run, folder: Path, graph: str, text: str, what: str, told: bool) -> None:
    (folder / "rooflang.toml").write_text(text, encoding="utf-8")
    outcome = run("simulate", graph, "--dp", "8")
    assert outcome.exit_code == 2
    assert what in outcome.stderr
    shown = run("config")
    assert shown.exit_code == (2 if told else 0)
    assert not told or what in shown.stderr


def test_the_file_here_goes_before_that_of_the_home(run: Run, home: Path, folder: Path, graph: str) -> None:
    (home / "rooflang").mkdir(parents=True)
    (home / "rooflang" / "config.toml").write_text('[simulate]\nhardware = "b300"\n', encoding="utf-8")
    (folder / "rooflang.toml").write_text('[simulate]\nhardware = "h200"\n', encoding="utf-8")
    assert "on 8 h200" in run("simulate", graph, "--gpus", "8", "--dp", "8").stdout
    named = str(home / "rooflang" / "config.toml")
    assert "on 8 b300" in run("--config", named, "simulate", graph, "--gpus", "8", "--dp", "8").stdout


def test_the_most_gpus_that_are_typed_replace_the_number_of_the_file(run: Run, folder: Path, graph: str) -> None:
    (folder / "rooflang.toml").write_text('[optimize]\nhardware = "h100"\ngpus = 8\n', encoding="utf-8")
    outcome = run("optimize", graph, "--max-gpus", "2", "--batch", "8")
    assert outcome.exit_code == 0, outcome.output
    again = " ".join(outcome.stdout.split())
    assert "--max-gpus 2" in again and "--gpus 8" not in again
    assert run("optimize", graph, "--max-gpus", "2", "--gpus", "2", "--batch", "8").exit_code == 2


def test_every_kind_of_option_can_have_a_default(run: Run, folder: Path, graph: str) -> None:
    """A switch with a short name, a parameter that is called otherwise than its option, several values."""
    (folder / "rooflang.toml").write_text(
        '[optimize]\nhardware = "h100"\ngpus = 2\nquiet = true\njson = "out.json"\n'
        'batch = [8, 16]\ndisable-rule = "fuse_kernels"\nfix = ["mesh=2"]\n',
        encoding="utf-8",
    )
    outcome = run("optimize", graph)
    assert outcome.exit_code == 0, outcome.output
    assert "Again" not in outcome.stdout
    asked = json.loads((folder / "out.json").read_text(encoding="utf-8"))["inputs"]
    assert (asked["batch"], asked["disabled_rules"], asked["fix"]) == ([8, 16], ["fuse_kernels"], ["mesh=2"])


def test_commands_of_groups_have_tables_of_their_own(run: Run, folder: Path) -> None:
    path = folder / "rooflang.toml"
    path.write_text('[models]\njson = "all.json"\n[hardware.show]\njson = "one.json"\n', encoding="utf-8")
    assert run("models").exit_code == run("hardware", "show", "h100").exit_code == 0
    assert (folder / "all.json").exists() and (folder / "one.json").exists()
    assert "hardware show --json one.json" in run("config").stdout
    path.write_text("[hardware.shw]\n", encoding="utf-8")
    assert "did you mean 'show'" in run("hardware", "show", "h100").stderr


def test_a_file_that_is_named_has_to_be_there(run: Run) -> None:
    outcome = run("--config", "nowhere.toml", "hardware")
    assert outcome.exit_code == 2
    assert "nowhere.toml" in outcome.stderr
    assert "no file of defaults" in run("config").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(run: Run, shell: str) -> None:
    outcome = run("completion", shell)
    assert outcome.exit_code == 0
    assert "_ROOFLANG_COMPLETE" in outcome.stdout


def test_names_are_completed() -> None:
    shell = ShellComplete(program, {}, "rooflang", "_ROOFLANG_COMPLETE")
    assert [item.value for item in shell.get_completions([], "opt")] == ["optimize"]
    values = {item.value for item in shell.get_completions(["optimize", "x", "--hardware"], "GB")}
    assert {"gb200", "gb300"} <= values
