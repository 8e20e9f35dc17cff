"""What collectives cost on a hierarchical fabric, by level.

Notation: a group of W ranks spans fabric levels with sizes w_1 (innermost) … w_L, W = Π w_l; each rank drives β_l
bytes/s on level l. `bytes` is the logical tensor T over the whole group, except for an all-to-all, where it is what
one rank holds.

Hierarchical (physical): each level carries what has to cross it, levels overlap, the slowest counts. A ring or an
in-switch gather moves T·(w_1−1)/w_1 inside a domain; across domains every rank brings only its share,
T/w_1·(w_2−1)/w_2, and so on (the rail-aligned algorithm of NCCL). What crosses a spine crosses the NICs
too. An all-reduce is a reduce-scatter and an all-gather; with `switch_reduction` the scale-up switch adds, and each
port carries (w_1+1)/w_1 of T (NVLink SHARP).
A gather fills the port of its one receiver as an all-gather fills all ports, and a scatter that of its sender; through
a broadcast, and a reduce, every port passes all of T on.

Bottleneck (paper): volume V over one effective bandwidth. V = (W−1)/W·T, twice for an all-reduce, T for a broadcast or
a reduce; inside one domain the bandwidth is a rank's NVLink rate, across domains the number of participants in a domain
times their NIC rate, at most the NVLink rate (the RoofLang paper, section on collectives, and its authors' released
presets).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rooflang.assumptions import Assumptions
from rooflang.hw.cluster import Cluster
from rooflang.ir.tensor import Num

#: Passes over the data: an all-reduce is two, everything else one.
_PASSES = {"all_reduce": 2.0}

#: What passes all of the tensor through every port, the own share too.
_WHOLE = ("broadcast", "reduce")


def _levels(cluster: Cluster, group: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """(name, ranks, bytes/s) of the levels that the group spans, innermost first."""
    return [(lv.name, group[lv.name], lv.bytes_per_s) for lv in cluster.levels if group.get(lv.name, 1) > 1]


def latency_s(cluster: Cluster, group: Mapping[str, int]) -> float:
    """α: the longest path latency among the participants, that of the outermost level spanned."""
    return max((lv.latency_s for lv in cluster.levels if group.get(lv.name, 1) > 1), default=0.0)


def through_nics(cluster: Cluster, seconds: dict[str, Num]) -> dict[str, Num]:
    """Seconds per level, when what goes over a spine takes its time on the level between domains as well: both are one
    link of the NIC."""
    if len(cluster.levels) < 3 or cluster.levels[2].name not in seconds:
        return seconds
    out, spine = cluster.levels[1:]
    both = seconds.get(out.name, 0.0) + seconds[spine.name] * (spine.bytes_per_s / out.bytes_per_s)
    return {**seconds, out.name: both}


def all_to_all(cluster: Cluster, group: Mapping[str, int], bytes_per_rank: Num) -> dict[str, Num]:
    """Seconds per level when each rank sends an equal part of its bytes to every rank of the group, itself included."""
    out: dict[str, Num] = {}
    total = math.prod(group.values())
    inner = 1
    for name, size, rate in _levels(cluster, group):
        out[name] = bytes_per_rank * ((inner * size - inner) / total) / rate
        inner *= size
    return through_nics(cluster, out)


def neighbour(cluster: Cluster, group: Mapping[str, int], bytes_per_rank: Num) -> dict[str, Num]:
    """Seconds per level when each rank sends its bytes to the next one of the group."""
    return through_nics(cluster, {name: bytes_per_rank / rate for name, _, rate in _levels(cluster, group)})


def collective(
    cluster: Cluster, group: Mapping[str, int], name: str, tensor_bytes: Num, assumptions: Assumptions
) -> dict[str, Num]:
    """Seconds per level of an all_gather, gather, scatter, reduce_scatter, all_reduce, reduce or broadcast of a tensor
    of T bytes."""
    levels = _levels(cluster, group)
    passes = _PASSES.get(name, 1.0)
    if not levels:
        return {}
    if assumptions.collective == "bottleneck":
        cap = cluster.level(levels[-1][0]).domain_cap_bytes_per_s
        return _bottleneck(levels, passes * tensor_bytes, cap, whole=name in _WHOLE)
    out: dict[str, Num] = {}
    share = tensor_bytes
    for depth, (level, size, rate) in enumerate(levels):
        through = passes * ((size - 1) / size if name not in _WHOLE else 1.0)
        if name == "all_reduce" and depth == 0 and assumptions.switch_reduction and level == cluster.levels[0].name:
            through = min(through, (size + 1) / size)
        out[level] = share * through / rate
        share = share / size
    return through_nics(cluster, out)


def _bottleneck(levels: Sequence[tuple[str, int, float]], moved: Num, cap: float, *, whole: bool) -> dict[str, Num]:
    total = math.prod(size for _, size, _ in levels)
    name, _, rate = levels[-1]
    if len(levels) > 1:
        inner = math.prod(size for _, size, _ in levels[:-1])
        rate = min(levels[0][2], inner * rate, cap)
    return {name: moved * (1.0 if whole else (total - 1) / total) / rate}
