"""A sweep on a Dask and on a Ray cluster that run on this machine, in processes of their own, reached by address."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rooflang.errors import RooflangError
from rooflang.sweep import run_sweep

from .conftest import CASES, contents

Contents = list[tuple[str, ...]]

#: Neither library has to be told anything; Ray is kept from writing a token into the home folder.
QUIET = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def sweep(spec: Path, backend: str, address: str) -> str:
    """The command line's sweep, in a process that has nothing of the cluster but its address."""
    command = [sys.executable, "-m", "rooflang", "sweep", str(spec), "--backend", backend, "--address", address]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **QUIET})
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


@pytest.mark.slow
def test_dask(spec: Path, whole: Contents) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        assert f"cases       {CASES}" in sweep(spec, "dask", cluster.scheduler_address)
    assert contents(spec.with_suffix(".sqlite")) == whole


@pytest.mark.slow
def test_ray(spec: Path, whole: Contents, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        address = ray.get_runtime_context().gcs_address
        assert f"cases       {CASES}" in sweep(spec, "ray", address)
    finally:
        ray.shutdown()
    assert contents(spec.with_suffix(".sqlite")) == whole


def test_a_library_that_is_missing_is_named_with_its_extra(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, options in (
        ("joblib", {"workers": 2}),
        ("distributed", {"backend": "dask", "address": "tcp://127.0.0.1:1"}),
        ("ray", {"backend": "ray", "address": "127.0.0.1:1"}),
    ):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(RooflangError, match=f"{name} is not installed") as caught:
            run_sweep(spec, **options)  # type: ignore[arg-type]
        assert "pip install 'rooflang[" in caught.value.hint


@pytest.mark.slow
def test_no_cluster_answers(spec: Path) -> None:
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    with pytest.raises(RooflangError, match="no Dask cluster answers"):
        run_sweep(spec, backend="dask", address="tcp://127.0.0.1:1")
