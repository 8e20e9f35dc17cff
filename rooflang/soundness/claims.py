"""What each rule claims: properties that hold on every example if the rule is sound."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rooflang.errors import UnknownNameError
from rooflang.ir.cut import OWNER, REPLICATED
from rooflang.ir.layout import Choice
from rooflang.ir.op import Op
from rooflang.rules import dedup_kernel, dup_kernel, rule_names
from rooflang.rules.record import Ok
from rooflang.soundness.cases import case_names, cases_of, example, the_op
from rooflang.soundness.egraphs import Saturations
from rooflang.soundness.fusions import Fusions, Routes
from rooflang.soundness.identities import Copies, Tiers
from rooflang.soundness.joints import Joints
from rooflang.soundness.merges import LAW_OF, Merges
from rooflang.soundness.orders import AddedEdges, Owned, RemovedEdges, RemovedMoves, Repeated
from rooflang.soundness.places import Devices, Memories
from rooflang.soundness.programs import Programs
from rooflang.soundness.search import Property
from rooflang.soundness.splits import Splits


def _everywhere(op: Op) -> Sequence[Choice]:
    return [REPLICATED] if isinstance(dup_kernel.check(op), Ok) else []


def _at_owner(op: Op) -> Sequence[Choice]:
    return [OWNER] if isinstance(dedup_kernel.check(op), Ok) else []


def _able(choices: Callable[[Op], Sequence[Choice]]) -> tuple[str, ...]:
    return tuple(name for name in case_names() if choices(the_op(example(name))))


_CLAIMS: dict[str, Callable[[], tuple[Property, ...]]] = {
    "set_compute": lambda: (Devices(),),
    "set_memory": lambda: (Memories(),),
    "add_control_edge": lambda: (AddedEdges(),),
    "remove_control_edge": lambda: (RemovedEdges(),),
    "insert_identity": lambda: (Tiers(),),
    "remove_identity": lambda: (Copies(), RemovedMoves(), Saturations(names=("copied", "decode"))),
    "fuse_kernels": lambda: (
        Fusions(),
        Routes(),
        Joints(),
        Saturations(names=("mlp", "moe", "gated", "shared")),
        Programs(),
    ),
    "split_kernel": lambda: (Splits(), Merges.of("slice"), Merges.of("keep_owner"), Saturations()),
    "dup_kernel": lambda: (Repeated(), Splits(cases=_able(_everywhere), choices=_everywhere)),
    "dedup_kernel": lambda: (Owned(), Splits(cases=_able(_at_owner), choices=_at_owner), Merges.of("dedup_kernel")),
}


def claims(rule: str) -> tuple[Property, ...]:
    """The claims of a rule. Raises `UnknownNameError`."""
    if rule in _CLAIMS:
        return _CLAIMS[rule]()
    if rule not in LAW_OF:
        raise UnknownNameError("rule", rule, rule_names())
    weights = (Saturations(names=("mlp", "moe", "gated"), gathered=True),) if rule == "merge_gather_broadcast" else ()
    return (Merges.of(rule), *weights)


def claims_of_kind(kind: str) -> tuple[Property, ...]:
    """The claim of an operator kind: each of its cases, however it is cut. None for a kind without cuts."""
    names = [name for name in cases_of(kind) if Splits().choices(the_op(example(name)))]
    return (Splits(cases=tuple(names)),) if names else ()
