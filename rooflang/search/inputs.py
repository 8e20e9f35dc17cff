"""What a result depends on, and the hash of it: equal hashes, equal results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import msgspec

from rooflang import __version__
from rooflang.assumptions import PHYSICAL, PROFILES, Assumptions, profile
from rooflang.errors import UnknownNameError, ValueRangeError
from rooflang.search.problem import Problem


def hashed_inputs(problem: Problem, **choices: Any) -> dict[str, Any]:
    """The problem and the choices made beside it, with the version and the `hash` of all of them."""
    inputs: dict[str, Any] = {
        "model": problem.name,
        "graph": problem.graph.fingerprint,
        "hardware": problem.cluster.platform.name,
        "cluster": problem.cluster.fingerprint(),
        "gpus": problem.cluster.gpus,
        "stage": problem.stage,
        "context": problem.context,
        "assumptions": problem.assumptions.name,
        **choices,
        "version": __version__,
    }
    named = PROFILES.get(problem.assumptions.name, PHYSICAL)
    changed = problem.assumptions.differs_from(named)
    if changed:
        inputs["changed_assumptions"] = {field: own for field, (own, _) in changed.items()}
    inputs["hash"] = digest(inputs)
    return inputs


def stated_assumptions(inputs: Mapping[str, Any], *, where: str = "inputs") -> Assumptions:
    """The assumptions that the inputs of a result name. Raises `ValueRangeError` for what are none."""
    name, changed = inputs.get("assumptions"), inputs.get("changed_assumptions", {})
    if not isinstance(name, str) or not isinstance(changed, Mapping):
        raise ValueRangeError(f"assumptions is {name!r}", where=where, expected="the name of a profile, and changes")
    base = asdict(PROFILES.get(name, PHYSICAL) if changed else profile(name))
    unknown = [field for field in changed if field not in base]
    if unknown:
        raise UnknownNameError("assumption", unknown[0], base, where=f"{where}: changed_assumptions")
    try:
        return msgspec.convert({**base, **changed, "name": name}, Assumptions)
    except msgspec.ValidationError as error:
        raise ValueRangeError(str(error), where=f"{where}: changed_assumptions") from error


@contextmanager
def named_in(file: str, **given: object) -> Iterator[None]:
    """While a question is built anew that a file asks: a model or hardware that is not registered was a file of
    somebody's own, and has to be named unless it is `given`. Changes `UnknownNameError` to say so."""
    try:
        yield
    except UnknownNameError as error:
        kind = error.args[0]
        if kind in given and given[kind] is None:
            error.where, error.expected = file, f"a registered name, or the file that the {kind} was read from"
            error.hint = f"{error.hint} A file is named by --{kind} FILE, in Python by {kind}=".lstrip()
        raise


def digest(inputs: Mapping[str, Any]) -> str:
    """Sixteen hex digits of the SHA-256 of JSON-ready data."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]
