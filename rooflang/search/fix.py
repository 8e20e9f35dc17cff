"""What of a plan is given, by `--fix`: a search then chooses from what is left.

A menu of layouts is filtered before it is priced, so that plans, bounds and their scope are all about the smaller
space. Items are written `name=value`:

- `experts=expert:16`: a group of operators, as plans in words name it, is cut along that dim into so many parts;
  `batch:8,context:2` names several dims, `head:1` says that one is not cut, `replicated` that none is. Dims that are
  not named stay free, and so do operators of the group that no cut along the dim suits.
- `mesh=2x8`: the mesh of a stage, its axes outermost first.
- `pp=16`, `partition=3,4x14,2`: the number of stages, or the layers of each.
- `dp=16`, `cp=1`, `ep=16`: every operator lies as the RoofLang paper's grid lays it (`rooflang.place.grid`). What is
  not said of the three follows from the others, or stays free.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from rooflang.errors import PlacementError, UnitError, UnknownNameError, ValueRangeError
from rooflang.hw.mesh import Mesh, mesh_factorisations
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import Spec
from rooflang.ir.op import signature
from rooflang.place.grid import SEQ, grid_plan, layer_labels
from rooflang.place.words import cut_word
from rooflang.search.problem import BATCH, Problem
from rooflang.search.sizes import grid_shapes, pipeline_degrees
from rooflang.search.space import OpRule, Space
from rooflang.sim.result import Overlap
from rooflang.units import parse_count, parse_layers

#: Mesh axes that a search uses at most, unless it is told otherwise or a mesh with more of them is given.
MAX_AXES = 2

_SHAPE = ("dp", "cp", "ep")
_PARTS = ("mesh", "partition", "pp", *_SHAPE)

#: Items with commas between them; a comma that no further `name=` follows belongs to the value.
_BETWEEN = re.compile(r",(?=[^,=]+=)")
_CUT = re.compile(r"(?P<dim>[^:→]+)[:→](?P<parts>[^:→]+)")
_EXAMPLE = "name=value, such as experts=expert:16, mesh=2x8, partition=3,4x14,2, dp=16"
REPLICATED = "replicated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What is given. `groups` says, for a group of operators, into how many parts each dim is cut; no dim at all: none
    is. `rules` are those of single operators, `held` says in which specs leaves may be read that lie somewhere already.
    Where no mesh is given, all are searched that have at most so many `axes`.
    """

    groups: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    mesh: tuple[int, ...] | None = None
    partition: tuple[int, ...] | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int | None = None
    ep: int | None = None
    rules: Mapping[str, OpRule] = field(default_factory=dict)
    held: Mapping[str, frozenset[Spec]] = field(default_factory=dict)
    axes: int = MAX_AXES

    @classmethod
    def read(cls, texts: Iterable[str], problem: Problem) -> Fixed:
        """Items as they are typed, for the groups and dims of a problem. Raises `UnknownNameError` that lists what can
        be fixed, `ValueRangeError` for a value that cannot be read."""
        groups: dict[str, Mapping[str, int]] = {}
        parts: dict[str, int | tuple[int, ...]] = {}
        known = {_plain(op.group): op.group for op in problem.graph.ops}
        for item in (item for text in texts for item in _BETWEEN.split(text)):
            name, equals, value = (part.strip() for part in item.partition("="))
            if not equals or not value:
                raise ValueRangeError(f"cannot read {item!r}", where="--fix", expected=_EXAMPLE)
            key = _plain(name)
            if key in parts or known.get(key) in groups:
                raise ValueRangeError(f"{name} is fixed twice", where="--fix", expected="each name once")
            if key in _PARTS:
                parts[key] = _part(key, value)
            elif key in known:
                groups[known[key]] = _cuts(problem, known[key], value)
            else:
                raise UnknownNameError("part of a plan", name, (*_PARTS, *known.values()), where="--fix")
        return cls(groups=groups, **parts)  # type: ignore[arg-type]  # the names say which is a number

    @property
    def free(self) -> bool:
        """Is no part of a plan given?"""
        return replace(self, axes=MAX_AXES) == FREE

    @property
    def shaped(self) -> bool:
        """Is every operator laid as in the grid?"""
        return any(number is not None for number in (self.dp, self.cp, self.ep))

    def degrees(self, problem: Problem, asked: int | None) -> tuple[int, ...]:
        """The numbers of pipeline stages to search. Raises `ValueRangeError` where nothing is left."""
        own = {asked, self.pp, None if self.partition is None else len(self.partition)} - {None}
        if len(own) > 1:
            raise ValueRangeError(
                "stages are given twice: " + ", ".join(map(str, sorted(filter(None, own)))), where="--fix, --pp"
            )
        layers = len(layer_labels(problem.blocks))
        if self.partition is not None and (sum(self.partition) != layers or min(self.partition) < 1):
            raise ValueRangeError(
                f"the partition has {sum(self.partition)} layers",
                where="--fix partition",
                expected=f"positive numbers that sum to {layers}",
            )
        degrees = pipeline_degrees(problem, own.pop() if own else None)
        meshes = {pp: self._meshes(problem, pp) for pp in degrees} if not self.free else {}
        left = tuple(pp for pp in degrees if meshes.get(pp, True))
        if not left:
            raise ValueRangeError(
                f"{self} on {problem.cluster.gpus} GPUs",
                where="--fix",
                expected="axes whose product is the number of GPUs of a stage, experts that divide over EP",
            )
        self._check_parts(problem, {sizes for pp in left for sizes in meshes.get(pp, ())})
        return left

    def shapes(self, problem: Problem, degrees: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """(dp, cp, pp) of the grid that agree with what is given."""
        for dp, cp, pp in grid_shapes(problem, degrees):
            asked = ((self.dp, dp), (self.cp, cp), (self.ep, dp * cp), (self.mesh, _axes(dp, cp)))
            if all(given in (None, own) for given, own in asked):
                yield dp, cp, pp

    def spaces(self, problem: Problem, stages: int) -> list[Space]:
        """The meshes for a number of stages, each with what it may choose from."""
        if self.shaped:
            found = [self._grid_space(problem, *shape) for shape in self.shapes(problem, [stages])]
            return [space for space in found if space is not None]
        rules, words = self._group_rules(problem), problem.graph.words
        return [Space(sizes=sizes, words=words, rules=rules, held=self.held) for sizes in self._meshes(problem, stages)]

    def _meshes(self, problem: Problem, stages: int) -> list[tuple[int, ...]]:
        if self.shaped:
            return [_axes(dp, cp) for dp, cp, _ in self.shapes(problem, [stages])]
        if self.mesh is None:
            return mesh_factorisations(problem.cluster, stages, self.axes)
        try:
            Mesh.lay(problem.cluster, self.mesh, stages=stages)
        except PlacementError:
            return []
        return [self.mesh]

    def scope(self, overlap: Overlap) -> str:
        """What a bound is over."""
        meshes = (
            f"all meshes of at most {self.axes} axes" if self.mesh is None and not self.shaped else "the mesh given"
        )
        layers = "all contiguous partitions" if self.partition is None else "the partition given"
        given = f", with {self} fixed" if not self.free else ""
        return (
            f"for its batch and number of stages: {meshes}, {layers}, one plan per block kind, {overlap} overlap{given}"
        )

    def _grid_space(self, problem: Problem, dp: int, cp: int, pp: int) -> Space | None:
        quantum = dp if SEQ in problem.graph.sizes else dp * cp
        try:
            graph = problem.graph.resized(batch=quantum) if problem.has_batch else problem.graph
            plan = grid_plan(graph, problem.cluster, dp=dp, cp=cp, pp=pp)
        except PlacementError:
            return None
        words, rules = problem.graph.words, self._group_rules(problem)
        blocks = split_blocks(graph)
        for label in blocks.sequence:
            for mode in plan.blocks[blocks.kind_of[label]].modes.values():
                name = blocks.rename[label].get(mode.op.name, mode.op.name)
                axes = tuple(cut_word(choice, words) for choice in mode.choices)
                rules[name] = replace(rules.get(name, OpRule()), axes=axes)
        return Space(sizes=_axes(dp, cp), words=words, rules=rules)

    def _group_rules(self, problem: Problem) -> dict[str, OpRule]:
        words, rules = problem.graph.words, dict(self.rules)
        for op in problem.graph.ops if self.groups else ():
            asked = self.groups.get(op.group)
            if asked is not None:
                able = {cut_word(cut, words) for cut in signature(op)}
                parts = {word: count for word, count in asked.items() if word in able}
                rules[op.name] = replace(rules.get(op.name, OpRule()), parts=parts, whole=not asked)
        return rules

    def _check_parts(self, problem: Problem, meshes: Iterable[tuple[int, ...]]) -> None:
        possible = {
            math.prod(axes)
            for sizes in meshes
            for count in range(len(sizes) + 1)
            for axes in combinations(sizes, count)
        }
        for group, cuts in self.groups.items():
            for word, parts in cuts.items():
                if parts not in possible:
                    raise ValueRangeError(
                        f"{word} in {parts} parts on {problem.cluster.gpus} GPUs",
                        where=f"--fix {group}",
                        expected="one of " + ", ".join(map(str, sorted(possible))),
                    )

    def __str__(self) -> str:
        """As in the scope of a bound: `experts: expert→16; DP 16; partition 3,14×4,2`."""
        words = [
            f"{group}: " + (", ".join(f"{word}→{parts}" for word, parts in cuts.items()) or REPLICATED)
            for group, cuts in self.groups.items()
        ]
        words += [
            f"{name.upper()} {getattr(self, name)}" for name in (*_SHAPE, "pp") if getattr(self, name) is not None
        ]
        if self.mesh is not None:
            words.append("mesh " + "×".join(map(str, self.mesh)))
        if self.partition is not None:
            words.append("partition " + ",".join(map(str, self.partition)))
        if self.rules:
            words.append("operators restricted one by one")
        if self.held:
            words.append("weights where they lie already")
        return "; ".join(words)


#: Nothing is given.
FREE = Fixed()


def _axes(dp: int, cp: int) -> tuple[int, ...]:
    return tuple(size for size in (dp, cp) if size > 1)


def _plain(name: str) -> str:
    """`Shared-Expert` and `shared expert` are the same."""
    return " ".join(re.split(r"[\s_-]+", name.strip().lower()))


def _part(key: str, value: str) -> int | tuple[int, ...]:
    where = f"--fix {key}"
    if key == "partition":
        return parse_layers(value, where=where)
    if key != "mesh":
        return _count(value, where)
    sizes = tuple(_count(part, where) for part in re.split("[x×*]", value))
    return tuple(size for size in sizes if size > 1)


def _count(text: str, where: str) -> int:
    try:
        number = parse_count(text[:20].strip(), where=where)
    except UnitError as error:
        raise ValueRangeError(error.what, where=where, expected="a whole number above 0") from error
    if number < 1:
        raise ValueRangeError(f"{number} is not possible", where=where, expected="a whole number above 0")
    return number


def _cuts(problem: Problem, group: str, value: str) -> dict[str, int]:
    """Parts by dim, under the words that plans use."""
    where, words = f"--fix {group}", problem.graph.words
    if _plain(value) == REPLICATED:
        return {}
    able = {
        cut_word(cut, words): cut.dim
        for op in problem.graph.ops
        if op.group == group
        for cut in signature(op)
        if cut.dim
    }
    known = {_plain(word): word for word in able if word}
    known |= {_plain(label): words[label] for label in words if words[label] in able and _plain(label) not in known}
    out: dict[str, int] = {}
    for part in value.split(","):
        match = _CUT.fullmatch(part.strip())
        if match is None:
            raise ValueRangeError(
                f"cannot read {part.strip()!r}", where=where, expected=f"dim:parts with commas between, or {REPLICATED}"
            )
        if _plain(match["dim"]) not in known:
            raise UnknownNameError(f"dim of {group}", match["dim"].strip(), sorted({*known.values()}), where=where)
        word = known[_plain(match["dim"])]
        if word in out:
            raise ValueRangeError(f"{word} is named twice", where=where, expected="each dim once")
        out[word] = _divisor(problem, group, word, _count(match["parts"], where))
    return out


def _divisor(problem: Problem, group: str, word: str, parts: int) -> int:
    """The number of parts, where some operator of the group has an extent that it divides. Batch sizes are not known
    yet. Raises `ValueRangeError` that lists the numbers which do."""
    graph = problem.graph
    extents = {
        graph.sizes[cut.dim] // cut.multiple_of
        for op in graph.ops
        if op.group == group
        for cut in signature(op)
        if cut.dim and cut_word(cut, graph.words) == word
    }
    if word == BATCH or any(extent % parts == 0 for extent in extents):
        return parts
    most = problem.cluster.gpus
    fitting = sorted({n for extent in extents for n in range(1, min(extent, most) + 1) if extent % n == 0})
    sizes = " or ".join(f"{extent:,}" for extent in sorted(extents))
    raise ValueRangeError(
        f"{sizes} along {word} do not divide into {parts} equal parts",
        where=f"--fix {group}",
        expected="one of " + ", ".join(map(str, fitting)),
    )
