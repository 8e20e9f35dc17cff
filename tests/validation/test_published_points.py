"""Every published point on the four platforms of Table 5, throughput and interactivity, within 1%; exceptions by name.

The numbers come out of the models under the `paper` profile; no number is fitted, one condition of the grid is
(decision 004). See SOURCES.md beside this file.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rooflang.errors import CapacityError
from rooflang.search.api import simulate
from rooflang.units import parse_count

PLATFORMS = ("h200", "gh200", "b300", "gb300")
MODELS = {
    "dsv4_flash": "deepseek-v4-flash",
    "dsv4_pro": "deepseek-v4-pro",
    "glm_5_2_fp8": "glm-5.3",  # the published name is that of the version before, which has the same dims
    "kimi_k3": "kimi-k3",
}
TOLERANCE = 0.01

#: What is further off, by how much at most, and why.
EXCEPTIONS = {
    # Found in part. Published points with shares of a sequence show waits between ranks, each of which applies another
    # number of maps of the delta rule (with one stage and CP 64: 5 of 181 ms, which our point there has). Our ranks are
    # alike, all apply as many as the last one. What 1.1 ms more a stage the published step waits for is not known.
    "kimi_k3-prefill-64k-gb300-64-1-1-32-2": 0.015,
}


def _rows() -> list[dict[str, str]]:
    with (Path(__file__).parent / "published_points.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["hardware"] in PLATFORMS and row["model"] in MODELS]


def _name(row: dict[str, str]) -> str:
    keys = ("model", "stage", "context", "hardware", "gpus", "batch", "dp", "cp", "pp")
    return "-".join(row[k] for k in keys)


def _simulate(row: dict[str, str]) -> tuple[float, float]:
    point = simulate(
        MODELS[row["model"]],
        hardware=row["hardware"],
        gpus=int(row["gpus"]),
        stage=row["stage"],
        context=parse_count(row["context"]),
        batch=int(row["batch"]),
        dp=int(row["dp"]),
        cp=int(row["cp"]),
        pp=int(row["pp"]),
        partition=[int(n) for n in row["pp_partition"].split("-")],
        assumptions="paper",
    )
    return point.sim.tok_s_gpu, point.sim.tok_s_user


def test_there_are_points_to_compare() -> None:
    names = [_name(row) for row in _rows()]
    assert len(names) > 150
    assert {row["model"] for row in _rows()} == set(MODELS)
    assert set(EXCEPTIONS) < set(names)
    assert len(EXCEPTIONS) < 0.03 * len(names)
    assert max(EXCEPTIONS.values()) < 0.03


@pytest.mark.parametrize("row", _rows(), ids=_name)
def test_point(row: dict[str, str]) -> None:
    gpu, user = _simulate(row)
    tolerance = EXCEPTIONS.get(_name(row), TOLERANCE)
    assert gpu == pytest.approx(float(row["tok_s_gpu"]), rel=tolerance)
    assert user == pytest.approx(float(row["tok_s_user"]), rel=tolerance)


#: Points that the paper's analysis quotes: model, hardware, GPUs, stage, context, batch, dp, cp, pp, partition,
#: tok/s/GPU, tok/s/user.
QUOTED = [
    ("deepseek-v4-flash", "gb300", 64, "decode", "64k", 65536, 64, 1, 1, None, 90989.27, 88.857),
    ("deepseek-v4-flash", "b300", 8, "decode", "64k", 8, 1, 8, 1, None, 599.51, 599.51),
    ("deepseek-v4-flash", "gb300", 64, "decode", "64k", 64, 8, 1, 8, None, 1703.25, 212.91),
    ("deepseek-v4-pro", "b300", 8, "decode", "64k", 512, 8, 1, 1, None, 3484.0, 54.44),
    ("deepseek-v4-pro", "b300", 8, "prefill", "8k", 512, 8, 1, 1, None, 43307.6, 676.68),
    ("deepseek-v4-pro", "b300", 256, "decode", "64k", 4096, 16, 1, 16, None, 13728.2, 53.63),
    ("deepseek-v4-pro", "b300", 256, "decode", "64k", 4096, 16, 1, 16, [3] + [4] * 14 + [2], 16513.4, 64.505),
    ("deepseek-v4-pro", "b300", 16, "prefill", "1m", 1, 1, 16, 1, None, 19045.3, 304725.0),
    ("glm-5.3", "gb300", 64, "decode", "1m", 256, 64, 1, 1, None, 725.50, 181.375),
    ("kimi-k3", "gb300", 64, "decode", "64k", 4096, 64, 1, 1, None, 2766.6, 43.228),
    ("kimi-k3", "gb300", 8, "decode", "64k", 8, 8, 1, 1, None, 87.101, 87.101),
    ("kimi-k3", "gb300", 8, "decode", "64k", 64, 8, 1, 1, None, 248.5, 31.061),
    ("kimi-k3", "gb300", 16, "decode", "64k", 1024, 8, 1, 2, None, 2287.9, 17.874),
    ("kimi-k3", "gb300", 32, "decode", "64k", 4096, 32, 1, 1, None, 3349.8, 26.170),
]


@pytest.mark.parametrize("case", QUOTED, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}-{c[3]}-{c[4]}-{c[5]}-pp{c[8]}")
def test_quoted(case: tuple[object, ...]) -> None:
    model, hardware, gpus, stage, context, batch, dp, cp, pp, partition, gpu, user = case
    point = simulate(
        model,  # type: ignore[arg-type]
        hardware=hardware,  # type: ignore[arg-type]
        gpus=gpus,  # type: ignore[arg-type]
        stage=stage,  # type: ignore[arg-type]
        context=parse_count(context),  # type: ignore[arg-type]
        batch=batch,  # type: ignore[arg-type]
        dp=dp,  # type: ignore[arg-type]
        cp=cp,  # type: ignore[arg-type]
        pp=pp,  # type: ignore[arg-type]
        partition=partition,  # type: ignore[arg-type]
        assumptions="paper",
    )
    assert point.sim.tok_s_gpu == pytest.approx(gpu, rel=TOLERANCE)
    assert point.sim.tok_s_user == pytest.approx(user, rel=TOLERANCE)


def test_out_of_memory() -> None:
    with pytest.raises(CapacityError, match="GB"):
        simulate(
            "deepseek-v4-flash",
            hardware="b300",
            gpus=8,
            stage="decode",
            context=65536,
            batch=16384,
            dp=8,
            assumptions="paper",
        )
