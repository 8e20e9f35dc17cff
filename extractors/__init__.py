"""Extractors: from a costed e-graph to a plan. This package is a folder at the top level of the repository, linked into
`rooflang`.

`greedy` is fast and proves little; `ilp` finds the best plan and proves how good it is. Both take a `Task` and return
an `Extraction`. They are imported when they are asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from rooflang.errors import UnknownNameError

if TYPE_CHECKING:
    from rooflang.extractors.task import Extraction, Task

if __name__ != "rooflang.extractors":
    raise ImportError("import this package as `rooflang.extractors`, not as `extractors`")

_NAMES = ("greedy", "ilp")


def extractor_names() -> tuple[str, ...]:
    """Names of all extractors, the fastest first."""
    return _NAMES


def extractor(name: str) -> Callable[[Task], Extraction]:
    """The extractor of that name. Raises `UnknownNameError`."""
    if name not in _NAMES:
        raise UnknownNameError("extractor", name, _NAMES)
    return cast("Callable[[Task], Extraction]", importlib.import_module(f"rooflang.extractors.{name}").extract)
