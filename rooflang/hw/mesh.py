"""Meshes: named axes laid over a contiguous block of GPUs, each an ordered list of fabric-level factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from rooflang.errors import PlacementError, UnknownNameError, ValueRangeError
from rooflang.hw.cluster import Cluster

#: Axis names, outermost first.
AXIS_NAMES = ("x", "y", "z", "u", "v", "w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """The part of an axis that lies on one fabric level."""

    level: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A mesh axis: its factors, outermost first, multiply to its size. Of size 1 it has none."""

    name: str
    size: int
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        if self.size < 1 or prod(factor.size for factor in self.factors) != self.size:
            raise PlacementError(
                f"factors {[(factor.level, factor.size) for factor in self.factors]} do not multiply to {self.size}",
                where=f"mesh axis {self.name}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Axes, outermost first, over the GPUs first … first+gpus-1: a rank is its row-major index plus `first`."""

    axes: tuple[Axis, ...]
    gpus: int
    first: int = 0

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        if len(set(names)) != len(names):
            raise PlacementError(f"two axes of one name: {', '.join(names)}", where="mesh")
        if prod(axis.size for axis in self.axes) != self.gpus:
            sizes = " × ".join(str(axis.size) for axis in self.axes) or "no axes"
            raise PlacementError(f"{sizes} is not {self.gpus} GPUs", where="mesh")

    @classmethod
    def lay(cls, cluster: Cluster, sizes: Sequence[int], *, stages: int = 1) -> Mesh:
        """Axes of the given sizes, outermost first and named x, y, z, …, over the GPUs of the first of `stages` stages.

        A stage is a contiguous block of gpus/stages GPUs; `stage` moves the mesh to another one. Raises
        `PlacementError` when the sizes do not multiply to a stage, or an axis or a stage crosses domains without
        factoring into whole ones.
        """
        gpus = _stage_gpus(cluster, stages)
        if any(size < 1 for size in sizes) or prod(sizes) != gpus:
            raise PlacementError(
                f"axes of {tuple(sizes)} do not fill {gpus} GPUs",
                where="mesh",
                expected=f"positive sizes whose product is {gpus}",
            )
        if len(sizes) > len(AXIS_NAMES):
            raise PlacementError(f"{len(sizes)} axes", where="mesh", expected=f"at most {len(AXIS_NAMES)}")
        room = _rooms(cluster, gpus)
        axes = []
        for name, size in reversed(list(zip(AXIS_NAMES, sizes))):
            factors = _take(room, size, where=f"mesh axis {name} of {tuple(sizes)}")
            axes.append(Axis(name=name, size=size, factors=factors))
        return cls(axes=tuple(reversed(axes)), gpus=gpus)

    def stage(self, index: int) -> Mesh:
        """The same mesh over the GPUs of pipeline stage `index`."""
        return replace(self, first=index * self.gpus)

    def axis(self, name: str) -> Axis:
        """The axis called `name`; `UnknownNameError` when there is none."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise UnknownNameError("mesh axis", name, (axis.name for axis in self.axes))

    def size(self, axis: str) -> int:
        """How many coordinates the axis called `axis` has."""
        return self.axis(axis).size

    def coordinates(self, rank: int) -> dict[str, int]:
        """The coordinate of a GPU on each axis, in the order of the axes."""
        index = rank - self.first
        if not 0 <= index < self.gpus:
            raise ValueRangeError(
                f"rank {rank} is not on the mesh", expected=f"{self.first} to {self.first + self.gpus - 1}"
            )
        digits = []
        for axis in reversed(self.axes):
            index, digit = divmod(index, axis.size)
            digits.append((axis.name, digit))
        return dict(reversed(digits))

    def groups(self, axes: Sequence[str]) -> list[tuple[int, ...]]:
        """The groups of ranks that differ only on `axes`, which are those that communicate along them.

        Every rank is in exactly one group. In a group, ranks are row-major over `axes` in the order given; groups are
        sorted by their first rank.
        """
        along = self._distinct(axes)
        strides = self._strides()
        members = [
            sum(digit * strides[axis.name] for axis, digit in zip(along, digits))
            for digits in product(*(range(axis.size) for axis in along))
        ]
        across = [axis for axis in self.axes if axis not in along]
        starts = (
            self.first + sum(digit * strides[axis.name] for axis, digit in zip(across, digits))
            for digits in product(*(range(axis.size) for axis in across))
        )
        return [tuple(start + member for member in members) for start in starts]

    def level_sizes(self, axes: Sequence[str]) -> dict[str, int]:
        """How much of `axes` lies on each fabric level, innermost level first; a level without a factor is absent."""
        factors = [factor for axis in self._distinct(axes) for factor in axis.factors]
        order = dict.fromkeys(factor.level for axis in reversed(self.axes) for factor in reversed(axis.factors))
        found = {level: prod(factor.size for factor in factors if factor.level == level) for level in order}
        return {level: size for level, size in found.items() if size > 1}

    def _distinct(self, names: Sequence[str]) -> list[Axis]:
        if len(set(names)) != len(names):
            raise PlacementError(f"an axis is named twice: {', '.join(names)}", where="mesh")
        return [self.axis(name) for name in names]

    def _strides(self) -> dict[str, int]:
        strides, stride = {}, 1
        for axis in reversed(self.axes):
            strides[axis.name] = stride
            stride *= axis.size
        return strides


def mesh_factorisations(cluster: Cluster, stages: int, max_axes: int) -> list[tuple[int, ...]]:
    """Axis sizes, outermost first, of every mesh of 1 … `max_axes` axes over one of `stages` stages.

    Sizes are above 1 and ordered. Of two orders whose axes have the same factors only the first is kept, because a
    search sees no difference between axes on the same level; sizes that cannot be laid are left out. One GPU has one
    mesh, without axes. Raises `PlacementError` when the stages do not divide the GPUs or cross domains unevenly.
    """
    gpus = _stage_gpus(cluster, stages)
    if not 1 <= max_axes <= len(AXIS_NAMES):
        raise ValueRangeError(f"at most {max_axes} axes", where="mesh", expected=f"1 to {len(AXIS_NAMES)}")
    # A stage that does not fit is the caller's error; sizes that do not fit into it are merely left out.
    _rooms(cluster, gpus)
    if gpus == 1:
        return [()]
    kept: dict[tuple[tuple[tuple[str, int], ...], ...], tuple[int, ...]] = {}
    for count in range(1, max_axes + 1):
        for sizes in _ordered_factorisations(gpus, count):
            try:
                mesh = Mesh.lay(cluster, sizes, stages=stages)
            except PlacementError:
                continue
            factors = (tuple((factor.level, factor.size) for factor in axis.factors) for axis in mesh.axes)
            kept.setdefault(tuple(sorted(factors)), sizes)
    return list(kept.values())


def _ordered_factorisations(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """All tuples of `count` whole numbers above 1 with the given product, in lexicographic order."""
    if count == 1:
        yield (number,)
        return
    for first in range(2, number // 2 + 1):
        if number % first == 0:
            for rest in _ordered_factorisations(number // first, count - 1):
                yield (first, *rest)


def _stage_gpus(cluster: Cluster, stages: int) -> int:
    if stages < 1 or cluster.gpus % stages:
        raise PlacementError(
            f"{stages} pipeline stages do not divide {cluster.gpus} GPUs",
            where="mesh",
            expected=f"a divisor of {cluster.gpus}",
        )
    return cluster.gpus // stages


def _rooms(cluster: Cluster, gpus: int) -> list[Factor]:
    """How many of a stage's GPUs lie on each level, innermost first: all in one domain, or in whole domains, and the
    same with pods."""
    rooms: list[Factor] = []
    left = gpus
    for level, size, members in zip(cluster.levels, (cluster.domain, cluster.pod), ("domains", "pods")):
        part = min(left, size)
        if size % part or left % part:
            whole = size * gpus // left
            raise PlacementError(
                f"a stage of {gpus} GPUs does not lie evenly on {members} of {whole}",
                where="mesh",
                expected=f"a divisor or a multiple of {whole}",
            )
        rooms.append(Factor(level=level.name, size=part))
        left //= part
    return [*rooms, *(Factor(level=level.name, size=left) for level in cluster.levels[2:])]


def _take(room: list[Factor], size: int, *, where: str) -> tuple[Factor, ...]:
    """The factors, outermost first, of an axis of `size` that takes the innermost room that is left."""
    factors: list[Factor] = []
    left = size
    for position, space in enumerate(room):
        part = min(left, space.size)
        if left % part or space.size % part:
            raise PlacementError(
                f"an axis of {size} does not factor over the {space.size} that are left on {space.level}",
                where=where,
                expected=f"a divisor or a multiple of {space.size}",
            )
        if part > 1:
            room[position] = replace(space, size=space.size // part)
            factors.append(Factor(level=space.level, size=part))
            left //= part
    return tuple(reversed(factors))
