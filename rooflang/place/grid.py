"""The grid heuristic of the RoofLang paper (arXiv 2609.12551, section on the sweep): DP × CP = EP, times PP.

Every operator of a stage is cut by requests over the `dp` axis. Over the `cp` axis a prefill is cut by positions,
with the caches gathered for attention; a decode step runs what precedes attention on every rank, cuts attention by
context and everything after it by requests. Experts are cut over both axes, with dispatch and combine routed. Layers
are spread over the stages as evenly as they go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rooflang.errors import PlacementError, ValueRangeError
from rooflang.hw.cluster import Cluster
from rooflang.hw.mesh import Mesh
from rooflang.ir.blocks import BlockKind, Blocks, split_blocks
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Cut, CutKind, Spec
from rooflang.ir.graph import Graph
from rooflang.ir.layout import Choice, Mode, make_mode
from rooflang.ir.op import Op, signature
from rooflang.ir.tensor import Role
from rooflang.place.connect import connect
from rooflang.place.plan import Plan
from rooflang.units import whole

BATCH, SEQ, EXPERT = "batch", "seq", "expert"


def balanced(layers: int, stages: int) -> tuple[int, ...]:
    """Layers per stage, the remainder on the first stages: 61 over 16 is 13 × 4 and 3 × 3."""
    if not 1 <= stages <= layers:
        raise ValueRangeError(f"{stages} pipeline stages for {layers} layers", where="--pp", expected=f"1 to {layers}")
    whole, rest = divmod(layers, stages)
    return tuple(whole + (s < rest) for s in range(stages))


def partition(blocks: Blocks, layers_per_stage: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """Block labels by stage. Blocks that are no layers go with the layer before them, those at the start with the
    first layer."""
    layers = layer_labels(blocks)
    if sum(layers_per_stage) != len(layers) or min(layers_per_stage) < 1:
        raise ValueRangeError(
            f"the partition {','.join(map(str, layers_per_stage))} has {sum(layers_per_stage)} layers",
            where="--partition",
            expected=f"positive numbers that sum to {len(layers)}",
        )
    stage_of = dict(zip(layers, (stage for stage, count in enumerate(layers_per_stage) for _ in range(count))))
    out: list[list[str]] = [[] for _ in layers_per_stage]
    stage = 0
    for label in blocks.sequence:
        stage = stage_of.get(label, stage)
        out[stage].append(label)
    return tuple(map(tuple, out))


def layer_labels(blocks: Blocks) -> tuple[str, ...]:
    """Labels of the layers: blocks called `layers.<n>`, or all blocks where none is."""
    layers = tuple(label for label in blocks.sequence if label.startswith("layers."))
    return layers or blocks.sequence


def grid_plan(
    graph: Graph,
    cluster: Cluster,
    *,
    dp: int,
    cp: int,
    pp: int,
    partition_layers: Sequence[int] | None = None,
    blocks: Blocks | None = None,
) -> Plan:
    """The grid's plan; `blocks` are those of the graph, or of one with other extents, if they are known.

    Raises `PlacementError` / `ValueRangeError` where DP × CP × PP is not the number of GPUs, or where the requests do
    not divide (the paper's grid skips such points)."""
    dp, cp, pp = (whole(ranks, where=f"--{name}") for name, ranks in (("dp", dp), ("cp", cp), ("pp", pp)))
    if dp * cp * pp != cluster.gpus:
        raise ValueRangeError(
            f"DP {dp} × CP {cp} × PP {pp} = {dp * cp * pp} GPUs",
            where="--dp, --cp, --pp",
            expected=f"a product of {cluster.gpus}",
        )
    blocks = blocks or split_blocks(graph)
    _check_extents(graph, dp, cp)
    counts = balanced(len(layer_labels(blocks)), pp) if partition_layers is None else partition_layers
    if len(counts) != pp:
        raise ValueRangeError(
            f"stages in the partition: {len(counts)}", where="--partition", expected=f"as many as --pp, {pp}"
        )
    roles = [(name, size) for name, size in (("dp", dp), ("cp", cp)) if size > 1]
    mesh = Mesh.lay(cluster, [size for _, size in roles], stages=pp)
    names = [name for name, _ in roles]
    decode = SEQ not in graph.sizes
    modes = {kind.name: _modes(kind, names, decode, pp == 1) for kind in blocks.kinds}
    specs = _boundaries(blocks, modes, names, decode)
    plans = {}
    for kind in blocks.kinds:
        boundary = {t.name: specs[blocks.port_group[(kind.name, t.name)]] for t in (*kind.inputs, *kind.outputs)}
        plans[kind.name] = connect(kind, modes[kind.name], boundary)
    stages = partition(blocks, counts)
    return Plan(mesh=mesh, stages=stages, blocks=plans, boundary=specs, origin=f"grid dp{dp} cp{cp} ep{dp * cp} pp{pp}")


def _check_extents(graph: Graph, dp: int, cp: int) -> None:
    decode = SEQ not in graph.sizes
    if BATCH not in graph.sizes and dp * cp > 1:
        raise PlacementError(
            f"{graph.name} has no dim {BATCH!r} to divide over {dp * cp} ranks (DP {dp}, CP {cp})",
            where="--dp, --cp",
            expected="DP 1 and CP 1",
        )
    needed = {BATCH: dp * cp if decode else dp, EXPERT: dp * cp}
    for label, count in needed.items():
        if graph.sizes.get(label, count) % count:
            size = graph.sizes[label]
            what = "requests" if label == BATCH else "experts"
            raise PlacementError(
                f"{size} {what} do not divide over {count} ranks (DP {dp}, CP {cp})",
                where="--batch" if label == BATCH else "--dp, --cp",
                expected=f"a multiple of {count}",
            )


def _boundaries(
    blocks: Blocks, modes: Mapping[str, Mapping[str, Mode]], names: Sequence[str], decode: bool
) -> dict[int, Spec]:
    """Between blocks: requests over dp; over cp positions in prefill, requests in decode. What the step leaves behind
    and no block reads stays as it was made, partial values summed up."""
    specs: dict[int, Spec] = {}
    for kind in blocks.kinds:
        for port in kind.outputs:
            made = modes[kind.name][port.name].out
            whole = tuple(REPLICATED if state == PARTIAL else state for state in made)
            specs[blocks.port_group[(kind.name, port.name)]] = whole
    for kind in blocks.kinds:
        for port in kind.inputs:
            cut = {name: BATCH if name == "dp" or decode else SEQ for name in names}
            specs[blocks.port_group[(kind.name, port.name)]] = tuple(
                cut[name] if cut[name] in port.dims else REPLICATED for name in names
            )
    return specs


def _modes(kind: BlockKind, names: Sequence[str], decode: bool, one_stage: bool) -> dict[str, Mode]:
    early = _before_attention(kind) if decode else frozenset()
    out: dict[str, Mode] = {}
    for op in kind.ops:
        choices = tuple(_choice(op, name, decode, one_stage, op.name in early) for name in names)
        out[op.output.name] = make_mode(op, choices)
    return out


def _choice(op: Op, axis: str, decode: bool, one_stage: bool, early: bool) -> Choice:
    tokens = BATCH if axis == "dp" or decode else SEQ
    if axis == "cp" and op.kind == "embed" and (decode or one_stage):
        # One leader embeds for its whole CP group, the others wait for it. The published prefill points show the
        # leader's time with one stage and not with several: this condition is fitted to them. In decode, where each
        # rank of the group goes on with all of it, it costs as much if each one embeds.
        return REPLICATED if decode else OWNER
    if axis == "cp" and decode:
        if _over_cache(op):
            return next((cut for cut in signature(op) if _by_context(cut, op)), REPLICATED)
        if early:
            return REPLICATED
    if op.operands[0].fill < 1.0:  # rows that dispatch has sent to their experts
        return _pick(op, [(CutKind.ROUTE, tokens), (CutKind.PAR, EXPERT)])
    return _pick(op, [(kind, tokens) for kind in (CutKind.ROUTE, CutKind.PAR, CutKind.SUM, CutKind.SCAN)])


def _over_cache(op: Op) -> bool:
    """Does it read or write a cache, which lies by context?"""
    return any(t.role is Role.KV_CACHE for t in op.operands)


def _by_context(cut: Cut, op: Op) -> bool:
    """Is it the cut along the positions of the cache: a fold of partial results, or the owner of a position writing
    it?"""
    return cut.kind is CutKind.FOLD or (
        cut.kind is CutKind.PAR and op.kind == "kv_append" and cut.dim == op.output.dims[1]
    )


def _pick(op: Op, wanted: Iterable[tuple[CutKind, str]]) -> Choice:
    """The first cut wanted that the operator's signature has; whole on every rank where it has none."""
    rows = signature(op)
    for kind, dim in wanted:
        for cut in rows:
            if cut.kind is kind and cut.dim == dim and cut.operands != (REPLICATED,) * len(cut.operands):
                return cut
    return REPLICATED


def _before_attention(kind: BlockKind) -> frozenset[str]:
    """Operators of the block that an attention over the cache depends on."""
    by_output = {op.output.name: op for op in kind.ops}
    attends = [op for op in kind.ops if any(cut.combine == "lse" for cut in signature(op))]
    stack = [t.name for op in attends for t in op.operands]
    found: set[str] = set()
    while stack:
        op = by_output.get(stack.pop())
        if op is not None and op.name not in found:
            found.add(op.name)
            stack.extend(t.name for t in op.operands)
    return frozenset(found)
