"""`lower`: a plan for block kinds becomes the operators that every stage really runs, transfers made explicit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rooflang.ir.blocks import Blocks
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Mode, Transfer
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
    `write` shares.
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
    stream: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A leaf that stays in a memory of each rank of a stage."""

    name: str
    tensor: Tensor
    spec: Spec
    stage: int
    tier: str = "hbm"


@dataclass(frozen=True, kw_only=True)
class PlacedGraph:
    """What `sim` runs: lifted operators in program order, residents, and the tensor record behind every value."""

    plan: Plan
    blocks: Blocks
    ops: tuple[LiftedOp, ...]
    residents: tuple[Resident, ...]
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


def lower(plan: Plan, blocks: Blocks) -> PlacedGraph:
    """Expand a plan over all blocks of all stages."""
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
        tensors=builder.tensors,
    )


class _Lowering:
    def __init__(self, plan: Plan, blocks: Blocks) -> None:
        self.plan = plan
        self.blocks = blocks
        self.ops: list[LiftedOp] = []
        self.residents: dict[tuple[str, Spec, int], Resident] = {}
        self.tensors: dict[str, Tensor] = {}
        self.made: set[Value] = set()
        self.home: dict[str, int] = {}

    def block(self, stage: int, label: str) -> None:
        kind = self.blocks.by_name[self.blocks.kind_of[label]]
        plan = self.plan.blocks[kind.name]
        names = self.blocks.rename[label]
        for op in kind.ops:
            mode = plan.modes.get(op.output.name)
            if mode is not None:
                self._kernel(stage, label, plan, mode, names)
        for tensor in kind.outputs:
            self._walk(stage, label, tensor, names[plan.source(tensor.name)], plan.exits.get(tensor.name, ()))
            self.home[names[tensor.name]] = stage

    def _kernel(self, stage: int, label: str, plan: BlockPlan, mode: Mode, names: Mapping[str, str]) -> None:
        reads = []
        for index, (tensor, spec) in enumerate(zip(mode.op.operands, mode.operands, strict=True)):
            actual = names[plan.source(tensor.name)]
            self.tensors.setdefault(actual, tensor)
            if actual not in self.blocks.graph.producer:
                if tensor.role in RESIDENT_ROLES:
                    tier = plan.tiers.get(tensor.name, "hbm")
                    self.residents.setdefault(
                        (actual, spec, stage),
                        Resident(name=actual, tensor=tensor, spec=spec, stage=stage, tier=tier),
                    )
                continue
            steps = plan.paths.get((mode.op.output.name, index), ())
            self._walk(stage, label, tensor, actual, steps)
            reads.append((actual, spec, stage))
        out = names[mode.op.output.name]
        self.tensors.setdefault(out, mode.op.output)
        in_place = op_kind(mode.op.kind).in_place
        write = (out, mode.out, stage)
        aliases = None
        if in_place is not None:
            aliases = (names[mode.op.operands[in_place].name], mode.operands[in_place], stage)
        self.ops.append(
            LiftedOp(
                name=out,
                kind="kernel",
                stage=stage,
                block=label,
                group=mode.op.group,
                tensor=mode.op.output,
                reads=tuple(reads),
                write=write,
                mode=mode,
                aliases=aliases,
            )
        )
        self.made.add(write)

    def _walk(self, stage: int, label: str, tensor: Tensor, actual: str, steps: tuple[Transfer, ...]) -> None:
        """Emit the transfers of a path that no earlier reader of this tensor has emitted already."""
        for step in steps:
            value = (actual, step.after, stage)
            if value not in self.made:
                self.ops.append(
                    LiftedOp(
                        name=f"{actual} {step.collective}",
                        kind="transfer",
                        stage=stage,
                        block=label,
                        group="slices" if step.free else "collectives",
                        tensor=tensor,
                        reads=((actual, step.before, stage),),
                        write=value,
                        transfer=step,
                        aliases=(actual, step.before, stage) if step.free else None,
                    )
                )
                self.made.add(value)

    def sends(self, stage: int) -> None:
        """Hand the ports that later stages read to the next stage; a port read further on is passed along."""
        later = {
            self.blocks.rename[label][port.name]: (label, port)
            for labels in self.plan.stages[stage + 1 :]
            for label in labels
            for port in self.blocks.by_name[self.blocks.kind_of[label]].inputs
        }
        for actual, (label, port) in later.items():
            if actual not in self.home:
                continue
            group = self.blocks.port_group[(self.blocks.kind_of[label], port.name)]
            spec = self.plan.boundary[group]
            value = (actual, spec, stage + 1)
            self.ops.append(
                LiftedOp(
                    name=f"{actual} send",
                    kind="send",
                    stage=stage,
                    block=self.plan.stages[stage][-1],
                    group="pipeline",
                    tensor=port,
                    reads=((actual, spec, stage),),
                    write=value,
                )
            )
            self.made.add(value)
