"""Where small graphs of a single operator are entered."""

from __future__ import annotations

from collections.abc import Callable

from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.tensor import Tensor

CASES: dict[str, Callable[[], Graph]] = {}

Make = Callable[[GraphBuilder], Tensor]


def case(dims: str) -> Callable[[Make], Make]:
    """Enter a graph of one operator under the name of the function that builds it; a dim has the extent 2, or the one
    that follows it (`whole:4`)."""
    sizes = {label: int(size or 2) for label, _, size in (dim.partition(":") for dim in dims.split())}

    def enter(make: Make) -> Make:
        def build() -> Graph:
            builder = GraphBuilder(make.__name__, **sizes)
            return builder.build(make(builder))

        CASES[make.__name__] = build
        return make

    return enter
