"""insert_identity: a resident tensor is kept in another memory tier; the move between tiers is the identity on
values.
"""

from __future__ import annotations

from collections.abc import Iterable

from rooflang.ir.tensor import RESIDENT_ROLES, Role, Tensor
from rooflang.rules.record import Egglog, Exactness, Ok, Refusal, Rule, Verdict
from rooflang.rules.theory import TIERS, Shape, Theory

NAME = "insert_identity"

_CACHE = Tensor(name="kv", dims=("batch", "context", "width"), dtype="fp8", role=Role.KV_CACHE)


def check(tensor: Tensor, tier: str, *, dtype: str = "") -> Verdict:
    """May `tensor` be kept in memory `tier`, stored as `dtype` (default: as it is)? `Ok` carries the tier."""
    if dtype and dtype != tensor.dtype:
        reason = f"storing {tensor.name} as {dtype} instead of {tensor.dtype} changes its values; a move is bit-exact"
        return Refusal(code="lossy", reason=reason)
    if tensor.role not in RESIDENT_ROLES:
        reason = f"{tensor.name} is a {tensor.role.value}: only weights, caches and states rest between steps"
        return Refusal(code="not-resident", reason=reason)
    if tier not in TIERS:
        return Refusal(code="no-such-tier", reason=f"memory tier {tier!r} is none of {', '.join(TIERS)}")
    return Ok(result=tier)


def facts(theory: Theory) -> Iterable[str]:
    """`(Resident leaf)` for leaves that may rest elsewhere, `(Tier code)` for the tiers beside HBM."""
    for number, leaf in enumerate(theory.kind.leaves):
        if isinstance(check(leaf, TIERS[1]), Ok):
            yield f"(Resident {number})"
    yield from (f"(Tier {code})" for code in range(1, len(TIERS)))


def rules(shape: Shape) -> tuple[str, ...]:
    return (f"(rule ((= e (Leaf n)) (Resident n) (Tier c)) ((union e (Move c e))) :ruleset {NAME})",)


RULE = Rule(
    name=NAME,
    summary="keep a weight, cache or state in DRAM or on NVMe and fetch it when it is read",
    before="x",
    after="to_hbm(to_dram(x)), or by way of NVMe",
    why="a move copies bits: to_hbm(x) = to_dram(x) = to_nvme(x) = x",
    preconditions=("a weight, KV cache or state", "the dtype stays: a cast that loses bits is no identity"),
    exactness=Exactness.EXACT,
    evidence="numbers of every dtype come back from every tier bit by bit; what a cast would lose is refused",
    check=check,
    fires=lambda: check(_CACHE, "dram"),
    refused=lambda: check(_CACHE, "dram", dtype="fp4"),
    egglog=Egglog(rules=rules, facts=facts),
)
