"""The product of a sweep's lists, and its keys: equal for equal questions, different for different ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflang.errors import RooflangError, UnknownNameError, ValueRangeError
from rooflang.sweep.cases import jobs
from rooflang.sweep.job import Job
from rooflang.sweep.spec import read_spec

from .conftest import CASES, GRAPH, SPEC


def expand(folder: Path, text: str) -> tuple[Job, ...]:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return jobs(read_spec(path), folder)


def keys(found: tuple[Job, ...]) -> list[str]:
    return [case.key for job in found for case in job.cases]


MODELS = """\
models = ["deepseek-v4-flash", "kimi-k3"]
stages = ["decode", "prefill"]
contexts = ["8k", 65536]
[[clusters]]
hardware = "b300"
gpus = [8, "16"]
[[clusters]]
hardware = "gb300"
gpus = [64]
[[objectives]]
[[objectives]]
objective = "throughput"
max_ttft = "2s"
[[objectives]]
objective = "cost"
max_tpot = "30 ms"
"""


def test_the_product_of_all_lists(tmp_path: Path) -> None:
    text = MODELS.replace('hardware = "b300"', 'hardware = "b300"\ngpu_hour_usd = 3').replace(
        'hardware = "gb300"', 'hardware = "gb300"\ngpu_hour_usd = 4'
    )
    found = expand(tmp_path, text)
    assert len(found) == 2 * 3 * 2 * 2
    # A first token is of prefill, the time between tokens of decode.
    for job in found:
        objectives = [case.goal.objective for case in job.cases]
        assert objectives == ["frontier", "throughput" if job.stage == "prefill" else "cost"]
    assert len(set(keys(found))) == 2 * len(found)


def test_a_cost_needs_a_price(tmp_path: Path) -> None:
    with pytest.raises(ValueRangeError, match="without a price"):
        expand(tmp_path, MODELS)


def test_keys_are_those_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "mlp.rl").write_text(GRAPH, encoding="utf-8")
    first = keys(expand(tmp_path, SPEC))
    assert len(first) == len(set(first)) == CASES
    assert keys(expand(tmp_path, SPEC)) == first
    for other in (
        SPEC.replace("[8, 64]", "[8, 65]"),
        SPEC.replace("min_user = 9e5", "min_user = 8e5"),
        SPEC + "gap = 0.01\n",
        SPEC + 'effort = "look"\n',
        SPEC + 'time_limit = "2s"\n',
    ):
        assert keys(expand(tmp_path, other)) != first
    (tmp_path / "mlp.rl").write_text(GRAPH.replace("dim hidden 1024", "dim hidden 2048"), encoding="utf-8")
    assert not set(keys(expand(tmp_path, SPEC))) & set(first)


def test_single_assumptions_may_be_changed(tmp_path: Path) -> None:
    (tmp_path / "mlp.rl").write_text(GRAPH, encoding="utf-8")
    found = expand(tmp_path, SPEC.replace("[search]", "[assume]\nswitch_reduction = true\n[search]"))
    assert all(job.assumptions.switch_reduction for job in found)
    assert found[0].cases[0].asked["assume"] == {"switch_reduction": True}
    assert not set(keys(found)) & set(keys(expand(tmp_path, SPEC)))
    same = SPEC.replace("[search]", "[assume]\nswitch_reduction = false\n[search]")
    assert keys(expand(tmp_path, same)) == keys(expand(tmp_path, SPEC))


def test_what_is_asked_twice_is_computed_once(tmp_path: Path) -> None:
    (tmp_path / "mlp.rl").write_text(GRAPH, encoding="utf-8")
    twice = SPEC.replace("gpus = [1, 2, 4]", "gpus = [1, 2, 4, 2, 1]")
    assert keys(expand(tmp_path, twice)) == keys(expand(tmp_path, SPEC))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("mlp.rl", "none.rl"), RooflangError),
        (('"b300"', '"b301"'), UnknownNameError),
        (("[1, 2, 4]", "[12]"), RooflangError),
        (("[1, 2, 4]", "[0]"), ValueRangeError),
        (("[1, 2, 4]", "[]"), ValueRangeError),
        (("max_gpus = 8", "max_gpus = 2"), ValueRangeError),
        (("500 ns", "500"), RooflangError),
        (("batch = [8, 64]", 'disable_rules = ["split"]'), UnknownNameError),
        (("batch = [8, 64]", "gap = nan"), ValueRangeError),
        (("batch = [8, 64]", "time_limit = 0"), ValueRangeError),
        (("models =", 'stages = ["train"]\nmodels ='), UnknownNameError),
        (("[search]", "[assume]\nswitch = true\n[search]"), UnknownNameError),
        (("[search]", '[assume]\nindexer = "no"\n[search]'), ValueRangeError),
        (("models =", 'assumptions = ["wish"]\nmodels ='), UnknownNameError),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(
    tmp_path: Path, change: tuple[str, str], error: type[RooflangError]
) -> None:
    (tmp_path / "mlp.rl").write_text(GRAPH, encoding="utf-8")
    assert change[0] in SPEC
    with pytest.raises(error):
        expand(tmp_path, SPEC.replace(*change))


def test_no_case_is_left(tmp_path: Path) -> None:
    (tmp_path / "mlp.rl").write_text(GRAPH, encoding="utf-8")
    with pytest.raises(ValueRangeError, match="no case"):
        expand(tmp_path, SPEC.split("[[objectives]]")[0] + '[[objectives]]\nmax_ttft = "1s"\n')


def test_models_need_a_context(tmp_path: Path) -> None:
    with pytest.raises(ValueRangeError, match="needs a context"):
        expand(tmp_path, 'models = ["kimi-k3"]\n[[clusters]]\nhardware = "b300"\ngpus = [8]\n')


def test_the_example_is_one() -> None:
    path = Path(__file__).parents[2] / "examples" / "sweep.toml"
    found = jobs(read_spec(path), path.parent)
    assert len(found) == 3 * 2 * (4 + 1)
    assert {case.goal.objective for job in found for case in job.cases} == {"frontier", "cost"}
