"""`rooflang agent replay`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Run = Callable[..., Result]

JOURNAL = """\
# rooflang journal 1
model mlp
hardware b300
gpus 8
batch 64

data_parallel axis=x
fuse_kernels sum inner=down
"""


def write(folder: Path, text: str) -> str:
    (folder / "plan.journal").write_text(text, encoding="utf-8")
    return "plan.journal"


def test_a_journal_is_replayed_and_its_plan_verified(run: Run, folder: Path, graph: str) -> None:
    name = write(folder, JOURNAL.replace("fuse_kernels sum inner=down\n", "split_kernel up dim=ffn only=this\n"))
    told = run("agent", "replay", name, "--model", graph, "--json", "plan.json")
    assert told.exit_code == 0
    assert [line.split()[-2:] for line in told.output.splitlines()[2:]] == [
        ["data_parallel", "axis=x"],
        ["dim=ffn", "only=this"],
    ]
    data = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    assert [row["actions"] for row in data["journal"]] == [0, 4, 5]
    assert data["point"]["step_s"] == data["journal"][-1]["step_s"]
    verified = run("verify", "plan.json", "--model", graph)
    assert "accepted: 1 points of mlp" in verified.output


def test_the_line_that_does_not_apply_is_named(run: Run, folder: Path, graph: str) -> None:
    told = run("agent", "replay", write(folder, JOURNAL), "--model", graph)
    assert told.exit_code == 2
    assert "plan.journal:8" in told.output
    assert "data_parallel axis=x" in told.output
    assert "'sum'" in told.output


def test_what_is_no_journal(run: Run, folder: Path, graph: str) -> None:
    for text, said in [
        ("", "it names no hardware"),
        ("model mlp\nhardware b300\ngpus eight\n", "gpus 'eight'"),
        ("model mlp\ncolour red\n", "'colour'"),
        (JOURNAL.replace("journal 1", "journal 9"), "a journal of format '9'"),
        ("model mlp\nhardware b300\ngpus 8\ngraph 0000\n", "another graph"),
        ("model mlp\nhardware b300\ngpus 8\nversion 0\n", "another version"),
    ]:
        told = run("agent", "replay", write(folder, text), "--model", graph)
        assert told.exit_code == 2
        assert said in told.output
    assert run("agent", "replay", "nothing.journal").exit_code == 2
    (folder / "plan.journal").write_bytes(b"\xff\xfe")
    assert "cannot be read" in run("agent", "replay", "plan.journal").output
