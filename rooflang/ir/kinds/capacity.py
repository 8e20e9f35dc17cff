"""Expert capacity (GShard, arXiv 2006.16668): of the tokens that choose an expert only the first `capacity` are taken.

Which ones are first depends on all tokens before: the count of a shard of tokens alone would keep others. Tokens stay
whole; only experts may be cut.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import Cut
from rooflang.ir.kinds.moe import expert_label
from rooflang.ir.kinds.rows import expect, expect_labels, par
from rooflang.ir.op import Op, OpKind, register


def _check(op: Op) -> None:
    expect(op, 1)
    gates = op.operands[0]
    expect_labels(op, gates.dims, op.output.dims, gates.name)
    if expert_label(op) not in gates.dims or len(gates.dims) < 2:
        raise GraphError(f"{op.name}: {gates.name} has the dims {' '.join(gates.dims)}", expected="tokens, experts")
    if op.attr("capacity", 0) < 1:
        raise GraphError(f"{op.name}: capacity={op.attr('capacity')}", expected="1 or more")


def _cuts(op: Op) -> tuple[Cut, ...]:
    return (par(op, expert_label(op)),)


def _refuses(op: Op) -> Mapping[str, str]:
    tokens = [d for d in op.output.dims if d != expert_label(op)]
    return dict.fromkeys(tokens, "which tokens an expert drops depends on how many came before, in other shards too")


register(
    OpKind(
        name="capped_gates",
        summary="gates of each expert's first tokens, 0 for those beyond its capacity",
        cuts=_cuts,
        attrs={"expert": (str,), "capacity": (int,)},
        refuses=_refuses,
        check=_check,
    )
)
