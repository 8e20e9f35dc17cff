"""What a saturation returns: the frozen e-graph of one block, as layout records; `rooflang.eqsat.enodes`
names the e-nodes that they were read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from rooflang.ir.blocks import BlockKind
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Mode, Transfer


class StopReason(StrEnum):
    """Why a saturation ended."""

    SATURATED = "saturated"
    NODE_LIMIT = "node_limit"
    TIME_LIMIT = "time_limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When to stop. They are checked between iterations, one of which can overshoot `nodes` (e-nodes and facts) by
    half.
    """

    nodes: int = 2_000_000
    seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One application of all rules: rows after it, and how long it took."""

    enodes: int
    facts: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturationStats:
    """What the e-graph holds and what it took.

    `enodes` by constructor (those of tensors and those of views), `facts` by relation, `classes` of both sorts, `views`
    = classes of tensors in a layout. `rules` are the primitives that took part.
    """

    enodes: Mapping[str, int]
    facts: Mapping[str, int]
    classes: int
    views: int
    iterations: tuple[Iteration, ...]
    stop: StopReason
    rules: tuple[str, ...]
    commands: int
    load_s: float
    saturate_s: float
    freeze_s: float

    @property
    def total_enodes(self) -> int:
        return sum(self.enodes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A leaf at rest in a layout, in a memory tier."""

    leaf: str
    spec: Spec
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An input port that arrives in a layout, as the block before it left it."""

    port: str
    spec: Spec


@dataclass(frozen=True, kw_only=True)
class FrozenBlock:
    """All layouts of one block kind that the primitives reach and that can be computed.

    - `modes`: the kernels, unfused and fused, each in every layout; `mode.op.output` is the tensor that it makes.
    - `transfers`: steps between layouts of a tensor, by the name of its alias class.
    - `holds`, `arrivals`: where the leaves and the input ports come from.
    - `exits`: layouts in which each output port or graph output can be handed over.
    - `aliases`: tensor → the first tensor of its class. Tensors of one class have equal values (a move and its
      operand), and whatever makes one of them serves the readers of all. A mode that reads and makes the same class in
      the same layout is a move that may be left out; it makes nothing by itself.

    Everything is sorted by the block's own order; equal inputs give equal records.
    """

    kind: BlockKind
    axes: int
    modes: tuple[Mode, ...]
    transfers: tuple[Transfer, ...]
    holds: tuple[Hold, ...]
    arrivals: tuple[Arrival, ...]
    exits: Mapping[str, tuple[Spec, ...]]
    aliases: Mapping[str, str]
    stats: SaturationStats

    @cached_property
    def _known(self) -> frozenset[object]:
        return frozenset([*map(_mode_key, self.modes), *map(self._transfer_key, self.transfers)])

    def _transfer_key(self, transfer: Transfer) -> object:
        name = self.aliases.get(transfer.tensor, transfer.tensor)
        return (name, transfer.collective, transfer.before, transfer.after)

    def missing(self, modes: Iterable[Mode] = (), transfers: Iterable[Transfer] = ()) -> tuple[Mode | Transfer, ...]:
        """Those of the given records (of this block's operators) that are not in the e-graph, whoever made them."""
        absent: list[Mode | Transfer] = [mode for mode in modes if _mode_key(mode) not in self._known]
        absent += [step for step in transfers if self._transfer_key(step) not in self._known]
        return tuple(absent)

    def contains(self, modes: Iterable[Mode] = (), transfers: Iterable[Transfer] = ()) -> bool:
        """Are all of the given modes and transfers in the e-graph?"""
        return not self.missing(modes, transfers)


def _mode_key(mode: Mode) -> object:
    return (mode.op.name, mode.op.kind, mode.operands, mode.out)
