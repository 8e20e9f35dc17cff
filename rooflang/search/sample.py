"""What of a plan is evaluated: one block of every kind, and of kernels that are alike in everything the first one.

Blocks are chained as in the graph, each reading what the one before left at the port. A kernel that has the operator,
the cuts, and the paths to its operands and from its output of another one, names aside, makes the same of the same: it
is left out, and who reads it is given a random value instead, laid as it would lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rooflang.ir.blocks import Blocks
from rooflang.ir.cut import PARTIAL
from rooflang.ir.graph import Graph
from rooflang.ir.kinds.recall import RECALL
from rooflang.ir.layout import Mode, Transfer, source_of
from rooflang.ir.lifted import Laid
from rooflang.ir.op import Op
from rooflang.ir.tensor import Role, Tensor
from rooflang.ir.verify import verify
from rooflang.place.plan import Plan

Path = tuple[Transfer, ...]


class Sample:
    """The operators to evaluate, and how they are laid; all names are those of the kinds' representatives."""

    def __init__(self, plan: Plan, blocks: Blocks) -> None:
        self.blocks = blocks
        self.ops: list[Op] = []
        self.modes: dict[str, Mode] = {}
        self.paths: dict[tuple[str, int], Path] = {}
        self.exits: dict[str, Path] = {}
        self.aliases: dict[str, str] = {}
        at_port: dict[int, Tensor] = {}
        for kind in blocks.kinds:
            block = plan.blocks[kind.name]
            feed = {t.name: at_port[blocks.port_group[(kind.name, t.name)]] for t in kind.inputs}
            self.ops += [_fed(op, feed) for op in kind.ops]
            for name, mode in block.modes.items():
                self.modes[name] = replace(mode, op=_fed(mode.op, feed))
            self.paths.update(block.paths)
            self.exits.update(block.exits)
            self.aliases.update({name: feed[t].name if t in feed else t for name, t in block.aliases.items()})
            for tensor in kind.outputs:
                at_port[blocks.port_group[(kind.name, tensor.name)]] = tensor
        self._drop_repeated()

    def graph(self) -> Graph:
        """The sample as a graph of its own; what nothing in it reads comes out."""
        full = self.blocks.graph
        used = {label for op in self.ops for label in op.labels}
        read = {t.name for op in self.ops for t in op.operands}
        outputs = tuple(op.output.name for op in self.ops if op.output.name not in read)
        dims = tuple(d for d in full.dims if d.label in used)
        return verify(Graph(name=f"sample of {full.name}", dims=dims, ops=tuple(self.ops), outputs=outputs))

    def laid(self, axis_sizes: Sequence[int]) -> Laid:
        """How the sample lies, on a mesh of so many coordinates an axis."""
        return Laid(axis_sizes=axis_sizes, modes=self.modes, paths=self.paths, exits=self.exits, aliases=self.aliases)

    def _drop_repeated(self) -> None:
        """Leave out kernels that are alike; partial values cannot be given, they have to be made."""
        seen: set[object] = set()
        kept: dict[str, Mode] = {}
        for name, mode in self.modes.items():
            key = self._shape(name, mode)
            if key not in seen or PARTIAL in mode.out:
                kept[name] = mode
            seen.add(key)
        covered: set[str] = set()
        while len(more := {cover for mode in kept.values() for cover in mode.covers}) > len(covered):
            # What a kernel covers stays in the graph: where another kernel makes it, that one has to run, too.
            covered = more
            kept = {name: mode for name, mode in self.modes.items() if name in kept or name in covered}
        moved = {op.name for op in self.ops if op.output.name in self.aliases}
        wanted = covered | moved | self._recomputed()
        ops = [op for op in self.ops if op.name in wanted]
        made = {op.output.name for op in ops}
        given = {op.output.name: replace(op.output, role=Role.INPUT) for op in self.ops if op.output.name not in made}
        self.ops = [_fed(op, given) for op in ops]
        self.modes = {name: replace(mode, op=_fed(mode.op, given)) for name, mode in kept.items()}
        self.paths = {key: path for key, path in self.paths.items() if key[0] in kept}
        self.exits = {name: path for name, path in self.exits.items() if source_of(self.aliases, name) in kept}

    def _recomputed(self) -> set[str]:
        """Operators that no kernel runs because what they make is kept: they say what the cache holds."""
        run = {cover for mode in self.modes.values() for cover in mode.covers}
        idle = {op.output.name: op for op in self.ops if op.name not in run}
        stack = [op.operands[0].name for op in self.ops if op.kind == RECALL]
        found: set[str] = set()
        while stack:
            op = idle.pop(stack.pop(), None)
            if op is not None:
                found.add(op.name)
                stack += [tensor.name for tensor in op.operands]
        return found

    def _shape(self, name: str, mode: Mode) -> object:
        """All that a kernel's result depends on, without names."""
        paths = [self.paths.get((name, index), ()) for index in range(len(mode.op.operands))]
        steps = [[(s.collective, s.before, s.after) for s in path] for path in (*paths, self.exits.get(name, ()))]
        return (_nameless(mode.op), mode.choices, str(steps))


def _nameless(op: Op) -> object:
    """An operator without its name and those of its tensors; which operands are the same tensor still shows."""
    number = {name: n for n, name in enumerate(dict.fromkeys(t.name for t in op.operands))}
    operands = tuple((number[t.name], replace(t, name="")) for t in op.operands)
    attrs = tuple((key, _nameless(value) if isinstance(value, Op) else value) for key, value in op.attrs)
    return (op.kind, attrs, operands, replace(op.output, name=""))


def _fed(op: Op, feed: Mapping[str, Tensor]) -> Op:
    """The operator with other tensors in the place of some, inside fused operators too."""
    attrs: Iterator[tuple[str, Any]] = (
        (key, _fed(value, feed) if isinstance(value, Op) else value) for key, value in op.attrs
    )
    return replace(op, operands=tuple(feed.get(t.name, t) for t in op.operands), attrs=tuple(attrs))
