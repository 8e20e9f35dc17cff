"""The house keeps its shape: links, what a wheel holds, short files, a light command line, its own words."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import rooflang

ROOT = Path(__file__).resolve().parent.parent
LINKED = ("rules", "extractors", "models")
CODE = ("rooflang", *LINKED, "tests", "benchmarks")  # the links inside rooflang/ are not followed

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
HEAVY = ("egglog", "numpy", "networkx", "rich", "plotly")

# Each pattern is written so that it does not match itself.
PRIVATE_WORDS = {
    "an absolute path of one machine": r"(?<![\w.~-])/(?:hom[e]|roo[t]|User[s]|wor[k]|op[t]|etc/xd[g])/\w",
    "the host of a package registry": r"pyp[i]\.org|pythonhoste[d]|npmj[s]\.|debia[n]\.org|crate[s]\.io",
    "a note on how the text was made": r"\bshared[/](?:D|ref|prot)|\b(?:DESIGN|TEAM)\.m[d]|\bworkplac[e]",
}
TEXT_SUFFIXES = {".py", ".md", ".toml", ".json", ".csv", ".egg", ".rl", ".html", ".js", ".css", ".txt", ""}


def python_files() -> list[Path]:
    return sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py") if path.is_file())


def text_files() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in TEXT_SUFFIXES)
    for folder in (*CODE, "docs", ".ci"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in TEXT_SUFFIXES and "__pycache__" not in path.parts:
                yield path


def run_python(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("name", LINKED)
def test_package_is_a_relative_link_to_the_top_level(name: str) -> None:
    link = ROOT / "rooflang" / name
    assert link.is_symlink(), f"{link} is no link; a checkout without symbolic links cannot be built"
    assert link.readlink() == Path("..") / name


@pytest.mark.parametrize("name", LINKED)
def test_package_imports_only_under_its_full_name(name: str) -> None:
    assert importlib.import_module(f"rooflang.{name}").__name__ == f"rooflang.{name}"
    outcome = run_python("-c", f"import {name}")
    assert outcome.returncode == 1
    assert f"ImportError: import this package as `rooflang.{name}`, not as `{name}`" in outcome.stderr


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names in a wheel built, by way of an sdist, from a copy that holds no earlier build's leftovers."""
    source = tmp_path_factory.mktemp("wheel") / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("rooflang", *LINKED):
        leftovers = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=leftovers)
    outcome = run_python("-m", "build", "--no-isolation", "--outdir", "dist", cwd=source)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    [wheel] = (source / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_wheel_holds_every_file_of_the_package(wheel_names: set[str]) -> None:
    folders = [ROOT / "rooflang", *(ROOT / "rooflang" / name for name in LINKED)]
    files = {path.relative_to(ROOT).as_posix() for folder in folders for path in folder.rglob("*")}
    expected = {name for name in files if (ROOT / name).is_file() and not name.endswith((".pyc", ".md"))}
    assert {f"rooflang/{name}/__init__.py" for name in LINKED} <= expected
    assert expected - wheel_names == set(), "not in the wheel: a suffix or an __init__.py is missing"


def test_wheel_holds_nothing_beside_the_package(wheel_names: set[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_names}
    assert tops == {"rooflang", f"rooflang-{rooflang.__version__}.dist-info"}


def test_files_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    assert len(lengths) > 5
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MAX_FILE_LINES} == {}


def test_functions_are_short() -> None:
    long = {}
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    long[f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"] = lines
    assert long == {}


@pytest.mark.parametrize("what", PRIVATE_WORDS)
def test_the_project_speaks_of_itself_only(what: str) -> None:
    pattern = re.compile(PRIVATE_WORDS[what])
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("an absolute path of one machine", "see /ho" + "me/somebody/notes"),
        ("the host of a package registry", "https://py" + "pi.org/simple"),
        ("a note on how the text was made", "as DESIGN" + ".md says"),
    ],
)
def test_private_words_would_be_found(what: str, text: str) -> None:
    assert re.search(PRIVATE_WORDS[what], text)


def test_help_needs_no_heavy_import() -> None:
    if importlib.util.find_spec("rooflang.cli") is None:
        pytest.skip("the command line does not exist yet")
    program = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print('HEAVY', [n for n in {HEAVY!r} if n in sys.modules]))\n"
        "sys.argv = ['rooflang', '--help']\n"
        "from rooflang.cli import main\n"
        "sys.exit(main())\n"
    )
    outcome = run_python("-c", program)
    assert outcome.returncode == 0, outcome.stderr
    assert "optimize" in outcome.stdout
    assert outcome.stdout.splitlines()[-1] == "HEAVY []"
