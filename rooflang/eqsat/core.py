"""What every saturation starts from: sorts, relations, and the rulesets that are no rewrites of the paper.

- `boundary` lists the layouts in which a block may hand over its outputs: each axis replicated or cut along a label.
- `demand` answers a wanted view of a tensor by the operator that makes it, in a mode that ends in this layout, and
  thereby wants views of its operands. Weights and caches are held in any layout; a port arrives in any layout that a
  boundary may have.
- `local_slice` is a scatter of a broadcast value: a coordinate that has all of it keeps its own share. Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflang.ir.cut import OWNER, PARTIAL
from rooflang.rules.laws import KEEP_OWNER, LAWS, SLICE
from rooflang.rules.text import row
from rooflang.rules.theory import BASE, CODES, Shape, Theory

RULESETS = ("boundary", "demand", "local_slice")

#: e-nodes by which a value changes its layout: `(AllGather from to view)`.
TRANSFERS = tuple(dict.fromkeys(law.constructor for law in LAWS))

_CONSTRUCTORS = frozenset({"Leaf", "Port", "Move", "View", "Hold", "PortAt", *TRANSFERS})


def is_constructor(name: str) -> bool:
    """Is it an e-node's constructor? All other names are relations."""
    return name in _CONSTRUCTORS or name.rstrip("0123456789") in ("Op", "Run")


def schema(shape: Shape) -> Iterator[str]:
    """Sorts T (tensors of the compute graph) and V (a tensor in a layout), and the relations that facts fill."""
    arities = sorted({1, *shape.arities})
    ops = " ".join(f"(Op{n} i64 {'T ' * n})" for n in arities)
    runs = " ".join(f"(Run{n} i64 i64 {'V ' * n})" for n in arities)
    moves = " ".join(f"({name} i64 i64 V)" for name in TRANSFERS)
    yield f"(datatype T (Leaf i64) (Port i64) (Move i64 T) {ops})"
    yield f"(datatype V (View T i64) (Hold i64 i64 i64) (PortAt i64 i64) {runs} {moves})"
    yield "(relation Axis (i64 i64))"
    for arity in arities:
        yield f"(relation Mode{arity} (i64 i64 {'i64 ' * arity}i64))"
        yield f"(relation Cut{arity} (i64 i64 {'i64 ' * arity}i64))"
        yield f"(relation Route{arity} (i64 i64 {'i64 ' * arity}i64))"
    for guard in ("Pure", "Single", "Identity", "Resident", "Tier"):
        yield f"(relation {guard} (i64))"
    yield "(relation Recall (i64 i64))"
    yield "(relation Fuse (i64 i64 i64 i64))"
    if shape.joint:
        yield "(relation Part (i64 i64 i64))"
    for guard in ("Has", "Spread", "Border"):
        yield f"(relation {guard} (T i64))"
    for guard in ("CanPartial", "Owned"):
        yield f"(relation {guard} (T))"
    if shape.gathered:
        yield "(relation Kept (T i64))"
    yield "(relation Root (T i64 i64))"


def rules(shape: Shape) -> Iterator[str]:
    """The core rulesets."""
    yield "(rule ((Root t i s) (Axis i m)) ((Root t (+ i 1) s)) :ruleset boundary)"
    yield "(rule ((Root t i s) (Axis i m) (Border t c)) ((Root t (+ i 1) (+ s (* m c)))) :ruleset boundary)"
    yield f"(rule ((Root t {shape.axes} s)) ((View t s)) :ruleset boundary)"
    for arity in shape.arities:
        views = " ".join(f"(View x{n} s{n})" for n in range(arity))
        yield (
            f"(rule ((= e (View t so)) (= t (Op{arity} k {row('x', arity)}))"
            f" (Mode{arity} k {shape.axes} {row('s', arity)}so))\n"
            f"      ((union e (Run{arity} k so {views}))) :ruleset demand)"
        )
    at_rest = _no_digit(shape, CODES[PARTIAL])
    yield f"(rule ((= e (View t s)) (= t (Leaf n)){at_rest}) ((union e (Hold n s 0))) :ruleset demand)"
    yield (
        f"(rule ((= e (View t s)) (= t (Move c u)) (= u (Leaf n)){at_rest})\n"
        "      ((union e (Hold n s c))) :ruleset demand)"
    )
    arrives = at_rest + _no_digit(shape, CODES[OWNER])
    yield f"(rule ((= e (View t s)) (= t (Port n)){arrives}) ((union e (PortAt n s))) :ruleset demand)"
    yield from SLICE.rules(shape, "local_slice")
    yield from KEEP_OWNER.rules(shape, "local_slice")


def _no_digit(shape: Shape, code: int) -> str:
    return "".join(f" (!= {code} (% (/ s {BASE**axis}) {BASE}))" for axis in range(shape.axes))


def terms(theory: Theory) -> Iterator[str]:
    """The block's compute graph, one variable per tensor."""
    for number, tensor in enumerate((*theory.kind.leaves, *theory.kind.inputs)):
        constructor = "Leaf" if number < len(theory.kind.leaves) else "Port"
        yield f"(let {theory.term(tensor)} ({constructor} {number}))"
    for kernel, op in enumerate(theory.kind.ops):
        operands = " ".join(theory.term(tensor) for tensor in op.operands)
        yield f"(let {theory.term(op.output)} (Op{len(op.operands)} {kernel} {operands}))"


def facts(theory: Theory) -> Iterator[str]:
    """Facts that no rule owns: axes, undecided modes, how values may lie, what the block hands over.

    `(Has tensor label)`: it may be cut along the label by a transfer. `(Border tensor label)`: likewise where it leaves
    the block.
    """
    for axis in range(theory.axes):
        yield f"(Axis {axis} {BASE**axis})"
    for kernel, op in enumerate(theory.kernels):
        yield f"(Mode{len(op.operands)} {kernel} 0 {'0 ' * len(op.operands)}0)"
    for tensor in theory.tensors:
        if theory.movable(tensor):
            for label in theory.cuttable[tensor.name]:
                yield f"(Has {theory.term(tensor)} {theory.codes[label]})"
            if theory.partials.get(tensor.name):
                yield f"(CanPartial {theory.term(tensor)})"
    for tensor in theory.kind.outputs:
        yield f"(Root {theory.term(tensor)} 0 0)"
        for label in theory.cuttable[tensor.name]:
            yield f"(Border {theory.term(tensor)} {theory.codes[label]})"
