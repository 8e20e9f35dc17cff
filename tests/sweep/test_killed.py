"""kill -9 at random moments of a sweep: once gone on with, its store is that of an uninterrupted one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rooflang.errors import StoreError

from .conftest import contents

Contents = list[tuple[str, ...]]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, so that all moments lie in the sweep")
def test_kill_9_at_twenty_random_moments(spec: Path, tmp_path: Path, whole: Contents) -> None:
    folder = tmp_path / "stores"
    folder.mkdir()
    script = Path(__file__).with_name("killed.py")
    subprocess.run([sys.executable, str(script), str(spec), str(folder), "6"], check=True, timeout=600)
    stores = sorted(folder.glob("*.sqlite"))
    assert len(stores) >= 2
    for store in stores:
        assert contents(store) == whole


@pytest.mark.slow
def test_kill_9_with_processes_of_its_own(spec: Path, whole: Contents) -> None:
    """What it began is stored once the same command has run again; nothing is left half-written."""
    pytest.importorskip("joblib")
    store = spec.with_suffix(".sqlite")
    command = [sys.executable, "-m", "rooflang", "sweep", str(spec), "--jobs", "2"]
    with subprocess.Popen(command, start_new_session=True) as process:
        end = time.monotonic() + 300
        while not (store.is_file() and contents_or_none(store)) and time.monotonic() < end:
            time.sleep(0.05)
        process.kill()
    while processes_of(process.pid) and time.monotonic() < end:  # workers end with it, if not at once
        time.sleep(0.1)
    assert not processes_of(process.pid)
    assert set(contents(store)) <= set(whole)
    subprocess.run(command, check=True, timeout=600)
    assert contents(store) == whole


def processes_of(session: int) -> bool:
    """Is anything left that a process began in a session of its own?"""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def contents_or_none(store: Path) -> Contents:
    try:
        return contents(store)
    except StoreError:  # it is being made
        return []
