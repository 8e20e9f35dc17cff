"""`rooflang models`, `hardware` and `rules`: lists, one of them, and a file of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import rooflang.hw
from rooflang.hw import platform_names
from rooflang.models import model_names
from rooflang.rules import rule_names

Run = Callable[..., Result]

PRESETS = Path(rooflang.hw.__file__).parent / "presets"

LISTS = {"models": model_names(), "hardware": platform_names(), "rules": rule_names()}


@pytest.mark.parametrize("command", LISTS)
def test_a_list_has_every_name_and_fits_a_page(run: Run, command: str) -> None:
    outcome = run(command)
    assert outcome.exit_code == 0
    firsts = {line.split()[0] for line in outcome.stdout.splitlines() if not line.startswith(" ")}
    assert set(LISTS[command]) <= firsts
    assert max(map(len, outcome.stdout.splitlines())) <= 100


@pytest.mark.parametrize(("command", "name"), [(command, name) for command, names in LISTS.items() for name in names])
def test_each_one_can_be_shown(run: Run, command: str, name: str) -> None:
    outcome = run(command, "show", name)
    assert outcome.exit_code == 0
    assert name in outcome.stdout
    assert max(len(line) for line in outcome.stdout.splitlines() if "://" not in line) <= 100


@pytest.mark.parametrize("command", LISTS)
def test_an_unknown_one_is_answered_with_the_nearest(run: Run, command: str) -> None:
    name = LISTS[command][0]
    outcome = run(command, "show", name + "x")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert f"did you mean {name}" in outcome.stderr


def test_every_model_of_the_paper_is_listed(run: Run) -> None:
    text = run("models").stdout
    listed = {line.split()[0] for line in text.splitlines()[1:]}
    assert {"deepseek-v4-flash", "deepseek-v4-pro", "glm-5.3", "kimi-k3"} <= listed


def test_published_parameters_stand_beside_those_that_are_counted(run: Run) -> None:
    (line,) = [line for line in run("models", "published").stdout.splitlines() if line.startswith("gpt-oss-120b")]
    assert line.split() == ["gpt-oss-120b", "116.83", "B", "116.83B", "5.13", "B", "5.13B", "embedding"]


def test_a_model_tells_its_layers_and_parameters(run: Run) -> None:
    words = run("models", "show", "deepseek-v4-pro").stdout.split()
    assert words[words.index("layers") + 1] == "61"
    assert "1,048,576" in words


def test_a_platform_tells_what_a_gpu_sees_and_where_numbers_come_from(run: Run) -> None:
    text = run("hardware", "show", "b300").stdout
    for number in ("4,500.0 TFLOP/s", "900 GB/s", "7.75 TB/s", "288 GB"):
        assert number in text
    assert "Table 5" in text
    assert "runs as fp8" in run("hardware", "show", "h200").stdout


def test_a_file_is_checked_and_shown(run: Run, folder: Path) -> None:
    preset = (PRESETS / "gb300.toml").read_text(encoding="utf-8")
    (folder / "mine.toml").write_text(preset.replace('name = "gb300"', 'name = "mine"', 1), encoding="utf-8")
    assert "mine.toml is well formed: mine × 72" in run("hardware", "check", "mine.toml").stdout
    assert run("hardware", "show", "mine.toml").stdout.startswith("mine: ")


def test_a_fabric_that_no_gpu_reaches_is_found_by_the_check(run: Run, folder: Path) -> None:
    text = (PRESETS / "b300.toml").read_text(encoding="utf-8")
    start = text.index("[scale_up]")
    line = next(line for line in text[start:].splitlines() if line.startswith("bandwidth"))
    (folder / "cut.toml").write_text(text[:start] + text[start:].replace(line, 'bandwidth = "0 GB/s"', 1))
    outcome = run("hardware", "check", "cut.toml")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "no route from gpu0 to switch0" in outcome.stderr


def test_files_may_begin_with_a_mark(run: Run, folder: Path, graph: str) -> None:
    """Editors on Windows write one before UTF-8."""
    for name, text in {
        "mine.toml": (PRESETS / "b300.toml").read_bytes(),
        "mine.json": (Path(rooflang.models.__file__).parent / "configs" / "deepseek-v4-flash.json").read_bytes(),
        "mine.rl": (folder / graph).read_bytes(),
    }.items():
        (folder / name).write_bytes(b"\xef\xbb\xbf" + text)
    assert run("hardware", "check", "mine.toml").exit_code == 0
    assert run("models", "show", "mine.json").exit_code == 0
    assert run("simulate", "mine.rl", "--hardware", "b300", "--gpus", "1").exit_code == 0


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("models",), "models"),
        (("models", "show", "qwen3-8b"), "models"),
        (("models", "published"), "models"),
        (("hardware",), "platforms"),
        (("hardware", "show", "h200"), "platforms"),
        (("hardware", "check", str(PRESETS / "h200.toml")), "platforms"),
        (("rules",), "rules"),
        (("rules", "show", "split_kernel"), "rules"),
    ],
)
def test_lists_are_json_too(run: Run, words: tuple[str, ...], key: str) -> None:
    told = json.loads(run(*words, "--json", "-").stdout)
    assert told["schema"].endswith("/1")
    assert len(told[key]) == (1 if len(words) == 3 else len(told[key])) > 0
    if key == "platforms":
        h200 = next(platform for platform in told[key] if platform["name"] == "h200")
        assert h200["hbm"]["bandwidth_bytes_per_s"] == 4.8e12
        assert all(section["source"] for section in h200.values() if isinstance(section, dict))


def test_json_of_a_subcommand_stands_behind_it(run: Run) -> None:
    outcome = run("models", "--json", "-", "show", "qwen3-8b")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "rooflang models show" in outcome.stderr
