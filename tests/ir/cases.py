"""One small graph of a single operator for every kind and shape of it that matters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rooflang.ir.graph import Graph
from rooflang.soundness.cases import case_names, example
from rooflang.soundness.cases import the_op as the_op

CASES: dict[str, Callable[[], Graph]] = {name: partial(example, name) for name in case_names()}
