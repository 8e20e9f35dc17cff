"""How large a model is: parameters, those that a token meets, and bytes of cache for each token of a context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rooflang.ir.graph import Graph
from rooflang.ir.tensor import Role, Tensor
from rooflang.models.hf import Decoder
from rooflang.models.measure import met
from rooflang.models.registry import Model
from rooflang.models.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Parameters, multi-token prediction and vision left out; `embedding` and `head` are those of the two tables at the
    ends, 0 for a head that is tied to the embedding. The active ones are those that a token meets, both tables among
    them. `stored` has the parameters by dtype.

    A request keeps `kv_bytes_per_token` for each token of its context, once windows are full, and `kept_bytes` whatever
    its context: full windows and recurrent states.
    """

    parameters: float
    active: float
    embedding: float
    head: float
    stored: Mapping[str, float]
    kv_bytes_per_token: float
    kept_bytes: float

    @property
    def words(self) -> str:
        """Shares of the parameters by dtype, the largest first; those below 0.1% left out."""
        shares = {dtype: found / self.parameters for dtype, found in self.stored.items()}
        shown = sorted(((share, dtype) for dtype, share in shares.items() if share >= 0.001), reverse=True)
        return ", ".join(f"{share:.1%} {dtype}" for share, dtype in shown)


def counts(model: Model) -> Counts:
    """The sizes of a model. Of layers that are alike, one is built."""
    short, times = _one_of_each(model)
    half = model.max_context // 2
    graphs = [short.build(Workload(stage="decode", context=context, batch=1)) for context in (half, 2 * half)]
    total = active = embedding = head = 0.0
    stored: dict[str, float] = {}
    for weight, share in met(graphs[0]):
        elements = _times(times, weight) * weight.elements(graphs[0].sizes)
        total += elements
        active += share * elements
        stored[weight.dtype] = stored.get(weight.dtype, 0.0) + elements
        embedding += elements * (weight.name == "embed.table")
        head += elements * (weight.name == "head.head_w")
    first, second = (_kept(graph, times) for graph in graphs)
    growth = (second - first) / half
    return Counts(
        parameters=total,
        active=active,
        embedding=embedding,
        head=head,
        stored=stored,
        kv_bytes_per_token=growth,
        kept_bytes=second - growth * 2 * half,
    )


def _kept(graph: Graph, times: Mapping[str, int]) -> float:
    """Bytes of caches and states."""
    leaves = [leaf for leaf in graph.leaves if leaf.role in (Role.KV_CACHE, Role.STATE)]
    return float(sum(_times(times, leaf) * leaf.bytes(graph.sizes) for leaf in leaves))


def _times(times: Mapping[str, int], leaf: Tensor) -> int:
    """How many layers have this tensor."""
    return times.get(leaf.name.rpartition(".")[0], 1)


def _one_of_each(model: Model) -> tuple[Model, dict[str, int]]:
    """The model with one layer of each sort, and how many of them there are, by block; all layers, and none, else."""
    if not isinstance(model.config, Decoder):
        return model, {}
    sorts = Counter(model.config.stack)
    times = {f"layers.{i}": count for i, count in enumerate(sorts.values())}
    return replace(model, config=replace(model.config, stack=tuple(sorts))), times
