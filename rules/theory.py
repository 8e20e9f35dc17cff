"""The theory of one block: the integers under which its operators, tensors and dim labels enter the e-graph.

egglog terms carry integers only: a *kernel* is an index into `kernels` (the block's operators, then the fused ones), a
spec is a number with one digit per mesh axis, base 64, axis 0 the lowest: 0 replicated, 1 partial, 2 owned by the first
coordinate, from 3 on a dim label of this block. Programs of equal structure are therefore equal texts, whatever their
names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from rooflang.errors import GraphError, ValueRangeError
from rooflang.ir.blocks import BlockKind
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Cut, Spec
from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.kinds.fused import NAMED, SHARED_INPUT, Fusion, fits, fuse, wiring
from rooflang.ir.op import Op, op_kind, signature
from rooflang.ir.tensor import RESIDENT_ROLES, Role, Tensor

BASE = 64
CODES = {REPLICATED: 0, PARTIAL: 1, OWNER: 2}
FIRST_LABEL = len(CODES)
#: 64¹⁰ is the largest power that a spec fits under in egglog's signed 64-bit integers.
MAX_AXES = 10

#: Memory tiers by code: where the identities of the operator table lead. Before any rewrite a leaf is in the first.
TIERS = tuple(move.removeprefix("to_") for move in MOVES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What rule text depends on: mesh axes, arities that occur, and the wirings of fusions: for each operand of the
    outer and of the inner operator its place among those of the fused one, -1 for the intermediate. `joint` are the
    arities of products that share their input. `gathered`: may weights be gathered where they are used?"""

    axes: int
    arities: tuple[int, ...]
    fusions: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    joint: tuple[int, ...] = ()
    gathered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedPair:
    """Kernels by number: `inner` feeds `outer`, which may be a fused one; both in one are `kernel`. Or `inner` is the
    joint product of `outer` and others, of which `kernel` is a part."""

    outer: int
    inner: int
    kernel: int


@dataclass(frozen=True, kw_only=True)
class Theory:
    """A block over `axes` mesh axes, numbered. Build it with `Theory.of`. With `gathered` weights may rest cut and be
    gathered where they are used."""

    kind: BlockKind
    axes: int
    kernels: tuple[Op, ...]
    pairs: tuple[FusedPair, ...]
    labels: tuple[str, ...]
    parts: tuple[FusedPair, ...] = ()
    gathered: bool = False

    @classmethod
    def of(cls, kind: BlockKind, axes: int, *, fused: bool = True, gathered: bool = False) -> Theory:
        """The theory of a block; `fused` adds a kernel for every pair of operators that a named fusion matches.

        Raises `ValueRangeError` unless 0 ≤ axes ≤ 10, and `GraphError` when the block has more dim labels than a digit
        holds.
        """
        if not 0 <= axes <= MAX_AXES:
            raise ValueRangeError(f"{axes} mesh axes", where=kind.name, expected=f"0 to {MAX_AXES}")
        labels = tuple(dict.fromkeys(label for op in kind.ops for label in op.labels))
        if len(labels) > BASE - FIRST_LABEL:
            raise GraphError(
                f"{len(labels)} dim labels in one block",
                where=kind.name,
                expected=f"at most {BASE - FIRST_LABEL}",
                hint="give the layers block labels",
            )
        pairs, kernels = _fused(kind.ops) if fused else ((), ())
        kernels = (*kind.ops, *kernels)
        parts, more = _parts(kind.ops, len(kernels)) if fused else ((), ())
        kernels = (*kernels, *more)
        return cls(kind=kind, axes=axes, kernels=kernels, pairs=pairs, labels=labels, parts=parts, gathered=gathered)

    @cached_property
    def shape(self) -> Shape:
        arities = {len(op.operands) for op in self.kernels}
        fusions = {wiring(self.kernels[p.kernel]) for p in self.pairs}
        return Shape(
            axes=self.axes,
            arities=tuple(sorted(arities)),
            fusions=tuple(sorted(fusions)),
            joint=tuple(sorted({len(self.kernels[p.inner].operands) for p in self.parts})),
            gathered=self.gathered,
        )

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors of the block, each at its number: leaves, input ports, then outputs in program order."""
        return (*self.kind.leaves, *self.kind.inputs, *(op.output for op in self.kind.ops))

    @cached_property
    def number(self) -> dict[str, int]:
        """Number of each tensor by name."""
        return {t.name: n for n, t in enumerate(self.tensors)}

    @cached_property
    def producer(self) -> dict[str, Op]:
        """The operator that produces each tensor; leaves and ports have none."""
        return {op.output.name: op for op in self.kind.ops}

    def term(self, tensor: Tensor) -> str:
        """The egglog variable that stands for a tensor."""
        return f"$t{self.number[tensor.name]}"

    @cached_property
    def codes(self) -> dict[str, int]:
        """Digit of each spec entry."""
        return CODES | {label: FIRST_LABEL + n for n, label in enumerate(self.labels)}

    @cached_property
    def _entries(self) -> tuple[str, ...]:
        return tuple(sorted(self.codes, key=self.codes.__getitem__))

    def encode(self, spec: Spec) -> int:
        """The number of a spec."""
        return sum(self.codes[entry] * BASE**axis for axis, entry in enumerate(spec))

    def decode(self, code: int) -> Spec:
        """The spec of a number."""
        return tuple(self._entries[code // BASE**axis % BASE] for axis in range(self.axes))

    def rows(self, op: Op) -> tuple[tuple[int, Cut], ...]:
        """The cuts of an operator that apply in this block, with their index in its signature.

        Rows that ask for a sum of partial operands are left out where an operand cannot be such a sum. Of several rows
        with equal specs the first one stands for all: an e-graph cannot tell them apart.
        """
        first: dict[tuple[tuple[str, ...], str], tuple[int, Cut]] = {}
        for index, cut in enumerate(signature(op)):
            if unsummable(op, cut, self.partials) is None:
                first.setdefault((cut.operands, cut.out), (index, cut))
        return tuple(first.values())

    @cached_property
    def partials(self) -> dict[str, frozenset[str]]:
        """How the partial values of each tensor are combined (empty where it is never partial)."""
        return partial_combines(self.kind.ops)

    @cached_property
    def cuttable(self) -> dict[str, tuple[str, ...]]:
        """Labels along which each tensor may be cut: those that its producer or some consumer mentions."""
        found: dict[str, set[str]] = {t.name: set() for t in self.tensors}
        for op in self.kernels:
            for _, cut in self.rows(op):
                found[op.output.name].add(cut.out)
                for tensor, entry in zip(op.operands, cut.operands, strict=True):
                    found[tensor.name].add(entry)
        return {name: tuple(x for x in self.labels if x in entries) for name, entries in found.items()}

    @cached_property
    def spread(self) -> dict[str, tuple[str, ...]]:
        """Labels along which partial values of each tensor may be combined shard by shard.

        Summands: any along which the tensor is cut. Log-sum-exp, top-k or argmax states: those along which the producer
        may be cut too, so that a row with its statistics stays whole.
        """
        found = {}
        for name, combines in self.partials.items():
            own = {cut.out for _, cut in self.rows(self.producer[name])}
            labels = self.cuttable[name]
            found[name] = labels if combines == {"sum"} else tuple(x for x in labels if x in own) if combines else ()
        return found

    @cached_property
    def weights(self) -> tuple[Tensor, ...]:
        """The leaves that a kernel may gather where it uses them: no kernel writes to them."""
        return tuple(leaf for leaf in self.kind.leaves if leaf.role is Role.WEIGHT)

    def movable(self, tensor: Tensor) -> bool:
        """May a transfer change its layout? Leaves and resident state stay as they are laid, and so do their copies."""
        if tensor.role in RESIDENT_ROLES:
            return False
        op = self.producer.get(tensor.name)
        if op is None:
            return any(tensor.name == port.name for port in self.kind.inputs)
        kind = op_kind(op.kind)
        return kind.in_place is None and (op.kind not in MOVES or self.movable(op.operands[0]))


def partial_combines(ops: Iterable[Op]) -> dict[str, frozenset[str]]:
    """For each output of `ops` (in topological order), the monoids by which its partial values are combined."""
    found: dict[str, frozenset[str]] = {}
    for op in ops:
        rows = (cut for cut in signature(op) if cut.out == PARTIAL and unsummable(op, cut, found) is None)
        found[op.output.name] = frozenset(cut.combine for cut in rows)
    return found


def unsummable(op: Op, cut: Cut, partials: Mapping[str, frozenset[str]]) -> Tensor | None:
    """An operand that the cut wants partial although its partial values, if it has any, are not summands.

    A linear operator passes summands through, f(Σ x) = Σ f(x); log-sum-exp or top-k states it would destroy.
    """
    if PARTIAL not in cut.operands:
        return None
    for tensor, entry in zip(op.operands, cut.operands, strict=True):
        if entry == PARTIAL and partials.get(tensor.name, frozenset()) != {"sum"}:
            return tensor
    return None


def fusion_of(outer: Op, inner: Op) -> Fusion | None:
    """The named fusion that computes `inner` inside `outer`, or `outer` as a part of `inner`, if there is one and
    `inner` may be run once more."""
    found = (fusion for fusion in NAMED.values() if fits(fusion, outer, inner))
    return next(found, None) if op_kind(inner.kind).pure else None


def _fused(ops: tuple[Op, ...]) -> tuple[tuple[FusedPair, ...], tuple[Op, ...]]:
    """Every kernel that named fusions make of these operators, of fused ones too, and what it was made of."""
    by_output = {op.output.name: n for n, op in enumerate(ops)}
    pairs: list[FusedPair] = []
    kernels = list(ops)
    for outer_number, outer in enumerate(kernels):  # it grows: a fused kernel may be the outer of another one
        for name in dict.fromkeys(tensor.name for tensor in outer.operands):
            inner_number = by_output.get(name)
            fusion = None if inner_number is None else fusion_of(outer, ops[inner_number])
            if inner_number is not None and fusion is not None:
                pairs.append(FusedPair(outer=outer_number, inner=inner_number, kernel=len(kernels)))
                kernels.append(fuse(fusion, outer, ops[inner_number]))
    return tuple(pairs), tuple(kernels[len(ops) :])


def _parts(ops: tuple[Op, ...], count: int) -> tuple[tuple[FusedPair, ...], tuple[Op, ...]]:
    """Every product as a part of a joint one, as kernels from number `count` on."""
    found: list[FusedPair] = []
    kernels: list[Op] = []
    for inner, joint in enumerate(ops):
        for outer, product in enumerate(ops):
            if fits(SHARED_INPUT, product, joint):
                found.append(FusedPair(outer=outer, inner=inner, kernel=count + len(kernels)))
                kernels.append(fuse(SHARED_INPUT, product, joint))
    return tuple(found), tuple(kernels)
