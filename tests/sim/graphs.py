"""Random programs, and random symmetric clusters with the programs that run on them, rank by rank or class by class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from rooflang.sim.program import CAP_ONE, Program, ProgramBuilder
from rooflang.sim.symmetry import RankClasses, rank_classes

CAPS = [CAP_ONE, CAP_ONE, CAP_ONE // 2, CAP_ONE // 3, CAP_ONE * 2 // 3, CAP_ONE // 7]
GIB = 2**30


def dyadic_s(rng: Random) -> float:
    """Short times on a coarse grid, so that events often coincide; sometimes zero."""
    return rng.choice([0, 1, 2, 3, 4, 5, 8, 12]) / 16


def random_program(rng: Random, duration_s: Callable[[Random], float] = dyadic_s, largest: int = 25) -> Program:
    """A random DAG with streams, shared resources, partial caps, trailing latencies and tensors."""
    builder = ProgramBuilder()
    resources = [builder.add_resource(f"resource {number}") for number in range(rng.randint(1, 5))]
    memories = [
        builder.add_memory(f"memory {number}", 4 * GIB, [("weights", rng.randint(0, GIB))])
        for number in range(rng.randint(1, 3))
    ]
    ops: list[int] = []
    followers: dict[int, list[int]] = {}
    for number in range(rng.randint(1, largest)):
        used = rng.sample(resources, rng.randint(0, len(resources)))
        after = rng.sample(ops, rng.randint(0, min(3, len(ops))))
        for before in after:
            followers[before].append(number)
        followers[number] = [number]
        ops.append(
            builder.add_op(
                f"op {number}",
                after=after,
                stream=rng.sample(["a", "b", "c", "d"], rng.randint(0, 2)),
                components=[(r, duration_s(rng), rng.choice(CAPS), rng.random() < 0.5) for r in used],
                alpha_s=rng.choice([0.0, duration_s(rng)]),
            )
        )
    for number in range(rng.randint(0, 2 * len(ops))):
        producer = rng.choice([-1, *ops])
        readers = followers.get(producer, ops)
        consumers = rng.sample(readers, rng.randint(0, min(3, len(readers))))
        builder.add_tensor(f"tensor {number}", rng.choice(memories), rng.randint(0, GIB), producer, consumers)
    return builder.build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Ranks with a clock factor each, groups of several kinds, and the links that ranks use in several roles."""

    slowness: list[float]
    groups: dict[str, list[list[int]]]
    links: dict[str, list[int]]
    link_slowness: list[float]

    def classes(self) -> RankClasses:
        return rank_classes(self.slowness, self.groups, self.links, ordered=["hop"], link_colours=self.link_slowness)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operator per rank (`kind` None) or per group of a kind, after the latest steps `after` of its ranks."""

    name: str
    kind: str | None
    stream: str
    after: list[int]
    uses: list[tuple[str, float, int]]  # (role, seconds, cap)
    alpha_s: float
    size_bytes: int


def random_cluster(rng: Random) -> Cluster:
    """Nodes of equal ranks that share a NIC; sometimes one rank, link or group breaks the symmetry."""
    nodes, width = rng.choice([(1, 4), (2, 2), (2, 3), (4, 2), (2, 4)])
    ranks = nodes * width
    links = {
        "compute": list(range(ranks)),
        "memory": list(range(ranks, 2 * ranks)),
        "port": list(range(2 * ranks, 3 * ranks)),
        "nic": [3 * ranks + rank // width for rank in range(ranks)],
    }
    slowness, link_slowness = [1.0] * ranks, [1.0] * (3 * ranks + nodes)
    groups = {
        "node": [list(range(first, first + width)) for first in range(0, ranks, width)],
        "rail": [list(range(first, ranks, width)) for first in range(width)],
        "world": [list(range(ranks))],
        "hop": [[rank, rank + ranks // 2] for rank in range(ranks // 2)] if ranks % 2 == 0 else [],
    }
    for _ in range(rng.choice([0, 0, 1, 2])):
        broken = rng.choice(["rank", "link", "group"])
        if broken == "rank":
            slowness[rng.randrange(ranks)] = 1.3
        elif broken == "link":
            link_slowness[rng.randrange(len(link_slowness))] = 1.7
        else:
            kind = rng.choice([kind for kind in groups if groups[kind]])
            del groups[kind][rng.randrange(len(groups[kind]))]
    return Cluster(slowness=slowness, groups=groups, links=links, link_slowness=link_slowness)


def random_steps(rng: Random, cluster: Cluster, count: int) -> list[Step]:
    steps = []
    for number in range(count):
        kind = rng.choice([None, None, None, *cluster.groups])
        roles = ["port", "nic"] if kind else ["compute", "memory", "nic"]
        steps.append(
            Step(
                name=f"{kind or 'rank'} {number}",
                kind=kind,
                stream=rng.choice(["main", "side"]),
                after=rng.sample(range(number), rng.randint(0, min(2, number))),
                uses=[(role, rng.random(), rng.choice(CAPS)) for role in roles if rng.random() < 0.7],
                alpha_s=rng.choice([0.0, rng.random()]) if kind else 0.0,
                size_bytes=rng.randint(1, GIB),
            )
        )
    return steps


def explicit_program(cluster: Cluster, steps: list[Step]) -> tuple[Program, dict[tuple[int, int], int]]:
    """One operator per rank or group; and the operator of each (step, rank or group)."""
    builder = ProgramBuilder()
    ranks = range(len(cluster.slowness))
    for link in range(len(cluster.link_slowness)):
        builder.add_resource(f"link {link}")
    for rank in ranks:
        builder.add_memory(f"memory {rank}", resident=[("weights", 100)])
    emitted: dict[tuple[int, int], int] = {}
    op_on: list[dict[int, int]] = []
    read_by: dict[tuple[int, int], list[int]] = {}
    for number, step in enumerate(steps):
        op_on.append({})
        teams = [[rank] for rank in ranks] if step.kind is None else cluster.groups[step.kind]
        for index, members in enumerate(teams):
            op = emitted[number, index] = builder.add_op(
                step.name,
                after=[op_on[before][rank] for before in step.after for rank in members if rank in op_on[before]],
                stream=[(step.stream, rank) for rank in members],
                components=[
                    (
                        link,
                        seconds * cluster.slowness[rank] ** (not step.kind) * cluster.link_slowness[link],
                        cap,
                        is_net,
                    )
                    for role, seconds, cap in step.uses
                    for is_net in [step.kind is not None]
                    for rank in members
                    for link in [cluster.links[role][rank]]
                ],
                alpha_s=step.alpha_s,
            )
            for rank in members:
                op_on[number][rank] = op
                for before in step.after:
                    read_by.setdefault((before, rank), []).append(op)
    for number, step in enumerate(steps):
        for rank, op in op_on[number].items():
            builder.add_tensor(step.name, rank, step.size_bytes, op, read_by.get((number, rank), []))
    return builder.build(), emitted


def class_program(
    cluster: Cluster, steps: list[Step], classes: RankClasses
) -> tuple[Program, dict[tuple[int, int], int]]:
    """One operator per class of ranks or groups; and the operator of each (step, class)."""
    builder = ProgramBuilder()
    for link_class in range(len(classes.links)):
        builder.add_resource(f"link class {link_class}")
    for rank_class in range(len(classes.ranks)):
        builder.add_memory(f"memory class {rank_class}", resident=[("weights", 100)])
    emitted: dict[tuple[int, int], int] = {}
    ops_on: list[dict[int, list[int]]] = []
    read_by: dict[tuple[int, int], list[int]] = {}
    for number, step in enumerate(steps):
        ops_on.append({})
        if step.kind is None:
            teams: tuple[tuple[int, ...], ...] = tuple((rank_class,) for rank_class in range(len(classes.ranks)))
        else:
            teams = classes.members(step.kind)
        shares = {role: classes.shares(step.kind, role) for role, _, _ in step.uses}
        for index, members in enumerate(teams):
            slowness = cluster.slowness[classes.ranks.representative[members[0]]] if step.kind is None else 1.0
            op = emitted[number, index] = builder.add_op(
                step.name,
                after=[op for before in step.after for member in members for op in ops_on[before].get(member, [])],
                stream=[(step.stream, member) for member in members],
                components=[
                    (link_class, seconds * slowness * link_slowness, cap * count, step.kind is not None)
                    for role, seconds, cap in step.uses
                    for _, link_class, count in shares[role][index]
                    for link_slowness in [cluster.link_slowness[classes.links.representative[link_class]]]
                ],
                alpha_s=step.alpha_s,
            )
            for member in members:
                ops_on[number].setdefault(member, []).append(op)
                for before in step.after:
                    read_by.setdefault((before, member), []).append(op)
    for number, step in enumerate(steps):
        for member, ops in ops_on[number].items():
            for op in ops:
                builder.add_tensor(step.name, member, step.size_bytes, op, read_by.get((number, member), []))
    return builder.build(), emitted
