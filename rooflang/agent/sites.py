"""Where an action applies: the operator or the reads that it names, in the kind of block that it edits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rooflang.agent.actions import Action
from rooflang.agent.state import EXIT, Edits, Read, State, regrouped, set_apart
from rooflang.agent.wiring import choices_of, effective, reads_of
from rooflang.agent.world import World, unknown
from rooflang.errors import RefusedError
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Choice, Mode
from rooflang.ir.op import Op
from rooflang.ir.tensor import Tensor

#: The reader of a tensor where it leaves its block.
LEAVES = "@exit"

#: `only=this`: the block of the target and no other.
THIS = "this"

_RANGE = re.compile(r"(.*?)(\d+)-(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A kind of block in a state, in which an edit is made, and the label of the block that the action named."""

    world: World
    state: State
    blocks: Blocks
    kind: BlockKind
    label: str

    @property
    def edits(self) -> Edits:
        return self.state.edits[self.kind.name]

    @property
    def axes(self) -> int:
        return len(self.state.mesh.axes)

    def with_edits(self, edits: Edits) -> Site:
        """The site after an edit."""
        return replace(self, state=self.state.edited(self.kind.name, edits))

    def kernel(self, tensor: str) -> Op:
        """The operator that makes a tensor, fused if it was. Raises `RefusedError` where none does any more."""
        if tensor in self.edits.removed:
            raise RefusedError("removed", f"the identity that makes {tensor} was removed")
        inside = sorted(outer for outer, inner in self.edits.fused.items() if tensor in inner)
        if inside and tensor not in self.modes():
            raise RefusedError("fused", f"{tensor} is computed inside {', '.join(inside)}", hint=f"edit {inside[0]}")
        return effective(self.kind, self.edits, tensor)[0]

    def own(self, name: str) -> Op:
        """The operator of the kind that stands for the one of that name in the block that the action named."""
        return self.kind.ops[self.world.place_of[name][1]]

    def choices(self, op: Op) -> tuple[Choice, ...]:
        """What a kernel does along each axis."""
        return choices_of(op, self.edits, self.axes)

    def modes(self) -> Mapping[str, Mode]:
        """The kernels of the block."""
        return self.world.modes(self.kind, self.edits, self.axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A read of a value: where, of which tensor, how the value is made and how it is wanted there."""

    read: Read
    tensor: Tensor
    have: Spec
    wanted: Spec


def operator_site(world: World, state: State, action: Action, name: str = "") -> tuple[Site, Op]:
    """The site of an action on an operator (default: its target), and the operator of the graph that stands for it.
    Blocks that `only` picks out become a kind of their own."""
    blocks = world.blocks(state.alike)
    kind, label, op = world.representative(blocks, name or action.target)
    number = kind.ops.index(op)
    site = _apart(world, state, blocks, kind, label, action.only)
    return site, site.kind.ops[number]


def tensor_site(world: World, state: State, action: Action) -> tuple[Site, Tensor]:
    """The site of an action on a tensor, and the tensor of the kind's representative that stands for it: in the block
    of the `reader` if there is one, else in the block that makes or, for a leaf, first reads it."""
    graph, blocks = world.graph, world.blocks(state.alike)
    tensor = world.tensor(action.target)
    if action.reader not in ("", LEAVES):
        name = action.reader
    elif tensor.name in graph.producer:
        name = graph.producer[tensor.name].name
    else:
        name = graph.consumers[tensor.name][0][0].name
    _, label, _ = world.representative(blocks, name)
    back = {actual: own for own, actual in blocks.rename[label].items()}
    if tensor.name not in back:
        raise RefusedError("not-read", f"{action.reader} does not read {tensor.name}")
    site, _ = operator_site(world, state, action, name)
    own = blocks.rename[site.kind.blocks[0]][back[tensor.name]]
    return site, replace(tensor, name=own)


def edges_of(site: Site, tensor: str, reader: str = "") -> list[Edge]:
    """The reads of a tensor in the block of a site, by its representative's names: of one reader only, or where it
    leaves the block (`LEAVES`), or all of these."""
    modes = site.modes()
    lies = {
        port.name: site.state.boundary[site.blocks.port_group[(site.kind.name, port.name)]]
        for port in (*site.kind.inputs, *site.kind.outputs)
    }
    made = {port.name: lies[port.name] for port in site.kind.inputs} | {n: mode.out for n, mode in modes.items()}
    found = []
    for read, operand, stands in reads_of(site.kind, site.edits, modes):
        name, index = read
        asked = reader in ("", LEAVES if index == EXIT else name)
        if operand.name == tensor and asked:
            wanted = lies[name] if index == EXIT else modes[name].operands[index]
            found.append(Edge(read=read, tensor=operand, have=made[stands], wanted=wanted))
    return found


def _apart(world: World, state: State, blocks: Blocks, kind: BlockKind, label: str, only: str) -> Site:
    """The site in those blocks of a kind that `only` picks; the first of them stands for the label if it is not in."""
    if only:
        labels = pick(state, kind, label, only)
        if labels != kind.blocks:
            alike = set_apart(state, blocks, kind.name, labels)
            new = world.blocks(alike)
            state, blocks = regrouped(state, blocks, new), new
            label = label if label in labels else labels[0]
            kind = blocks.by_name[blocks.kind_of[label]]
    return Site(world=world, state=state, blocks=blocks, kind=kind, label=label)


def pick(state: State, kind: BlockKind, label: str, only: str) -> tuple[str, ...]:
    """The blocks of a kind that `only` names, in program order. Raises `RefusedError` where none is of that kind."""
    every = {name for labels in state.stages for name in labels}
    wanted: set[str] = set()
    for part in only.split(","):
        found = _RANGE.fullmatch(part)
        if part == THIS:
            wanted.add(label)
        elif part in every:
            wanted.add(part)
        elif part.startswith("stage:") and part[6:].isdecimal() and int(part[6:]) < len(state.stages):
            wanted.update(state.stages[int(part[6:])])
        elif found and f"{found[1]}{found[2]}" in every and int(found[3]) < 10**6:
            wanted.update(f"{found[1]}{number}" for number in range(int(found[2]), int(found[3]) + 1))
        else:
            raise unknown("block", part, [THIS, "stage:0", *every])
    labels = tuple(name for name in kind.blocks if name in wanted)
    if not labels:
        raise RefusedError("other-kind", f"no block of {only} is laid like {label}")
    return labels
