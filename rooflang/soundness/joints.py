"""fuse_kernels on trial where products share their input: each is a part of what their joint product makes, however
that is cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rooflang.ir.evaluate import evaluate
from rooflang.ir.exact import alike
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.joint import Joint
from rooflang.ir.kinds.joint import features, joint_label
from rooflang.ir.layout import Choice, make_mode
from rooflang.ir.lifted import assemble, run_mode
from rooflang.ir.op import Op, signature
from rooflang.ir.tensor import Dim
from rooflang.rules.fuse_kernels import check
from rooflang.rules.record import Ok, Verdict
from rooflang.soundness import draw
from rooflang.soundness.source import Source
from rooflang.soundness.splits import told, uncut


def down_projections(*, other_input: bool = False) -> Graph:
    """Projections of a norm to the ranks of queries, entries and index keys, as in latent attention; of what the norm
    reads where they are to share no input."""
    g = GraphBuilder("down", batch=2, hidden=2, rank=2, latent=2, index=2)
    raw = g.input("raw", "batch hidden")
    x = g.op("x", "rms_norm", [raw, g.weight("gain", "hidden")], "batch hidden", over="hidden")
    outs = [
        g.op(name, "matmul", [read, g.weight(f"w_{name}", f"hidden {label}")], f"batch {label}")
        for name, label, read in (("q", "rank", x), ("kv", "latent", raw if other_input else x), ("k", "index", x))
    ]
    return g.build(x, *outs)


def shared() -> Graph:
    """The projections with a joint product of the first two beside them, and what reads them."""
    g = GraphBuilder("shared", batch=2, hidden=2, rank=2, latent=2, head=2)
    x = g.op("x", "rms_norm", [g.input("raw", "batch hidden")], "batch hidden", over="hidden")
    q = g.op("q", "matmul", [x, g.weight("w_q", "hidden rank")], "batch rank")
    kv = g.op("kv", "matmul", [x, g.weight("w_kv", "hidden latent")], "batch latent")
    norm = g.op("norm", "rms_norm", [q], "batch rank", over="rank")
    up = g.op("up", "matmul", [norm, g.weight("w_up", "rank head")], "batch head")
    return Joint(targets=(("q", "kv"),)).of(g.build(up, g.op("y", "activation", [kv], "batch latent", function="relu")))


@dataclass(frozen=True, kw_only=True)
class Joints:
    """A claim: what the rule makes of products that share their input, cut by rows of its signature, has each of them
    as the part that the rule says, cut by rows of that."""

    check: Callable[[Op, Op], Verdict] = check
    rows: Callable[[Op], Sequence[Choice]] = signature
    part_rows: Callable[[Op], Sequence[Choice]] = signature
    other_input: bool = False

    def __call__(self, source: Source) -> str | None:
        graph = draw.extents(down_projections(other_input=self.other_input), source)
        products = [op for op in graph.ops if op.kind == "matmul"]
        one = source.choice(products)
        other = source.choice([op for op in products if op is not one])
        joint = self._made(one, other, source)
        part = self._made(source.choice((one, other)), joint, source)
        size = sum(graph.sizes[label] for label in features(joint))
        both = replace(graph, dims=(*graph.dims, Dim(label=joint_label(joint), size=size)), ops=(joint, part))
        values = evaluate(graph, draw.leaves(graph, source, exact=not source.chance(8)))
        ranks = (source.ranks(),) if source.below(2) == 0 else (source.ranks(3), source.integer(1, 3))
        on = draw.digits(both, ranks, source)
        chosen = [source.choice([*self.rows(joint), *uncut(joint)]) for _ in ranks]
        mode = make_mode(joint, chosen)
        read = [self._reading(part, entry, source) for entry in mode.out]
        operands = [
            draw.laid(t, values[t.name], s, on, source) for t, s in zip(joint.operands, mode.operands, strict=True)
        ]
        last = make_mode(part, read)
        found = assemble(run_mode(last, [run_mode(mode, operands, on)], on), on)
        wanted = values[part.output.name]
        given = {tensor.name: values[tensor.name] for tensor in joint.operands}
        return None if alike(found, wanted) else told(both, mode, on, str(last.out), given, wanted, found)

    def _made(self, outer: Op, inner: Op, source: Source) -> Op:
        verdict = self.check(outer, inner)
        source.suits(isinstance(verdict, Ok))
        assert isinstance(verdict, Ok)
        found: Op = verdict.result
        return found

    def _reading(self, part: Op, entry: str, source: Source) -> Choice:
        """A choice in which a part reads what lies so along an axis."""
        ways = [cut for cut in self.part_rows(part) if not isinstance(cut, str) and cut.operands == (entry,)]
        fitting: list[Choice] = [*ways, *(choice for choice in uncut(part) if choice == entry)]
        source.suits(bool(fitting))
        return source.choice(fitting)
