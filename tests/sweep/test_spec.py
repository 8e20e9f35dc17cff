"""The file of a sweep: what it may say, and how it is told what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rooflang.errors import RooflangError, UnknownNameError, ValueRangeError
from rooflang.sweep.spec import ClusterSpec, ObjectiveSpec, SearchSpec, Spec, read_spec


def read(tmp_path: Path, text: str) -> object:
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    return read_spec(path)


def test_the_smallest_file_has_the_defaults_of_optimize(tmp_path: Path) -> None:
    spec = read(tmp_path, 'models = ["m.rl"]\n[[clusters]]\nhardware = "b300"\ngpus = [8]\n')
    assert spec.stages == ("decode",)  # type: ignore[attr-defined]
    assert spec.objectives[0].objective == "frontier"  # type: ignore[attr-defined]
    assert spec.search.search == "egraph"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ('model = ["m"]', "unknown key 'model'", "models"),
        ('models = ["m"]\n[[clusters]]\nhardwear = "b300"', "clusters[0]: unknown key 'hardwear'", "hardware"),
        ('models = ["m"]\n[search]\noverlaps = "none"', "search: unknown key 'overlaps'", "overlap"),
        ('models = ["m"]\n[[objectives]]\n[[objectives]]\nmin_users = 3', "objectives[1]: unknown key", "min_user"),
        ('models = ["m"]\n[[objectives]]\nobjective = "costs"', "objectives[0]: objective: unknown objective", "cost"),
        ('models = ["m"]\n[search]\noverlap = "perfekt"', "search: overlap: unknown overlap 'perfekt'", "perfect"),
    ],
)
def test_unknown_keys_and_words_with_the_nearest(tmp_path: Path, text: str, what: str, hint: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        read(tmp_path, text)
    assert what in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        'models = "m"\n[[clusters]]\nhardware = "b300"',
        'models = ["m"]',
        'models = ["m"]\n[[clusters]]\nhardware = 3',
        "models = []\nclusters = []",
        'models = []\n[[clusters]]\nhardware = "b300"',
    ],
)
def test_values_of_another_kind_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueRangeError, match="study"):
        read(tmp_path, text)


def test_what_is_no_toml_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(RooflangError, match="no TOML"):
        read(tmp_path, "models = [")
    with pytest.raises(RooflangError, match="cannot read"):
        read_spec(tmp_path / "none.toml")
    with pytest.raises(RooflangError, match="cannot read"):
        read_spec(tmp_path)


def test_every_key_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
    for record in (Spec, ClusterSpec, ObjectiveSpec, SearchSpec):
        for key in record.__struct_fields__:
            assert re.search(rf"`\[*{key}\b", text), key
