"""Blocks of the same structure: which layers of a graph are copies of each other, and what passes between blocks.

Everything that searches works on one representative per block kind; everything that runs works on all layers. A *port*
is a tensor that crosses block borders: an output port of one block feeds an input port of the next, so both lie over
the mesh in the same way. Ports that are connected, directly or through other blocks or by an operator that wants them
alike, form one port group with one spec.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

from rooflang.errors import GraphError
from rooflang.ir.graph import Graph
from rooflang.ir.op import Op, op_kind
from rooflang.ir.tensor import Tensor


@dataclass(frozen=True, kw_only=True)
class BlockKind:
    """One structure of block. `ops` are those of its first block; `inputs` and `outputs` are that block's ports.

    `blocks` lists the labels of all blocks of this kind in program order.
    """

    name: str
    ops: tuple[Op, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    blocks: tuple[str, ...]

    @cached_property
    def leaves(self) -> tuple[Tensor, ...]:
        """Weights, caches, states and inputs that the operators read; ports are not leaves."""
        made = {op.output.name for op in self.ops} | {t.name for t in self.inputs}
        return tuple({t.name: t for op in self.ops for t in op.operands if t.name not in made}.values())


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """A graph by blocks. `sequence` are block labels in program order, `kind_of` their kinds by name.

    `rename[label]` maps names of the representative's operators and tensors to those of block `label`.
    `port_group` maps (kind name, representative's port tensor name) to the number of its port group.
    """

    graph: Graph
    kinds: tuple[BlockKind, ...]
    sequence: tuple[str, ...]
    kind_of: Mapping[str, str]
    rename: Mapping[str, Mapping[str, str]]
    port_group: Mapping[tuple[str, str], int]

    @cached_property
    def by_name(self) -> dict[str, BlockKind]:
        return {k.name: k for k in self.kinds}

    @cached_property
    def leaf_readers(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """For each leaf of the graph who reads it: labels of blocks, with the representative's name of it."""
        found: dict[str, list[tuple[str, str]]] = {}
        for label in self.sequence:
            for leaf in self.by_name[self.kind_of[label]].leaves:
                found.setdefault(self.rename[label][leaf.name], []).append((label, leaf.name))
        return {actual: tuple(readers) for actual, readers in found.items()}

    @cached_property
    def shared_leaves(self) -> frozenset[tuple[str, str]]:
        """Leaves that several blocks read as one tensor, such as an embedding that the head reads again, by the names
        of kinds and representatives."""
        several = (readers for readers in self.leaf_readers.values() if len(readers) > 1)
        return frozenset((self.kind_of[label], leaf) for readers in several for label, leaf in readers)

    def counts(self, labels: tuple[str, ...] | None = None) -> dict[str, int]:
        """Number of blocks of each kind among `labels` (default: all)."""
        out = {k.name: 0 for k in self.kinds}
        for label in labels if labels is not None else self.sequence:
            out[self.kind_of[label]] += 1
        return out


def split_blocks(graph: Graph, *, alike: Sequence[Sequence[str]] = ()) -> Blocks:
    """Group the operators by block label and the blocks by structure.

    `alike` says which blocks stay of one kind, where some of a structure are to be laid otherwise than the rest: blocks
    in different groups are of different kinds.

    Raises `GraphError` where a block reads from one that comes after it, and for groups that are not those of kinds.
    """
    group_of = {label: number for number, labels in enumerate(alike) for label in labels}
    members: dict[str, list[Op]] = {}
    for op in graph.ops:
        members.setdefault(op.block, []).append(op)
    _check_order(graph, tuple(members))
    ports = {label: _ports(graph, label, ops) for label, ops in members.items()}
    groups: dict[Any, list[str]] = {}
    names: dict[str, tuple[str, ...]] = {}
    for label, ops in members.items():
        key, names[label] = _structure(ops, ports[label])
        groups.setdefault((key, group_of.get(label)), []).append(label)
    _check_alike(graph, alike, groups.values())
    kinds, rename, kind_of = [], {}, {}
    for index, labels in enumerate(groups.values()):
        first = labels[0]
        kind = BlockKind(
            name=_kind_name(first, index, members),
            ops=tuple(members[first]),
            inputs=ports[first][0],
            outputs=ports[first][1],
            blocks=tuple(labels),
        )
        kinds.append(kind)
        for label in labels:
            kind_of[label] = kind.name
            rename[label] = dict(zip(names[first], names[label], strict=True))
    sequence = tuple(members)
    return Blocks(
        graph=graph,
        kinds=tuple(kinds),
        sequence=sequence,
        kind_of=kind_of,
        rename=rename,
        port_group=_port_groups(kinds, kind_of, rename),
    )


def _check_order(graph: Graph, sequence: Sequence[str]) -> None:
    """A block runs as a whole, so that none may read what a later one makes."""
    number = {label: index for index, label in enumerate(sequence)}
    for op in graph.ops:
        for tensor in op.operands:
            maker = graph.producer.get(tensor.name)
            if maker is not None and number[maker.block] > number[op.block]:
                raise GraphError(
                    f"{op.name} of block {op.block!r} reads {tensor.name} of block {maker.block!r}, "
                    "which comes after it",
                    where=graph.name,
                    expected="blocks in an order in which each comes after those that it reads from",
                )


def _check_alike(graph: Graph, alike: Sequence[Sequence[str]], found: Collection[Sequence[str]]) -> None:
    """Each group is all of one kind."""
    if alike and sorted(map(tuple, alike)) != sorted(map(tuple, found)):
        raise GraphError(
            "blocks that are to be laid alike are no copies of each other, or some are left out or named twice",
            where=graph.name,
            expected="groups of " + ", ".join(" ".join(labels[:3]) for labels in found),
        )


def _kind_name(label: str, index: int, labels: Collection[str]) -> str:
    """The label of the first block; one that no block has for the operators outside all blocks."""
    return label or next(name for number in count(index) if (name := f"block{number}") not in labels)


def _ports(graph: Graph, label: str, ops: list[Op]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    own = {op.output.name for op in ops}
    inputs = {t.name: t for op in ops for t in op.operands if t.name not in own and t.name in graph.producer}
    outputs = {
        op.output.name: op.output
        for op in ops
        if op.output.name in graph.outputs
        or any(user.block != label for user, _ in graph.consumers.get(op.output.name, ()))
    }
    return tuple(inputs.values()), tuple(outputs.values())


def _structure(ops: list[Op], ports: tuple[tuple[Tensor, ...], tuple[Tensor, ...]]) -> tuple[Any, tuple[str, ...]]:
    """A hashable key that equal structures share, and the names in the order the key numbers them."""
    number: dict[str, int] = {}

    def ident(tensor: Tensor) -> tuple[Any, ...]:
        index = number.setdefault(tensor.name, len(number))
        # Inputs of the graph may be shared by all blocks (token ids): they are numbered like any other name.
        return (index, replace(tensor, name=""))

    key = []
    for op in ops:
        shape = (op.kind, op.attrs, op.group, op.compute)
        key.append((shape, tuple(ident(t) for t in op.operands), ident(op.output)))
    borders = tuple(tuple(number[t.name] for t in side) for side in ports)
    names = tuple(number) + tuple(op.name for op in ops if op.name not in number)
    return (tuple(key), borders), names


def _port_groups(
    kinds: list[BlockKind], kind_of: Mapping[str, str], rename: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, str], int]:
    """Union-find: two ports are one group when some block's tensor is both, or when an operator wants them alike."""
    owner: dict[str, tuple[str, str]] = {}
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def find(port: tuple[str, str]) -> tuple[str, str]:
        while parent.setdefault(port, port) != port:
            port = parent[port]
        return port

    for kind in kinds:
        for label in kind.blocks:
            for tensor in (*kind.inputs, *kind.outputs):
                port = (kind.name, tensor.name)
                actual = rename[label][tensor.name]
                other = owner.setdefault(actual, port)
                parent[find(port)] = find(other)
        names = {tensor.name for tensor in kind.inputs}
        for op in kind.ops:
            ports = [(kind.name, t.name) for t in op.operands if t.name in names and op_kind(op.kind).alike]
            for port in ports[1:]:
                parent[find(port)] = find(ports[0])
    roots: dict[tuple[str, str], int] = {}
    return {port: roots.setdefault(find(port), len(roots)) for port in list(parent)}
