"""The ranks of a placed graph in classes, with their teams, devices and links; every rank its own class on demand."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rooflang.cost.tiers import lane_bytes_per_s
from rooflang.hw.cluster import Cluster
from rooflang.hw.mesh import Mesh
from rooflang.sim.fabric import Fabric, Lane, fabric
from rooflang.sim.fleet import Override
from rooflang.sim.remote import lane_name
from rooflang.sim.symmetry import Partition, RankClasses, rank_classes
from rooflang.sim.traffic import Axes, Traffic

#: The kind of group that joins a rank of a stage with the same rank of the next one.
HOP = "hop"

#: (rank class, link class, how many ranks of a team class share one such link, slowness)
Load = tuple[int, int, int, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Team:
    """A class of teams that run an operator together: one rank, the group of a collective, a sender with its receiver.

    `members` are rank classes, each once; `shares[lane]` is what the team loads of each link.
    """

    members: tuple[int, ...]
    shares: Mapping[Lane, tuple[Load, ...]]
    extra_s: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranks:
    """Rank classes with what the builder asks about them.

    Of every class: `stage`, `count`, `colour` (what its device is and what shards it holds), `owns[axis]` (whether it
    is the first coordinate). `alone[c]` is the team of a rank of class c by itself; `teams[kind]` are the classes of
    groups and `team_of[kind][c]` the one that class c is in (-1: none).
    """

    stage: tuple[int, ...]
    count: tuple[int, ...]
    representative: tuple[int, ...]
    colour: tuple[int, ...]
    owns: tuple[Mapping[int, bool], ...]
    alone: tuple[Team, ...]
    teams: Mapping[str, tuple[Team, ...]]
    team_of: Mapping[str, tuple[int, ...]]
    link_names: tuple[str, ...]
    class_of: tuple[int, ...]

    def of_stage(self, stage: int) -> tuple[int, ...]:
        """The classes of a stage."""
        return tuple(c for c, s in enumerate(self.stage) if s == stage)

    def name(self, number: int) -> str:
        """A class in words: `stage 0` when it is the whole stage, else with its first rank and their number."""
        whole = len(self.of_stage(self.stage[number])) == 1
        if whole:
            return f"stage {self.stage[number]}"
        count = f" and {self.count[number] - 1} like it" if self.count[number] > 1 else ""
        return f"stage {self.stage[number]}, gpu {self.representative[number]}{count}"


def kind_of(axes: Axes) -> str:
    """The name of the kind of groups along some axes."""
    return " ".join(map(str, axes))


@lru_cache(maxsize=64)
def ranks_of(
    cluster: Cluster,
    mesh: Mesh,
    stages: int,
    traffic: Traffic,
    colour: tuple[int, ...],
    overrides: tuple[Override, ...] = (),
    tiers: tuple[Lane, ...] = (),
    explicit: bool = False,
) -> Ranks:
    """Classes of the ranks of all stages; with `explicit` each rank is one.

    `colour[rank]` is all that tells ranks apart by themselves besides their stage. A collective loads both directions
    of a port alike, so one of them stands for both unless something else loads them unevenly.
    """
    uneven = traffic.sends or bool(tiers) or bool(overrides)
    lanes = tuple(
        (level.name, direction)
        for level in cluster.levels
        for direction in (("out", "in") if uneven else ("out",))
        if level.size > 1
    )
    links = fabric(cluster, (*lanes, *tiers), overrides)
    owns = _owners(mesh, traffic.owners)
    keys = [(rank // mesh.gpus, colour[rank], owns[rank % mesh.gpus]) for rank in range(mesh.gpus * stages)]
    groups = _groups(mesh, stages, traffic)
    found = _classes(keys, groups, links, explicit)
    rates = {lane: lane_bytes_per_s(cluster, lane_name(lane), mesh.gpus) for lane in links.of_lane}
    return _described(found, links, rates, mesh, colour, traffic, owns)


def _owners(mesh: Mesh, axes: Axes) -> list[tuple[bool, ...]]:
    """For every rank of the mesh, whether it is the first on each of these axes."""
    names = [mesh.axes[axis].name for axis in axes]
    if not names:
        return [()] * mesh.gpus
    places = (mesh.coordinates(mesh.first + rank) for rank in range(mesh.gpus))
    return [tuple(place[name] == 0 for name in names) for place in places]


def _groups(mesh: Mesh, stages: int, traffic: Traffic) -> dict[str, list[tuple[int, ...]]]:
    groups = {
        kind_of(axes): [
            group
            for stage in range(stages)
            for group in mesh.stage(stage).groups([mesh.axes[axis].name for axis in axes])
        ]
        for axes in traffic.teams
    }
    if traffic.sends:
        groups[HOP] = [(rank, rank + mesh.gpus) for rank in range(mesh.gpus * (stages - 1))]
    return groups


def _classes(
    keys: list[tuple[int, int, tuple[bool, ...]]],
    groups: Mapping[str, list[tuple[int, ...]]],
    links: Fabric,
    explicit: bool,
) -> RankClasses:
    colours: list[Hashable] = list(keys)
    if not explicit:
        return rank_classes(colours, groups, links.roles, ordered=[HOP], link_colours=links.colours())
    return RankClasses(
        ranks=Partition.of(range(len(keys))),
        links=Partition.of(range(len(links.names))),
        kinds={kind: Partition.of(range(len(of_kind))) for kind, of_kind in groups.items()},
        groups=groups,
        link_of=links.roles,
    )


def _described(
    found: RankClasses,
    links: Fabric,
    rates: Mapping[Lane, float],
    mesh: Mesh,
    colour: tuple[int, ...],
    traffic: Traffic,
    owns: list[tuple[bool, ...]],
) -> Ranks:
    first = found.ranks.representative
    kinds = tuple(found.kinds)
    teams = {kind: _teams(found, links, rates, kind) for kind in kinds}
    team_of: dict[str, list[int]] = {kind: [-1] * len(first) for kind in kinds}
    for kind in kinds:
        for number, team in enumerate(teams[kind]):
            for member in team.members if kind != HOP else team.members[:1]:
                team_of[kind][member] = number
    return Ranks(
        stage=tuple(rank // mesh.gpus for rank in first),
        count=found.ranks.count,
        representative=first,
        colour=tuple(colour[rank] for rank in first),
        owns=tuple(dict(zip(traffic.owners, owns[rank % mesh.gpus])) for rank in first),
        alone=_teams(found, links, rates, None),
        teams=teams,
        team_of={kind: tuple(numbers) for kind, numbers in team_of.items()},
        link_names=tuple(links.names[link] for link in found.links.representative),
        class_of=found.ranks.class_of,
    )


def _teams(found: RankClasses, links: Fabric, rates: Mapping[Lane, float], kind: str | None) -> tuple[Team, ...]:
    """The classes of groups of a kind; without a kind, every rank class by itself. `rates` are those, in bytes/s, at
    which lanes take the time that costs say."""
    partition, groups = found.teams(kind)
    shares: list[dict[Lane, tuple[Load, ...]]] = [{} for _ in partition.representative]
    for lane, roles in links.of_lane.items():
        # A hop is a sender and a receiver: only the sender's way out and the receiver's way in are its own.
        ends = {"out": slice(0, 1), "in": slice(1, 2)}.get(lane[1], slice(0)) if kind == HOP else slice(None)
        for role in roles:
            for number, of_team in enumerate(found.shares(kind, role, ends)):
                for member, link, count in of_team:
                    speed = links.bytes_per_s[found.links.representative[link]]
                    load = (member, link, count, rates[lane] / speed)
                    shares[number][lane] = (*shares[number].get(lane, ()), load)
    return tuple(
        Team(members=members, shares=shares[number], extra_s=_extra(links, groups[partition.representative[number]]))
        for number, members in enumerate(found.members(kind))
    )


def _extra(links: Fabric, group: Sequence[int]) -> dict[str, float]:
    """Latency that detours of any member add, by level; levels without detours are absent."""
    extra: dict[str, float] = {}
    for (level, _), by_rank in links.extra_s.items():
        longest = max(by_rank[rank] for rank in group)
        if longest > 0:
            extra[level] = max(extra.get(level, 0.0), longest)
    return extra
