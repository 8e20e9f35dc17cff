"""set_memory: a tensor is placed in a memory."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.hw.cluster import Cluster
from rooflang.hw.levels import Tier
from rooflang.ir.tensor import Role, Tensor
from rooflang.rules.record import Exactness, Ok, Refusal, Rule, Verdict

NAME = "set_memory"


def check(tensor: Tensor, memory: Tier, sizes: Mapping[str, int], *, taken_bytes: float = 0.0) -> Verdict:
    """May `tensor`, with dims of these extents, lie in `memory`, of which `taken_bytes` are taken? `Ok` carries the
    tier's name.
    """
    needed_bytes = tensor.bytes(sizes)
    free_bytes = memory.capacity_bytes - taken_bytes
    if needed_bytes > free_bytes:
        reason = f"{tensor.name} needs {needed_bytes:.3e} bytes, {memory.name} has {max(free_bytes, 0.0):.3e} left"
        return Refusal(code="no-room", reason=reason)
    return Ok(result=memory.name)


def _example(entries: int) -> Verdict:
    cache = Tensor(name="kv", dims=("context", "width"), dtype="fp8", role=Role.KV_CACHE)
    return check(cache, Cluster.of("b300", 8).tier("hbm"), {"context": entries, "width": 512})


RULE = Rule(
    name=NAME,
    summary="choose the memory that a tensor lies in",
    before="x in m",
    after="x in m′",
    why="memories keep bits; how fast they are read is a matter of cost",
    preconditions=("the memory has room for the tensor beside what lies in it",),
    exactness=Exactness.EXACT,
    evidence="tensors that are taken one after the other never exceed the memory, by one byte neither",
    check=check,
    fires=lambda: _example(65536),
    refused=lambda: _example(2**40),
)
