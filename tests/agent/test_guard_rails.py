"""What a session is about cannot be changed from inside, and no file is taken for one about something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

import rooflang
from rooflang.agent import Action, Session
from rooflang.agent.actions import FIELDS, action_from_json, parse_action
from rooflang.agent.macros import MACROS
from rooflang.assumptions import PHYSICAL
from rooflang.errors import RooflangError, UnknownNameError, ValueRangeError
from rooflang.rules import rule_names

from .graphs import layers, mlp

Change = Callable[[dict[str, Any]], Any]


def session() -> Session:
    found = Session.start(layers(), hardware="b300", gpus=8)
    found.run("data_parallel axis=x\nsplit_kernel layers.2.up dim=ffn only=layers.1")
    return found


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "session.json"
    session().save(path)
    return path


def changed(path: Path, change: Change) -> Path:
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_actions_name_primitives_and_places_only() -> None:
    assert set(FIELDS) == {
        *("dim", "axis", "reader", "inner", "after", "keep", "memory", "step", "stream", "stage", "mesh", "stages"),
        *("layers", "parts", "only"),
    }
    for name in ("model", "hardware", "assumptions", "batch", "overlap", "cost"):
        with pytest.raises(UnknownNameError):
            parse_action(f"split_kernel up dim=ffn {name}=x")
        with pytest.raises(UnknownNameError):
            parse_action(f"set_{name} graph")
        with pytest.raises(RooflangError):
            session().run(f"data_parallel {name}=x")
    assert not set(MACROS) & set(rule_names())


def test_records_are_frozen() -> None:
    mine = session()
    for record, field in [(mine.world, "batch"), (mine.world.problem, "cluster"), (mine.plan, "mesh")]:
        with pytest.raises(FrozenInstanceError):
            setattr(record, field, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["inputs"].update(graph="0" * 16), "another graph"),
        (lambda d: d["inputs"].update(cluster="0" * 64), "another cluster"),
        (lambda d: d["inputs"].update(version="0.0.1"), "another version"),
        (lambda d: d["inputs"].update(hash="0" * 16), "another hash"),
        (lambda d: d["inputs"].update(batch=32), "another hash"),
        (lambda d: d["inputs"].update(assumptions="paper"), "another hash"),
        (lambda d: d["inputs"].update(changed_assumptions={"indexer": False}), "another hash"),
        (lambda d: d["inputs"].update(changed_assumptions={"gravity": 9.81}), "unknown assumption"),
        (lambda d: d["inputs"].update(gpus=16), "another cluster"),
        (lambda d: d["inputs"].update(gpus="8"), "gpus is '8'"),
        (lambda d: d["inputs"].pop("hash"), "another hash"),
        (lambda d: d["inputs"].update(overlap="total"), "overlap"),
        (lambda d: d.update(schema="rooflang.result/1"), "the schema is"),
        (lambda d: d.update(state={}), "cannot be read"),
        (lambda d: d["actions"][0]["action"].update(cost=0), "cannot be read"),
        (lambda d: d["actions"][0]["action"].update(primitive="set_hardware"), "primitive"),
        (lambda d: d["actions"][0]["action"].update(dim="nothing"), "cut along 'nothing'"),
    ],
)
def test_files_about_something_else_are_refused(saved: Path, change: Change, said: str) -> None:
    with pytest.raises(RooflangError) as caught:
        Session.load(changed(saved, change), model=layers())
    assert said in f"{caught.value}"


def test_what_is_no_file_of_a_session(tmp_path: Path) -> None:
    for data in (b"", b"{", b"[]", b"\xff\xfe", b"{}", b"[" * 100_000, b'"' + b"x" * 10_000_000):
        (tmp_path / "bad.json").write_bytes(data)
        with pytest.raises(ValueRangeError, match="cannot be read"):
            Session.load(tmp_path / "bad.json", model=layers())
    with pytest.raises(ValueRangeError, match="cannot be read"):
        Session.load(tmp_path / "nothing.json")
    with pytest.raises(ValueRangeError, match="cannot be written"):
        session().save(tmp_path / "no folder" / "session.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json"]


def test_changed_assumptions_come_back(tmp_path: Path) -> None:
    other = replace(PHYSICAL, switch_reduction=True)
    mine = Session.start(mlp(), hardware="b300", gpus=8, assumptions=other)
    mine.run("tensor_parallel axis=x")
    mine.save(tmp_path / "s.json")
    for again in (Session.load(tmp_path / "s.json", model=mlp()), Session.replay(mine.journal, model=mlp())):
        assert again.world.problem.assumptions == other
        assert again.simulate() == mine.simulate()


def test_journals_state_what_they_are_about() -> None:
    text = session().journal
    for line in ("graph ", "cluster ", "version ", "hash "):
        start = text.index(f"\n{line}") + 1
        end = text.index("\n", start)
        with pytest.raises(ValueRangeError, match=f"another {line.strip()}"):
            Session.replay(f"{text[:start]}{line}0{text[end:]}", model=layers())
    hashes = ("graph", "cluster", "version", "hash")
    short = "\n".join(line for line in text.splitlines() if not line.startswith(hashes))
    assert Session.replay(short, model=layers()).state_bytes() == session().state_bytes()


def test_a_graph_of_ones_own_has_to_be_named(tmp_path: Path) -> None:
    session().save(tmp_path / "s.json")
    with pytest.raises(UnknownNameError, match="A file is named by --model FILE"):
        Session.load(tmp_path / "s.json")
    with pytest.raises(UnknownNameError, match="A file is named by --model FILE"):
        Session.replay(session().journal)
    slip = session().journal.replace("hardware b300", "hardware b301")
    with pytest.raises(UnknownNameError, match=r"did you mean b300.* A file is named by --hardware FILE"):
        Session.replay(slip, model=layers())


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "   ",
            "split_kernel",
            "split_kernel up dim",
            "split_kernel up dim=a dim=b",
            "split_kernel 'up",
            "\x00 \x01",
        ),
        *("set_compute graph mesh=2x", "set_compute graph mesh=" + "9" * 400, "set_compute graph stages=-1"),
        *(
            "set_compute graph layers=1x99999999999",
            "set_compute up stream=1e9",
            "split_kernel " + "x" * 10_000 + " dim=a",
        ),
        *("split_kernel up dim=\x1b[31m", "split_kernel up dim=" + "y" * 10_000),
    ],
)
def test_lines_that_are_no_action(text: str) -> None:
    with pytest.raises((ValueRangeError, UnknownNameError)) as caught:
        parse_action(text)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    "data",
    [
        *(None, 1, [], {}, {"primitive": "split_kernel"}, {"primitive": 1, "target": "up"}),
        {"primitive": "split_kernel", "target": "up", "mesh": "2x2"},
        {"primitive": "split_kernel", "target": "up", "mesh": [2, 10**30]},
        {"primitive": "split_kernel", "target": "up", "stream": -1},
        {"primitive": "split_kernel", "target": "up", "extra": 1},
        {"primitive": "split_kernel", "target": ""},
        {"primitive": "no_such", "target": "up"},
        {"primitive": "split_kernel", "target": "u\np"},
    ],
)
def test_data_that_is_no_action(data: object) -> None:
    with pytest.raises((ValueRangeError, UnknownNameError)):
        action_from_json(data)


def test_actions_come_back_from_text_and_json() -> None:
    for action in (
        Action(primitive="split_kernel", target="a b", dim="ffn", axis="x,y", only="layers.1-3,this"),
        Action(primitive="set_compute", target="graph", mesh=(2, 8), stages=3, layers=(3, 4, 4, 2)),
        Action(primitive="fuse_kernels", target="dispatch", dim="batch→expert"),
        Action(primitive="set_compute", target="up", stream=0),
    ):
        assert parse_action(str(action)) == action
        assert action_from_json(json.loads(json.dumps(action.to_json()))) == action
    assert rooflang.__version__ in session().journal
