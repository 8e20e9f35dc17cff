"""How an operator may be cut along a mesh axis, and how a value may be laid over one.

A *spec* says how a value lies over the mesh, one entry per axis: replicated, partial (the axis' values still have to be
combined), owned by the first coordinate, or the label of the dim that the axis cuts. A *cut* is one row of an
operator's dims signature: which label of each operand the axis cuts, and how the value that comes out lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

#: One entry per mesh axis, outermost axis first.
Spec = tuple[str, ...]

REPLICATED = "R"
PARTIAL = "P"
OWNER = "O"

#: Spec entries that are not a dim label. Labels are lower case, so that they never collide.
STATES = frozenset({REPLICATED, PARTIAL, OWNER})


class CutKind(StrEnum):
    """What joins the pieces again. PAR and ROUTE are exact; the others re-associate a reduction."""

    PAR = "par"  # gather along the output's label
    SUM = "sum"  # add the partial outputs
    FOLD = "fold"  # combine partial states with the named monoid (log-sum-exp, top-k, argmax)
    STAT = "stat"  # all-reduce a summary inside the operator, then go on locally
    SCAN = "scan"  # ordered exclusive prefix of states
    LINEAR = "linear"  # a linear operator passes partial values through
    ROUTE = "route"  # dispatch or combine fused with its all-to-all


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One way to cut an operator along one axis.

    `operands[i]` is the label of operand i that the axis cuts, or `REPLICATED` / `PARTIAL`; `out` likewise for the
    output. An operand that is replicated although it has a label that the cut shrinks is sliced where it is read.
    `loops` are the labels whose loop extent shrinks. `combine` names the monoid of a FOLD. `stat_bytes` is, for a STAT,
    the summary's bytes per row of the labels `stat_rows`. `partial_scale` is how much larger a partial output is than
    the output it becomes (log-sum-exp statistics beside the values). `multiple_of` is the alignment that each shard of
    `dim` must keep. `grouped` are two labels that are cut together, members and groups: a group has ⌈M/G⌉ consecutive
    members, and its rank has them all, so that even shards are whole groups only where G divides M.
    """

    kind: CutKind
    dim: str
    operands: tuple[str, ...]
    out: str
    loops: tuple[str, ...] = ()
    combine: str = "sum"
    stat_rows: tuple[str, ...] = ()
    stat_bytes: float = 0.0
    partial_scale: float = 1.0
    multiple_of: int = 1
    grouped: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """True when the cut keeps every floating-point operation; else equality holds over the reals."""
        return self.kind in (CutKind.PAR, CutKind.ROUTE)


@lru_cache(maxsize=4096)
def replicated(spec: Spec) -> Spec:
    """A spec with every coordinate of an axis where it had its owner only."""
    return tuple(REPLICATED if entry == OWNER else entry for entry in spec)


def show_spec(spec: Spec) -> str:
    """A spec as text: `batch,R`. An empty spec (no mesh axis) shows as `-`."""
    return ",".join(spec) if spec else "-"
