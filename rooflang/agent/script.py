"""What a macro works with: questions about the placed graph, and primitives that leave its words in the journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rooflang.agent.actions import Action
from rooflang.agent.sites import LEAVES, Site, edges_of, pick
from rooflang.agent.state import EXIT
from rooflang.agent.wiring import fixed, source
from rooflang.errors import RefusedError
from rooflang.hw.mesh import AXIS_NAMES
from rooflang.ir.blocks import BlockKind
from rooflang.ir.cut import OWNER, Cut, CutKind
from rooflang.ir.layout import PRIMITIVE_OF, Choice
from rooflang.ir.op import Op
from rooflang.ir.tensor import Num, Tensor
from rooflang.place.connect import lead

if TYPE_CHECKING:
    from rooflang.agent.session import Session

#: Collectives that need no dim, as they always leave a value whole.
_WHOLE = ("all_gather", "all_reduce", "broadcast")


class Script:
    """A macro on its way: the session that it edits, and the words under which the journal lists what it does."""

    def __init__(self, session: Session, words: str) -> None:
        self.session = session
        self.words = words

    # -- questions ----------------------------------------------------------------------------------------------------

    @property
    def sizes(self) -> Mapping[str, Num]:
        """Extent of every dim."""
        return self.session.world.graph.sizes

    @property
    def labels(self) -> tuple[str, ...]:
        """Block labels in program order."""
        return self.session.placed.blocks.sequence

    @property
    def stage_of(self) -> dict[str, int]:
        """The stage of each block."""
        stages = self.session.placed.state.stages
        return {label: stage for stage, labels in enumerate(stages) for label in labels}

    def blocks_of(self, ops: str, only: str = "") -> list[tuple[Op, ...]]:
        """For each kind of block the operators that fit the pattern and still are kernels of their own, in program
        order; with `only`, those of the first block that it picks."""
        found = []
        for kind in self.session.placed.blocks.kinds:
            label = self._label(kind, only)
            if label is not None:
                site = self._site(kind)
                names = site.blocks.rename[label]
                modes = site.modes()
                members = (
                    self.session.world.graph.op_by_name[names[op.name]] for op in kind.ops if op.output.name in modes
                )
                found.append(tuple(op for op in members if fnmatchcase(op.name, ops)))
        return found

    def operators(self, ops: str, only: str = "") -> list[Op]:
        """The operators of `blocks_of`, one after the other."""
        return [op for members in self.blocks_of(ops, only) for op in members]

    def block(self, op: Op) -> list[Op]:
        """The operators of the block that an operator is in."""
        return [other for other in self.session.world.graph.ops if other.block == op.block]

    def choice(self, op: Op, axis: str, only: str = "") -> Choice:
        """What an operator does along an axis."""
        kind, _, own = self.session.world.representative(self.session.placed.blocks, op.name)
        return self._site(kind).choices(own)[self._axis(axis)]

    def leaves(self, pattern: str, only: str = "") -> list[Tensor]:
        """The leaves that fit a pattern, of the first block of each kind (that `only` picks)."""
        found = []
        for kind in self.session.placed.blocks.kinds:
            label = self._label(kind, only)
            if label is not None:
                names = self.session.placed.blocks.rename[label]
                actual = (self.session.world.tensor(names[leaf.name]) for leaf in kind.leaves)
                found += [leaf for leaf in actual if fnmatchcase(leaf.name, pattern)]
        return found

    def leading_to(self, target: str) -> list[Op]:
        """The operator of that name and all that it depends on in its block, in program order."""
        graph = self.session.world.graph
        if target not in graph.op_by_name:
            raise RefusedError("unknown-name", f"there is no operator {target!r}")
        wanted, block = {target}, graph.op_by_name[target].block
        for op in reversed(graph.ops):
            if op.name in wanted:
                makers = (graph.producer.get(t.name) for t in op.operands)
                wanted |= {maker.name for maker in makers if maker is not None and maker.block == block}
        return [op for op in graph.ops if op.name in wanted]

    def ports(self, ops: str) -> list[tuple[Tensor, bool]]:
        """(tensor, is it read by another block) of what passes out of blocks and may be laid otherwise; one of those
        that lie alike, of which the maker fits the pattern."""
        blocks = self.session.placed.blocks
        groups: dict[int, tuple[Tensor, bool]] = {}
        read = {blocks.port_group[kind.name, port.name] for kind in blocks.kinds for port in kind.inputs}
        for kind in blocks.kinds:
            stays = fixed(kind)
            for port in kind.outputs:
                group = blocks.port_group[kind.name, port.name]
                maker = self.session.world.graph.producer[port.name].name
                if port.name not in stays and fnmatchcase(maker, ops):
                    groups.setdefault(group, (port, group in read))
        return list(groups.values())

    def made(self, port: Tensor, axis: str) -> str:
        """How the maker of a port leaves it along an axis."""
        op = self.session.world.graph.producer[port.name]
        kind, _, own = self.session.world.representative(self.session.placed.blocks, op.name)
        site = self._site(kind)
        return site.modes()[source(site.edits, own.output.name)].out[self._axis(axis)]

    def lies(self, port: Tensor, axis: str) -> str:
        """How a port lies along an axis between the blocks."""
        op = self.session.world.graph.producer[port.name]
        kind, _, own = self.session.world.representative(self.session.placed.blocks, op.name)
        group = self.session.placed.blocks.port_group[kind.name, own.output.name]
        return self.session.placed.state.boundary[group][self._axis(axis)]

    # -- primitives ---------------------------------------------------------------------------------------------------

    def take(self, action: Action) -> None:
        """Take an action, in the macro's words. Raises as `Session.apply`."""
        self.session.apply(action, macro=self.words)

    def split(self, op: Op, dim: str, axis: str, only: str) -> None:
        """Cut an operator by a dim along an axis, if it is not cut so already."""
        now = self.choice(op, axis, only)
        if not (isinstance(now, Cut) and now.dim == dim and now.kind is not CutKind.ROUTE):
            self.take(Action(primitive="split_kernel", target=op.name, dim=dim, axis=axis, only=only))

    def dup(self, op: Op, axis: str, only: str) -> None:
        """Run an operator on every coordinate of an axis."""
        self.take(Action(primitive="dup_kernel", target=op.name, axis=axis, only=only))

    def route(self, op: Op, row: Cut, axis: str, only: str) -> None:
        """Turn the token cut of a dispatch or combine into the routed one."""
        dim = f"{row.dim}→{row.out}"
        self.take(Action(primitive="fuse_kernels", target=op.name, dim=dim, axis=axis, only=only))

    def merge(self, axis: str = "") -> None:
        """Merge wherever a value in pieces is wanted otherwise (on that axis; default: on all): each way becomes the
        shortest one, what makes a value smaller first."""
        wanted = None if not axis else {self._axis(each) for each in axis.split(",")}
        for kind in list(self.session.placed.blocks.kinds):
            for action in list(self._merges(kind, wanted)):
                self.take(action)

    def _merges(self, kind: BlockKind, axes: set[int] | None) -> Iterator[Action]:
        site = self._site(kind)
        name_of = {op.output.name: op.name for op in kind.ops}
        apart = kind.blocks[0]
        for tensor in dict.fromkeys([*(t.name for t in kind.inputs), *(op.output.name for op in kind.ops)]):
            for edge in edges_of(site, tensor):
                steps = site.edits.steps.get(edge.read, ())
                now = steps[-1].after if steps else edge.have
                ends = enumerate(zip(now, edge.wanted))
                free = tuple(have if _stays(number, have, want, axes) else want for number, (have, want) in ends)
                path = lead(tensor, now, free)
                if all(step.collective in ("slice", "broadcast") for step in path):
                    continue  # they come by themselves
                reader = LEAVES if edge.read[1] == EXIT else name_of[edge.read[0]]
                for step in path:
                    entry = step.after[step.axes[0]]
                    yield Action(
                        primitive=PRIMITIVE_OF[step.collective],
                        target=site.blocks.rename[apart][tensor],
                        dim="" if step.collective in _WHOLE else entry,
                        axis=",".join(AXIS_NAMES[number] for number in step.axes),
                        reader=reader,
                    )

    # -- parts --------------------------------------------------------------------------------------------------------

    def _site(self, kind: BlockKind) -> Site:
        placed = self.session.placed
        return Site(world=self.session.world, state=placed.state, blocks=placed.blocks, kind=kind, label=kind.blocks[0])

    def _label(self, kind: BlockKind, only: str) -> str | None:
        """The block that stands for a kind, or for those of it that `only` picks; None where it picks none."""
        if not only:
            return kind.blocks[0]
        try:
            return pick(self.session.placed.state, kind, kind.blocks[0], only)[0]
        except RefusedError:
            return None

    def _axis(self, name: str) -> int:
        names = [axis.name for axis in self.session.placed.state.mesh.axes]
        if name not in names:
            raise RefusedError("no-such-axis", f"the mesh has no axis {name!r}; it has {', '.join(names) or 'none'}")
        return names.index(name)


def _stays(axis: int, have: str, want: str, axes: set[int] | None) -> bool:
    """Is there nothing to merge on an axis: it is none of those asked for, or one coordinate has or wants it all?"""
    return OWNER in (have, want) or (axes is not None and axis not in axes)
