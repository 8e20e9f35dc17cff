"""`lower`: a plan for block kinds becomes the operators that every stage really runs, transfers made explicit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rooflang.cost.tiers import HBM, Tiers
from rooflang.errors import PlacementError
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import Spec, show_spec
from rooflang.ir.layout import Mode, Transfer, source_of
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import RESIDENT_ROLES, Tensor
from rooflang.place.plan import BlockPlan, Plan

#: A tensor in one spec on one stage.
Value = tuple[str, Spec, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftedOp:
    """One operator as all ranks of a stage run it: a kernel, a collective, or a send to the next stage.

    Exactly one of `mode`, `transfer` is set, or neither for a send. `tensor` is what it writes, by the
    representative's record; `reads` and `write` are values by their actual names. `aliases` is the value whose memory
    `write` shares. `tiers` says which operands of the mode lie in a memory other than HBM.
    """

    name: str
    kind: str
    stage: int
    block: str
    group: str
    tensor: Tensor
    reads: tuple[Value, ...]
    write: Value
    mode: Mode | None = None
    transfer: Transfer | None = None
    aliases: Value | None = None
    tiers: Tiers = ()
    stream: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A leaf that stays in a memory of each rank of a stage."""

    name: str
    tensor: Tensor
    spec: Spec
    stage: int
    tier: str = HBM


@dataclass(frozen=True, kw_only=True)
class PlacedGraph:
    """What `sim` runs: lifted operators in program order, and the leaves that they read.

    `residents` stay; `inputs` are there when the step begins and until their last reader ends, laid out as it reads
    them. `outputs` are the values that the step leaves behind.
    """

    plan: Plan
    blocks: Blocks
    ops: tuple[LiftedOp, ...]
    residents: tuple[Resident, ...]
    inputs: Mapping[Value, Tensor]
    outputs: frozenset[Value]


def lower(plan: Plan, blocks: Blocks) -> PlacedGraph:
    """Expand a plan over all blocks of all stages. Raises `PlacementError` where a block would run before another one
    that it reads from."""
    builder = _Lowering(plan, blocks)
    for stage, labels in enumerate(plan.stages):
        for label in labels:
            builder.block(stage, label)
        builder.sends(stage)
    return PlacedGraph(
        plan=plan,
        blocks=blocks,
        ops=tuple(builder.ops),
        residents=tuple(builder.residents.values()),
        inputs=builder.inputs,
        outputs=frozenset(builder.outputs),
    )


def lower_block(plan: Plan, blocks: Blocks, kind: BlockKind, there: Mapping[Value, Tensor]) -> PlacedGraph:
    """The first block of a kind alone, on stage 0, its input ports and the values `there` having been made before it:
    they are its inputs beside those of the graph. Blocks of a kind differ from it in names, and in what is there."""
    builder = _Lowering(plan, blocks)
    ports = {(t.name, plan.boundary[blocks.port_group[(kind.name, t.name)]], 0): t for t in kind.inputs}
    builder.made.update(ports, there)
    builder.block(0, kind.blocks[0])
    return PlacedGraph(
        plan=plan,
        blocks=blocks,
        ops=tuple(builder.ops),
        residents=tuple(builder.residents.values()),
        inputs={**ports, **there, **builder.inputs},
        outputs=frozenset(),
    )


class _Lowering:
    def __init__(self, plan: Plan, blocks: Blocks) -> None:
        self.plan = plan
        self.blocks = blocks
        self.ops: list[LiftedOp] = []
        self.residents: dict[Value, Resident] = {}
        self.inputs: dict[Value, Tensor] = {}
        self.outputs: set[Value] = set()
        self.made: set[Value] = set()
        self._ports: set[str] = set()
        #: The operand that stands for the output of each identity that was removed, by actual names.
        self._operand: dict[str, str] = {}

    def block(self, stage: int, label: str) -> None:
        kind = self.blocks.by_name[self.blocks.kind_of[label]]
        plan = self.plan.blocks[kind.name]
        names = self.blocks.rename[label]
        self._operand.update({names[name]: names[operand] for name, operand in plan.aliases.items()})
        for op in kind.ops:
            mode = plan.modes.get(op.output.name)
            if mode is not None:
                self._kernel(stage, label, plan, mode)
        for tensor in kind.outputs:
            actual = source_of(self._operand, names[tensor.name])
            self._walk(stage, label, tensor, actual, plan.exits.get(tensor.name, ()))
            self._ports.add(names[tensor.name])
            if names[tensor.name] in self.blocks.graph.outputs:
                spec = self.plan.boundary[self.blocks.port_group[(kind.name, tensor.name)]]
                self.outputs.add(self._there((actual, spec, stage), tensor.name))

    def _there(self, value: Value, reader: str) -> Value:
        """The value, which has to have been made."""
        if value not in self.made:
            actual, spec, stage = value
            raise PlacementError(
                f"{reader} reads {actual} laid {show_spec(spec)} on stage {stage}, where nothing has made it yet",
                where=self.plan.origin,
                expected="blocks in an order in which each comes after those that it reads from",
            )
        return value

    def _kernel(self, stage: int, label: str, plan: BlockPlan, mode: Mode) -> None:
        op, names = mode.op, self.blocks.rename[label]
        out = names[op.output.name]
        reads = []
        for index, (tensor, spec) in enumerate(zip(op.operands, mode.operands, strict=True)):
            actual = source_of(self._operand, names[tensor.name])
            value, path = (actual, spec, stage), plan.paths.get((op.output.name, index), ())
            made = actual in self.blocks.graph.producer
            if not made:
                reads += self._leaf((actual, plan.rests(op.output.name, index), stage), plan.tier(tensor.name))
            if made or path:
                self._walk(stage, label, tensor, actual, path)
                reads.append(self._there(value, out))
        known = op_kind(op.kind)
        place = 0 if known.range else known.in_place
        self._emit(
            LiftedOp(
                name=out,
                kind="kernel",
                stage=stage,
                block=label,
                group=op.group,
                tensor=op.output,
                reads=tuple(reads),
                write=(out, mode.out, stage),
                mode=mode,
                stream=self.plan.streams.get(out, 0),
                aliases=None
                if place is None
                else (source_of(self._operand, names[op.operands[place].name]), mode.operands[place], stage),
                tiers=plan.tiers_of(mode),
            )
        )

    def _leaf(self, value: Value, tier: str) -> list[Value]:
        """Note a leaf, once however many operators read it; it is a value that is read if it does not stay."""
        actual, spec, stage = value
        tensor = self.blocks.graph.tensors[actual]
        if tensor.role in RESIDENT_ROLES:
            self.residents.setdefault(value, Resident(name=actual, tensor=tensor, spec=spec, stage=stage, tier=tier))
            return []
        self.inputs[value] = tensor
        return [value]

    def _emit(self, op: LiftedOp) -> None:
        self.ops.append(op)
        self.made.add(op.write)

    def _walk(self, stage: int, label: str, tensor: Tensor, actual: str, steps: tuple[Transfer, ...]) -> None:
        """Emit the transfers of a path that no earlier reader of this tensor has emitted already. What rests is there
        without having been made."""
        for step in steps:
            value, before = (actual, step.after, stage), (actual, step.before, stage)
            if value not in self.made:
                rests = before in self.residents and before not in self.made
                self._emit(
                    LiftedOp(
                        name=f"{actual} {step.collective}",
                        kind="transfer",
                        stage=stage,
                        block=label,
                        group="slices" if step.free else "collectives",
                        tensor=tensor,
                        reads=() if rests else (self._there(before, f"{step.collective} of {actual}"),),
                        write=value,
                        transfer=step,
                        stream=self.plan.streams.get(f"{actual} {step.collective}", 0),
                        aliases=before if step.free else None,
                    )
                )

    def sends(self, stage: int) -> None:
        """Hand the ports that later stages read to the next stage; a port read further on is passed along."""
        later = {
            self.blocks.rename[label][port.name]: (label, port)
            for labels in self.plan.stages[stage + 1 :]
            for label in labels
            for port in self.blocks.by_name[self.blocks.kind_of[label]].inputs
        }
        for name, (label, port) in later.items():
            group = self.blocks.port_group[(self.blocks.kind_of[label], port.name)]
            actual, spec = source_of(self._operand, name), self.plan.boundary[group]
            value = (actual, spec, stage + 1)
            if name not in self._ports or value in self.made:
                continue
            self._emit(
                LiftedOp(
                    name=f"{actual} send",
                    kind="send",
                    stage=stage,
                    block=self.plan.stages[stage][-1],
                    group="pipeline",
                    tensor=port,
                    reads=(self._there((actual, spec, stage), "send"),),
                    write=value,
                )
            )
