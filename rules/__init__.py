"""The paper's primitives as rules, one record a file: `rule("split_kernel").describe()`.

A file's stem is the rule's name, the primitive's name and the stem of its test. Records are imported when they are
asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from rooflang.errors import UnknownNameError

if TYPE_CHECKING:
    from rooflang.rules.record import Rule

if __name__ != "rooflang.rules":
    raise ImportError("import this package as `rooflang.rules`, not as `rules`")

#: In the order of the paper's Tables 1 and 2.
_NAMES = (
    "set_compute",
    "set_memory",
    "add_control_edge",
    "remove_control_edge",
    "insert_identity",
    "remove_identity",
    "fuse_kernels",
    "split_kernel",
    "dup_kernel",
    "dedup_kernel",
    "merge_gather_scatter",
    "merge_gather_broadcast",
    "merge_reduce_scatter",
    "merge_reduce_broadcast",
)


def rule_names() -> tuple[str, ...]:
    """Names of all rules."""
    return _NAMES


def rule(name: str) -> Rule:
    """The rule of that name. Raises `UnknownNameError`."""
    if name not in _NAMES:
        raise UnknownNameError("rule", name, _NAMES)
    record: Rule = importlib.import_module(f"rooflang.rules.{name}").RULE
    return record
