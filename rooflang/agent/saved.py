"""Sessions as files: JSON with what the session is about, hashed, and the actions that were taken.

A file holds no state that could be forged: loading one replays its actions, each past the checks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rooflang.agent.actions import Action, action_from_json
from rooflang.agent.journal import check_inputs, inputs_of
from rooflang.assumptions import Assumptions
from rooflang.errors import RooflangError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.graph import Graph
from rooflang.models import Model
from rooflang.search.inputs import named_in, stated_assumptions

if TYPE_CHECKING:
    from rooflang.agent.session import Session

SCHEMA = "rooflang.session/1"


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    action: Action
    macro: str = ""


class _Saved(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema: str
    inputs: dict[str, Any]
    actions: tuple[_Entry, ...]


def to_json(session: Session) -> dict[str, Any]:
    """The session as JSON data, schema `rooflang.session/1`."""
    actions = tuple(_Entry(action=entry.action, macro=entry.macro) for entry in session.entries)
    data: dict[str, Any] = msgspec.to_builtins(_Saved(schema=SCHEMA, inputs=inputs_of(session), actions=actions))
    return data


def encode(session: Session) -> bytes:
    """The session as the bytes of its file."""
    return msgspec.json.format(msgspec.json.encode(to_json(session)), indent=1) + b"\n"


def load(
    path: str | Path,
    *,
    model: str | Path | Model | Graph | None = None,
    hardware: str | Path | Cluster | None = None,
    assumptions: str | Assumptions | None = None,
) -> Session:
    """The session of a file. `model`, `hardware` and `assumptions` are needed where the file names what is not
    registered.

    Raises `ValueRangeError` for what is no session, or was made about another graph, cluster, assumptions or by another
    version; `RefusedError` for an action that does not apply.
    """
    from rooflang.agent.session import Session

    try:
        data = Path(path).read_bytes()
        saved = msgspec.json.decode(data, type=_Saved)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueRangeError(
            f"cannot be read: {error}", where=str(path), expected=f"JSON of schema {SCHEMA}"
        ) from error
    if saved.schema != SCHEMA:
        raise ValueRangeError(f"the schema is {saved.schema[:60]!r}", where=str(path), expected=SCHEMA)
    stated = saved.inputs
    for name, kind in (("model", str), ("hardware", str), ("stage", str), ("assumptions", str), ("overlap", str)):
        _typed(stated, name, kind, path)
    for name in ("gpus", "context", "batch"):
        _typed(stated, name, int, path)
    taken = assumptions if assumptions is not None else stated_assumptions(stated, where=f"{path}: inputs")
    with named_in(str(path), model=model, hardware=hardware):
        session = Session.start(
            model if model is not None else stated["model"],
            hardware=hardware if hardware is not None else stated["hardware"],
            assumptions=taken,
            **{name: stated[name] for name in ("gpus", "stage", "context", "batch", "overlap")},
        )
    check_inputs(session, {**dict.fromkeys(inputs_of(session), None), **stated}, where=str(path))
    for number, entry in enumerate(saved.actions, start=1):
        where = f"{path}: action {number}"
        try:
            session.apply(action_from_json(msgspec.to_builtins(entry.action), where=where), macro=entry.macro)
        except RooflangError as error:
            error.where = f"{where}: {error.where}" if error.where else where
            raise
    return session


def _typed(stated: dict[str, Any], name: str, kind: type, path: str | Path) -> None:
    if not isinstance(stated.get(name), kind) or isinstance(stated.get(name), bool):
        raise ValueRangeError(f"{name} is {stated.get(name)!r}", where=f"{path}: inputs", expected=kind.__name__)
