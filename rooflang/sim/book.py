"""`Book`: what every operator of a placed graph costs on every kind of rank, each looked up once."""

from __future__ import annotations

from collections.abc import Sequence

from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.errors import PlacementError
from rooflang.ir.cut import Cut, Spec, show_spec
from rooflang.ir.tensor import Tensor
from rooflang.place.lower import LiftedOp, PlacedGraph
from rooflang.sim.costs import LiftedCosts


class Book:
    """Costs at one batch size, as floats, leaves read where they lie. `models[colour]` is the cost model of the ranks
    of that colour."""

    def __init__(self, placed: PlacedGraph, models: Sequence[CostModel]) -> None:
        self.placed = placed
        self.models = tuple(models)
        self._known = [LiftedCosts(model) for model in models]
        self._costs: dict[int, dict[int, Cost]] = {}
        self._sizes: dict[tuple[int, Spec, int], int] = {}

    def cost(self, lifted: LiftedOp, colour: int = 0) -> Cost:
        """The cost of an operator on a rank. Raises `PlacementError` where its extents do not divide."""
        found = self._known[colour].of(lifted)
        floats = self._costs.setdefault(colour, {})
        if id(found) not in floats:  # the table of `_known` keeps every record, and so its id
            floats[id(found)] = _as_floats(found, lifted)
        return floats[id(found)]

    def size_bytes(self, tensor: Tensor, spec: Spec, colour: int = 0) -> int:
        """Bytes of a tensor in a spec on a rank, rounded."""
        key = (id(tensor), spec, colour)
        if key not in self._sizes:
            self._sizes[key] = round(float(self.models[colour].bytes(tensor, spec)))
        return self._sizes[key]


def _as_floats(cost: Cost, lifted: LiftedOp) -> Cost:
    if cost.memory_s == float("inf"):
        raise _does_not_divide(lifted)
    return Cost(
        compute_s=float(cost.compute_s),
        memory_s=float(cost.memory_s),
        levels_s={name: float(seconds) for name, seconds in cost.levels_s.items()},
        alpha_s=float(cost.alpha_s) if cost.levels_s else 0.0,
    )


def _does_not_divide(lifted: LiftedOp) -> PlacementError:
    if lifted.mode is not None:
        specs = " ".join(show_spec(s) for s in lifted.mode.operands)
        what = f"{lifted.name} cannot run as {specs} → {show_spec(lifted.mode.out)}"
        aligned = {c.dim: c.multiple_of for c in lifted.mode.choices if isinstance(c, Cut) and c.multiple_of > 1}
        for dim, multiple in aligned.items():
            what += f", shards of {dim} being multiples of {multiple}"
    else:
        what = f"{lifted.name} cannot lead to {show_spec(lifted.write[1])}"
    return PlacementError(
        f"{what}: its extents do not divide",
        hint="choose mesh axes that divide the batch and the model's dims",
    )
