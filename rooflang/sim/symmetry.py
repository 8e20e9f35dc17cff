"""Ranks that a symmetric cluster cannot tell apart, found on the graph of ranks, groups and links before any operator.

A program built with one operator per class of ranks (or of communication groups) and one resource per class of links
has exactly the timeline of the program with all ranks: operators of a class wait for the same set of classes and use
the same set of link classes, and the links of a class serve the same number of users of each class. What the partition
needs is that a class looks alike to every other class, which colour refinement reaches by splitting until nothing
changes: a slow GPU, an uneven group or an odd link splits exactly the classes that can notice it. The cost does not
depend on the number of layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rooflang.errors import GraphError


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Items in classes. Classes are numbered by their smallest member, which represents them."""

    class_of: tuple[int, ...]
    representative: tuple[int, ...]
    count: tuple[int, ...]

    @classmethod
    def of(cls, keys: Iterable[Hashable]) -> Partition:
        """Items with equal keys in one class."""
        numbers: dict[Hashable, int] = {}
        class_of: list[int] = []
        representative: list[int] = []
        for item, key in enumerate(keys):
            number = numbers.setdefault(key, len(numbers))
            if number == len(representative):
                representative.append(item)
            class_of.append(number)
        counts = Counter(class_of)
        return cls(
            class_of=tuple(class_of),
            representative=tuple(representative),
            count=tuple(counts[number] for number in range(len(representative))),
        )

    def __len__(self) -> int:
        """How many classes there are."""
        return len(self.representative)


#: (rank class, link class, count)
Share = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankClasses:
    """The coarsest partition of ranks, links and groups (one partition per kind of group) that is stable.

    `groups` and `link_of` are those that were given. A *team* is a group of some kind, or without a kind a rank by
    itself. To build one operator per class of teams: give it, for each `(rank class, link class, count)` of its
    `shares`, one component on the resource of that link class with `count` times the cap, which is what the members of
    that rank class in all teams of the class together ask of one such link.
    """

    ranks: Partition
    links: Partition
    kinds: Mapping[str, Partition]
    groups: Mapping[str, Sequence[Sequence[int]]]
    link_of: Mapping[str, Sequence[int]]

    def teams(self, kind: str | None) -> tuple[Partition, Sequence[Sequence[int]]]:
        """The classes of the teams of a kind, and the ranks of each team."""
        if kind is None:
            return self.ranks, [(rank,) for rank in range(len(self.ranks.class_of))]
        return self.kinds[kind], self.groups[kind]

    def members(self, kind: str | None) -> tuple[tuple[int, ...], ...]:
        """For each class of teams: the rank classes of its members, each once, in order of position."""
        partition, teams = self.teams(kind)
        rank_class = self.ranks.class_of
        return tuple(
            tuple(dict.fromkeys(rank_class[rank] for rank in teams[team])) for team in partition.representative
        )

    def shares(self, kind: str | None, role: str, positions: slice = slice(None)) -> tuple[tuple[Share, ...], ...]:
        """For each class of teams: (rank class, link class, members of that rank class on one link of that class) in
        `role`, counting the members at some positions only."""
        partition, teams = self.teams(kind)
        of_rank, link_class, shown = self.link_of[role], self.links.class_of, self.links.representative
        counts: Counter[tuple[int, int, int]] = Counter()
        for number, team in zip(partition.class_of, teams):
            for rank in team[positions]:
                link = of_rank[rank]
                if link >= 0 and shown[link_class[link]] == link:
                    counts[number, self.ranks.class_of[rank], link_class[link]] += 1
        found: list[list[Share]] = [[] for _ in range(len(partition))]
        for (number, rank_class, link), count in sorted(counts.items()):
            found[number].append((rank_class, link, count))
        return tuple(tuple(shares) for shares in found)


def rank_classes(
    colours: Sequence[Hashable],
    groups: Mapping[str, Sequence[Sequence[int]]],
    links: Mapping[str, Sequence[int]],
    *,
    ordered: Collection[str] = (),
    link_colours: Sequence[Hashable] = (),
) -> RankClasses:
    """Partition the ranks, the groups and the links.

    `colours[rank]` is all that tells ranks apart by themselves (stage, device, clock); `groups[kind]` lists the groups
    of a kind by their ranks, and for the kinds in `ordered` the position counts (sender, receiver);
    `links[role][rank]` is the link that a rank uses in a role (egress, the node's shared NIC), -1 for none;
    `link_colours[link]`, if given, tells links apart (bandwidth). Raises `GraphError` if a rank or link does not
    exist, or if a rank is in two groups of one class: the rank would run their operators one after the other, so that
    they are not alike; name two kinds instead.
    """
    _check(len(colours), groups, links)
    used = max((link for of_rank in links.values() for link in of_rank), default=-1) + 1
    link_keys: Sequence[Hashable] = link_colours if link_colours else [None] * used
    if len(link_keys) < used:
        raise GraphError(f"link {used - 1} has no colour", expected=f"{used} link colours", where="link_colours")
    classes = RankClasses(
        ranks=Partition.of(colours),
        links=Partition.of(link_keys),
        kinds={kind: Partition.of([0] * len(of_kind)) for kind, of_kind in groups.items()},
        groups=groups,
        link_of=links,
    )
    while True:
        finer = _refine(classes, frozenset(ordered))
        if _size(finer) == _size(classes):
            _check_disjoint(classes)
            return classes
        classes = finer


def _size(classes: RankClasses) -> int:
    return len(classes.ranks) + len(classes.links) + sum(len(kind) for kind in classes.kinds.values())


def _refine(classes: RankClasses, ordered: frozenset[str]) -> RankClasses:
    """One round: links and groups by their ranks, then ranks by their groups and links. It only splits."""
    rank_class = classes.ranks.class_of
    users: list[list[tuple[str, int]]] = [[] for _ in classes.links.class_of]
    for role, link_of in classes.link_of.items():
        for rank, link in enumerate(link_of):
            if link >= 0:
                users[link].append((role, rank_class[rank]))
    links = Partition.of((old, tuple(sorted(users[link]))) for link, old in enumerate(classes.links.class_of))
    kinds: dict[str, Partition] = {}
    member_of: list[list[tuple[str, int, int]]] = [[] for _ in rank_class]
    for kind, groups in classes.groups.items():
        of_rank = [[rank_class[rank] for rank in group] for group in groups]
        looks = [tuple(group if kind in ordered else sorted(group)) for group in of_rank]
        kinds[kind] = Partition.of(zip(classes.kinds[kind].class_of, looks))
        for number, group in zip(kinds[kind].class_of, groups):
            for position, rank in enumerate(group):
                member_of[rank].append((kind, position if kind in ordered else 0, number))
    link_class = [*links.class_of, -1]  # link -1 is no link
    used = [tuple(link_class[link_of[rank]] for link_of in classes.link_of.values()) for rank in range(len(rank_class))]
    ranks = Partition.of((old, tuple(sorted(member_of[rank])), used[rank]) for rank, old in enumerate(rank_class))
    return RankClasses(ranks=ranks, links=links, kinds=kinds, groups=classes.groups, link_of=classes.link_of)


def _check(ranks: int, groups: Mapping[str, Sequence[Sequence[int]]], links: Mapping[str, Sequence[int]]) -> None:
    for kind, of_kind in groups.items():
        for group in of_kind:
            if any(not 0 <= rank < ranks for rank in group) or len(set(group)) < len(group):
                raise GraphError(
                    f"group {tuple(group)} is not a set of ranks", where=kind, expected=f"different ranks below {ranks}"
                )
    for role, of_rank in links.items():
        if len(of_rank) != ranks:
            raise GraphError(f"{len(of_rank)} links for {ranks} ranks", where=role, expected="one link per rank, or -1")


def _check_disjoint(classes: RankClasses) -> None:
    for kind, groups in classes.groups.items():
        seen: set[tuple[int, int]] = set()
        for number, group in zip(classes.kinds[kind].class_of, groups):
            for rank in group:
                if (number, rank) in seen:
                    raise GraphError(
                        f"rank {rank} is in two groups that nothing tells apart",
                        where=kind,
                        expected="disjoint groups",
                        hint="name two kinds, so that their order on the rank's stream is part of the graph",
                    )
                seen.add((number, rank))
