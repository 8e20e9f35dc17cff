"""Where small graphs of a single operator are entered."""

from __future__ import annotations

from collections.abc import Callable

from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.tensor import Tensor

CASES: dict[str, Callable[[], Graph]] = {}

Make = Callable[[GraphBuilder], Tensor]


def case(dims: str) -> Callable[[Make], Make]:
    """Enter a graph of one operator under the name of the function that builds it; every dim has the extent 2."""

    def enter(make: Make) -> Make:
        def build() -> Graph:
            builder = GraphBuilder(make.__name__, **dict.fromkeys(dims.split(), 2))
            return builder.build(make(builder))

        CASES[make.__name__] = build
        return make

    return enter
