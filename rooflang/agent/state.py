"""What a session edits: the state, from which the plan follows. Frozen; an edit makes a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rooflang.hw.mesh import Mesh
from rooflang.ir.blocks import Blocks
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Choice, Transfer, make_transfer

#: A place where a value is read: (tensor that the kernel makes, operand number); (port, -1) where it leaves its block.
Read = tuple[str, int]

EXIT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What was done to one block kind; names are those of its representative block.

    `choices[tensor]`: how the kernel that makes it runs along each axis, where that is not whole. `fused[tensor]` are
    the tensors that are now computed inside the kernel that makes `tensor`, in the order in which they were fused.
    `steps[read]`: the merged steps on the way to a reader; what is left of the way goes by the first coordinate.
    `tiers[leaf]`: its memory beside HBM. `removed[tensor]`: the operand that is read instead of an identity that is
    left out.
    """

    choices: Mapping[str, tuple[Choice, ...]] = field(default_factory=dict)
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: Mapping[Read, tuple[Transfer, ...]] = field(default_factory=dict)
    tiers: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)

    @property
    def inside(self) -> frozenset[str]:
        """The tensors that are computed inside some kernel."""
        return frozenset(tensor for tensors in self.fused.values() for tensor in tensors)

    def renamed(self, names: Mapping[str, str]) -> Edits:
        """The same edits under the names of another block of the kind."""
        return Edits(
            choices={names[t]: choices for t, choices in self.choices.items()},
            fused={names[outer]: tuple(names[t] for t in inside) for outer, inside in self.fused.items()},
            steps={
                (names[t], index): tuple(make_transfer(names[s.tensor], s.before, s.after) for s in steps)
                for (t, index), steps in self.steps.items()
            },
            tiers={names[leaf]: tier for leaf, tier in self.tiers.items()},
            removed={names[tensor]: names[operand] for tensor, operand in self.removed.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A placed graph by what was done to get there.

    `alike` are the groups of blocks that are laid alike, `edits` what was done to each, by kind. `boundary` is how
    each port group lies. `control` are pairs of operators of which the second waits for the first, `streams` the
    streams of those operators that are not on stream 0.
    """

    mesh: Mesh
    stages: tuple[tuple[str, ...], ...]
    alike: tuple[tuple[str, ...], ...]
    edits: Mapping[str, Edits]
    boundary: Mapping[int, Spec]
    control: tuple[tuple[str, str], ...] = ()
    streams: Mapping[str, int] = field(default_factory=dict)

    def edited(self, kind: str, edits: Edits) -> State:
        """The state with other edits of a kind."""
        return replace(self, edits={**self.edits, kind: edits})


def set_apart(state: State, blocks: Blocks, kind: str, labels: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The groups of alike blocks when some blocks of a kind become a kind of their own."""
    out: list[tuple[str, ...]] = []
    for group in state.alike:
        if group == blocks.by_name[kind].blocks:
            out += [tuple(label for label in group if label not in labels), labels]
        else:
            out.append(group)
    return tuple(sorted((group for group in out if group), key=lambda group: blocks.sequence.index(group[0])))


def regrouped(state: State, old: Blocks, new: Blocks) -> State:
    """The state over blocks that are grouped otherwise, each kind of `new` being part of one of `old`."""
    edits = {}
    for kind in new.kinds:
        was = old.kind_of[kind.blocks[0]]
        edits[kind.name] = state.edits[was].renamed(old.rename[kind.blocks[0]])
    lies: dict[str, Spec] = {}
    for (name, port), group in old.port_group.items():
        for label in old.by_name[name].blocks:
            lies[old.rename[label][port]] = state.boundary[group]
    boundary = {group: lies[port] for (_, port), group in new.port_group.items()}
    alike = tuple(kind.blocks for kind in new.kinds)
    return replace(state, alike=alike, edits=edits, boundary=boundary)
