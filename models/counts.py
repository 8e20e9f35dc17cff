"""How large a model is: parameters, those that a token meets, and bytes of cache for each token of a context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rooflang.ir.tensor import Role
from rooflang.models.hf import Decoder
from rooflang.models.measure import kv_footprint_bytes, met
from rooflang.models.registry import Model
from rooflang.models.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Parameters, multi-token prediction and vision left out; `embedding` and `head` are those of the two tables at the
    ends, 0 for a head that is tied to the embedding. The active ones are those that a token meets, both tables among
    them. `stored` has the parameters by dtype."""

    parameters: float
    active: float
    embedding: float
    head: float
    stored: Mapping[str, float]

    @property
    def words(self) -> str:
        """Shares of the parameters by dtype, the largest first; those below 0.1% left out."""
        shares = {dtype: found / self.parameters for dtype, found in self.stored.items()}
        shown = sorted(((share, dtype) for dtype, share in shares.items() if share >= 0.001), reverse=True)
        return ", ".join(f"{share:.1%} {dtype}" for share, dtype in shown)


def counts(model: Model) -> Counts:
    """The parameters of a model. Of layers that are alike, one is built."""
    short, times = _one_of_each(model)
    graph = short.build(Workload(stage="decode", context=1, batch=1))
    total = active = embedding = head = 0.0
    stored: dict[str, float] = {}
    for weight, share in met(graph):
        block = weight.name.rpartition(".")[0]
        elements = times.get(block, 1) * weight.elements(graph.sizes)
        total += elements
        active += share * elements
        stored[weight.dtype] = stored.get(weight.dtype, 0.0) + elements
        embedding += elements * (weight.name == "embed.table")
        head += elements * (weight.name == "head.head_w")
    return Counts(parameters=total, active=active, embedding=embedding, head=head, stored=stored)


def kv_bytes_per_token(model: Model) -> float:
    """Bytes by which the cache of a request grows with each token of its context, once windows are full."""
    half = model.max_context // 2
    return (_kept_bytes(model, 2 * half) - _kept_bytes(model, half)) / half


def kept_bytes(model: Model) -> float:
    """Bytes that a request keeps whatever its context: full windows and recurrent states."""
    longest = model.max_context // 2 * 2
    return _kept_bytes(model, longest) - kv_bytes_per_token(model) * longest


def _kept_bytes(model: Model, context: int) -> float:
    short, times = _one_of_each(model)
    graph = short.build(Workload(stage="decode", context=context, batch=1))
    if not times:
        return kv_footprint_bytes(graph)
    kept = [leaf for leaf in graph.leaves if leaf.role in (Role.KV_CACHE, Role.STATE)]
    return float(sum(times[leaf.name.rpartition(".")[0]] * leaf.bytes(graph.sizes) for leaf in kept))


def _one_of_each(model: Model) -> tuple[Model, dict[str, int]]:
    """The model with one layer of each sort, and how many of them there are, by block; all layers, and none, else."""
    if not isinstance(model.config, Decoder):
        return model, {}
    sorts = Counter(model.config.stack)
    times = {f"layers.{i}": count for i, count in enumerate(sorts.values())}
    return replace(model, config=replace(model.config, stack=tuple(sorts))), times
