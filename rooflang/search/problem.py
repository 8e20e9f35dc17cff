"""What is to be laid out where: a graph, a cluster, a stage, the sizes of batch to try."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from rooflang.assumptions import Assumptions, profile
from rooflang.cost.model import CostModel, peaks_needed
from rooflang.errors import GraphError, HardwareError, RefusedError, ValueRangeError
from rooflang.hw import Cluster, Mesh
from rooflang.ir.blocks import Blocks, split_blocks
from rooflang.ir.graph import Graph
from rooflang.ir.joint import Joint, Rewriting, shared_inputs
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import Num
from rooflang.ir.verify import verify
from rooflang.models import Model, Workload, load
from rooflang.models.measure import weight_bytes
from rooflang.models.workload import Stage
from rooflang.place.certificate import apart_of, kinds_of
from rooflang.place.plan import Plan
from rooflang.units import whole

BATCH, SEQ = "batch", "seq"

#: Largest batch that is tried when the user names none: far above what any cluster here can hold.
LARGEST_BATCH = 2**24


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One optimisation or simulation task. A model's graph is built for one request; `cost` takes any batch size.

    `tokens` is how many tokens each request gains or reads in a step: those of the workload, on average those that are
    accepted where some are drafted, and for a graph that was given as such the extent of its dim `seq`, 1 where it has
    none. `alike` are the blocks that are laid alike, where that is not all of one structure (`split_blocks`); `apart`
    what is taken apart before anything is laid (`rooflang.ir.apart`), and which products that share their input are one
    too (`rooflang.ir.joint`).
    """

    name: str
    graph: Graph
    cluster: Cluster
    assumptions: Assumptions
    tokens: float
    stage: str
    context: int
    alike: tuple[tuple[str, ...], ...] = ()
    apart: tuple[Rewriting, ...] = ()

    @classmethod
    def of(
        cls,
        model: str | Path | Model | Graph,
        *,
        hardware: str | Path | Cluster,
        gpus: int = 0,
        stage: str = "decode",
        context: int = 0,
        assumptions: str | Assumptions = "physical",
    ) -> Problem:
        """From a model's name, a `config.json`, a `.rl` graph file, or records. Raises a typed error for what does
        not fit together."""
        taken = assumptions if isinstance(assumptions, Assumptions) else profile(assumptions)
        cluster = hardware if isinstance(hardware, Cluster) else Cluster.of(hardware, gpus)
        if isinstance(model, (str, Path)) and str(model).endswith(".rl"):
            from rooflang.ir.text import read

            model = read(Path(model))
        if isinstance(model, Graph):
            _check_plain(model, taken)
            graph, name = verify(model), model.name
            tokens: float = model.sizes.get(SEQ, 1)
            stage = "prefill" if SEQ in model.sizes else "decode"
        else:
            known = model if isinstance(model, Model) else load(model)
            workload = Workload(stage=cast(Stage, stage), context=context, batch=1)  # refuses other stages
            graph, name = known.build(workload, taken), known.name
            tokens = taken.accepted_tokens if taken.draft_tokens else workload.tokens
        _check_used(graph)
        _check_peaks(graph, cluster)
        return cls(
            name=name,
            graph=graph,
            cluster=cluster,
            assumptions=taken,
            tokens=tokens,
            stage=stage,
            context=context,
        )

    @cached_property
    def blocks(self) -> Blocks:
        return split_blocks(self.laid, alike=self.alike)

    @cached_property
    def laid(self) -> Graph:
        """The graph with what is taken apart and joined."""
        graph = self.graph
        for each in self.apart:
            graph = each.of(graph)
        return graph

    def sharing(self) -> Problem:
        """The problem in which products that share their input may be one kernel."""
        found = tuple(shared_inputs(self.blocks))
        return replace(self, apart=(*self.apart, *found)) if found else self

    @cached_property
    def unjoined(self) -> Problem:
        """The problem without joint products."""
        return self._joining(())

    def of_plan(self, plan: Plan) -> Problem:
        """The problem without joint products that a plan of it does not run."""
        return self._joining({name for block in plan.blocks.values() for name in block.modes})

    def _joining(self, names: Collection[str]) -> Problem:
        """The problem with those of its joint products that have one of these names."""
        kept = tuple(each for each in self.apart if not isinstance(each, Joint) or each.name in names)
        return self if kept == self.apart else replace(self, apart=kept)

    def for_script(self, script: Mapping[str, Any]) -> Problem:
        """The problem with what a certificate takes apart, and its blocks in the kinds that it names, if they can be:
        else it stays as it is, and `replay` says what is wrong. Raises `PlacementError` for what is no certificate."""
        alike, apart = kinds_of(script), apart_of(script)
        if apart == self.apart and alike == tuple(kind.blocks for kind in self.blocks.kinds):
            return self
        key = (alike, apart)
        if key not in self._variants:
            self._variants[key] = self._as_asked(alike, apart)
        return self._variants[key]

    @cached_property
    def _variants(self) -> dict[object, Problem]:
        """The problems that scripts of this one asked for: plans of a search ask for few."""
        return {}

    def _as_asked(self, alike: tuple[tuple[str, ...], ...], apart: tuple[Rewriting, ...]) -> Problem:
        other = replace(self, alike=alike, apart=apart)
        try:
            return other if other.blocks else self
        except (GraphError, RefusedError):
            return self

    @property
    def has_room(self) -> bool:
        """Is there room for the weights in the HBM of all GPUs together?"""
        return weight_bytes(self.graph) <= self.cluster.gpus * self.cluster.device.hbm_bytes

    @property
    def has_batch(self) -> bool:
        """Whether the graph has a batch dim that can be resized."""
        return BATCH in self.graph.sizes

    @property
    def own_batch(self) -> int:
        """The batch size that the graph is written with: 1 for a model, and for a graph without a batch dim."""
        return self.graph.sizes.get(BATCH, 1)

    def check_batch(self, batch: int) -> int:
        """The batch size, if the graph can have it. Raises `ValueRangeError`."""
        if whole(batch, where="--batch", least=None) < 1:
            raise ValueRangeError(f"batch {batch}", where="--batch", expected="at least 1")
        if batch > 1 and not self.has_batch:
            raise ValueRangeError(
                f"batch {batch}, but {self.name} has no dim {BATCH!r}", where="--batch", expected="1, or none at all"
            )
        return int(batch)

    def cost(self, mesh: Mesh, batch: Num) -> CostModel:
        """Costs on one rank of the mesh; `batch`, if the graph has one, may be an array of batch sizes."""
        return CostModel.of(self.laid, self.cluster, mesh, self.assumptions, batch=batch)


def _check_plain(graph: Graph, assumptions: Assumptions) -> None:
    """A graph says itself what one step is: drafts and images are for those who build one."""
    for flag, asked in (("--draft-tokens", assumptions.draft_tokens), ("--images", assumptions.images)):
        if asked:
            raise ValueRangeError(
                f"{asked} in a step of the graph {graph.name}",
                where=flag,
                expected="a model, or a graph that has them in it",
            )


def _check_used(graph: Graph) -> None:
    """What nothing uses would be priced by some searches and left out by others."""
    for op in graph.ops:
        name = op.output.name
        if op_kind(op.kind).pure and name not in graph.consumers and name not in graph.outputs:
            raise GraphError(
                f"{op.name} makes {name!r}, which nothing reads and which is no output",
                where=graph.name,
                hint="name it as an output, or leave the operator out",
            )
    if not graph.ops:
        raise GraphError("there is no operator", where=graph.name)


def _check_peaks(graph: Graph, cluster: Cluster) -> None:
    missing = sorted(peaks_needed(graph) - set(cluster.device.peaks))
    if missing:
        raise HardwareError(
            f"{cluster.device.name} has no peak rate for {', '.join(missing)}, which {graph.name} computes in",
            where="--hardware",
            expected="a device with peaks for " + ", ".join(sorted(peaks_needed(graph))),
        )
