"""Journals: a session as text that can be read, diffed and replayed.

    # rooflang journal 1
    model deepseek-v4-pro
    hardware b300
    gpus 256
    batch 4096
    …

    set_compute graph mesh=16 stages=16
    split_kernel layers.3.o_a dim=batch axis=x
    …

Lines up to the first blank one say what the session is about; a hash that is stated there (`graph`, `cluster`,
`version`) has to be that of what is built from the names. Each line after it is an action, or a macro by its name,
which expands into actions. `#` begins a comment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rooflang import __version__
from rooflang.agent.actions import make_action, split_line
from rooflang.assumptions import Assumptions
from rooflang.errors import RooflangError, UnknownNameError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.graph import Graph
from rooflang.models import Model
from rooflang.rules import rule_names
from rooflang.search.inputs import hashed_inputs, named_in, stated_assumptions

if TYPE_CHECKING:
    from pathlib import Path

    from rooflang.agent.session import Session

#: What a journal begins with, and the version of its format.
_FORMAT, _VERSION = "# rooflang journal ", "1"
FIRST_LINE = _FORMAT + _VERSION

#: What a journal may say about its session, in the order in which it is written.
_HEADER = (
    *("model", "hardware", "gpus", "stage", "context", "batch", "assumptions", "changed_assumptions", "overlap"),
    *("graph", "cluster", "version", "hash"),
)

_NUMBERS = ("gpus", "context", "batch")


def inputs_of(session: Session) -> dict[str, Any]:
    """What a session is about, with the fingerprints of graph and cluster, the version, and the hash of all of it."""
    return hashed_inputs(session.world.problem, batch=session.world.batch, overlap=session.overlap)


def write(session: Session) -> str:
    """The journal of a session."""
    inputs = inputs_of(session)
    if "changed_assumptions" in inputs:
        inputs["changed_assumptions"] = json.dumps(inputs["changed_assumptions"], sort_keys=True)
    lines = [FIRST_LINE, *(f"{name} {inputs[name]}" for name in _HEADER if name in inputs), ""]
    macro = ""
    for entry in session.entries:
        if entry.macro != macro:
            macro = entry.macro
            lines.append(f"# {macro}" if macro else "#")
        lines.append(str(entry.action))
    return "\n".join(lines) + "\n"


def replay(
    text: str,
    *,
    where: str = "journal",
    model: str | Path | Model | Graph | None = None,
    hardware: str | Path | Cluster | None = None,
    assumptions: str | Assumptions | None = None,
) -> Iterator[tuple[str, Session]]:
    """The session after each line of a journal, with the line; it begins with the empty line and the initial graph.

    `model`, `hardware` and `assumptions` are needed where the journal names what is not registered. Raises a typed
    error that names the line: a header that does not fit, an action that is refused.
    """
    from rooflang.agent.session import Session

    header, body = _split(text, where)
    session = _start(Session, header, where, model, hardware, assumptions)
    yield "", session
    for number, line in body:
        try:
            run_line(session, line, where=f"{where}:{number}")
        except RooflangError as error:
            error.where = f"{where}:{number}" + (
                f": {error.where}" if error.where not in ("", f"{where}:{number}") else ""
            )
            raise
        yield line, session


def run_line(session: Session, line: str, *, where: str = "line") -> None:
    """Take the action, or all those of the macro, that a line names. Raises a typed error; then nothing has changed."""
    from rooflang.agent.macros import MACROS, run_macro

    name, target, given = split_line(line, where=where)
    if name in rule_names():
        session.apply(make_action(name, target, given, where=where))
    elif name in MACROS:
        run_macro(session, name, {**({"target": target} if target else {}), **given}, where=where)
    else:
        raise UnknownNameError("primitive or macro", name[:60], (*rule_names(), *MACROS), where=where)


def _split(text: str, where: str) -> tuple[dict[str, tuple[int, str]], list[tuple[int, str]]]:
    """(header entries by name, actions), each with its line number."""
    header: dict[str, tuple[int, str]] = {}
    body: list[tuple[int, str]] = []
    in_header = True
    version = text.lstrip().partition("\n")[0].removeprefix(_FORMAT).strip()
    if text.lstrip().startswith(_FORMAT) and version != _VERSION:
        raise ValueRangeError(f"a journal of format {version[:20]!r}", where=f"{where}:1", expected=_VERSION)
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if in_header and not line and header:
            in_header = False
        if not line or line.startswith("#"):
            continue
        if not in_header:
            body.append((number, line))
            continue
        name, _, value = line.partition(" ")
        if name not in _HEADER or name in header:
            raise UnknownNameError("line of a journal's head", name[:60], _HEADER, where=f"{where}:{number}")
        header[name] = (number, value.strip())
    return header, body


def _start(
    kind: type[Session],
    header: dict[str, tuple[int, str]],
    where: str,
    model: str | Path | Model | Graph | None,
    hardware: str | Path | Cluster | None,
    assumptions: str | Assumptions | None,
) -> Session:
    values: dict[str, Any] = {name: value for name, (_, value) in header.items()}
    for name in _NUMBERS:
        if name in values:
            if not values[name].isdecimal() or len(values[name]) > 12:
                raise ValueRangeError(
                    f"{name} {values[name]!r}", where=f"{where}:{header[name][0]}", expected="a whole number"
                )
            values[name] = int(values[name])
    if "changed_assumptions" in values:
        try:
            values["changed_assumptions"] = json.loads(values["changed_assumptions"])
        except (ValueError, RecursionError) as error:
            number = header["changed_assumptions"][0]
            raise ValueRangeError(
                f"{error}", where=f"{where}:{number}", expected="fields and values as JSON"
            ) from error
    stated = stated_assumptions({"assumptions": "physical", **values}, where=where)
    for name, given in (("model", model), ("hardware", hardware)):
        if given is None and name not in values:
            raise ValueRangeError(f"it names no {name}", where=where, expected=f"a line `{name} NAME` at its head")
    with named_in(where, model=model, hardware=hardware):
        session = kind.start(
            model if model is not None else values["model"],
            hardware=hardware if hardware is not None else values["hardware"],
            assumptions=assumptions if assumptions is not None else stated,
            **{name: values[name] for name in ("gpus", "stage", "context", "batch", "overlap") if name in values},
        )
    check_inputs(session, values, where=where)
    return session


def check_inputs(session: Session, stated: dict[str, Any], *, where: str) -> None:
    """Raise `ValueRangeError` for the first fingerprint, name or number that is stated otherwise than it is."""
    found = inputs_of(session)
    for name, value in stated.items():
        if name in found and found[name] != value:
            hint = f"it was written by version {value}, this is {__version__}" if name == "version" else ""
            raise ValueRangeError(
                f"it is about another {name}: {str(value)[:80]}", where=where, expected=str(found[name]), hint=hint
            )
