"""The certificate of a plan: the script of primitives that leads from the initial graph to it, and its replay.

The script is JSON data. Steps are addressed by (block kind, the blocks of that kind, operator or tensor), in
topological order; replaying them on the initial graph rebuilds the plan from the operators' signatures alone. Nothing
in the script is trusted: a step that no signature supports is refused, and the rebuilt plan has to connect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rooflang.errors import PlacementError
from rooflang.hw.cluster import Cluster
from rooflang.hw.mesh import Mesh
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import OWNER, REPLICATED, CutKind, Spec
from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.kinds.fused import FUSIONS, fuse
from rooflang.ir.layout import Choice, Mode, Step, Transfer, make_mode, make_transfer
from rooflang.ir.op import Op, signature
from rooflang.place.plan import BlockPlan, Plan

SCHEMA = "rooflang.certificate/1"

Json = dict[str, Any]


def certificate(plan: Plan, blocks: Blocks) -> Json:
    """The script as JSON-ready data."""
    return {
        "schema": SCHEMA,
        "graph": blocks.graph.fingerprint,
        "mesh": [axis.size for axis in plan.mesh.axes],
        "stages": [list(labels) for labels in plan.stages],
        "boundary": {str(group): list(spec) for group, spec in sorted(plan.boundary.items())},
        "kinds": [_kind_script(kind, plan.blocks[kind.name]) for kind in blocks.kinds],
    }


def _kind_script(kind: BlockKind, plan: BlockPlan) -> Json:
    kernels = []
    for name, mode in plan.modes.items():
        reads = [
            {"operand": index, "steps": [_transfer_json(t) for t in plan.paths[(name, index)]]}
            for index in range(len(mode.op.operands))
            if (name, index) in plan.paths
        ]
        kernels.append({"kernel": name, "steps": [_step_json(s) for s in mode.derivation], "reads": reads})
    exits = {name: [_transfer_json(t) for t in steps] for name, steps in plan.exits.items() if steps}
    tiers = [{"primitive": "insert_identity", "target": leaf, "dim": tier} for leaf, tier in plan.tiers.items()]
    removed = [{"primitive": "remove_identity", "target": name, "dim": source} for name, source in plan.aliases.items()]
    script = {"kernels": kernels, "exits": exits, "tiers": tiers, "removed": removed}
    return {"kind": kind.name, "blocks": list(kind.blocks), **script}


def _step_json(step: Step) -> Json:
    return {"primitive": step.primitive, "target": step.target, "dim": step.dim, "axis": step.axis}


def _transfer_json(transfer: Transfer) -> Json:
    return {
        "tensor": transfer.tensor,
        "before": list(transfer.before),
        "after": list(transfer.after),
        "steps": [_step_json(s) for s in transfer.derivation],
    }


def replay(script: Json, blocks: Blocks, cluster: Cluster) -> Plan:
    """Rebuild the plan from the initial graph. Raises `PlacementError` naming the first step that does not apply."""
    if script.get("schema") != SCHEMA:
        raise PlacementError(f"schema {script.get('schema')!r}", where="certificate", expected=SCHEMA)
    if script["graph"] != blocks.graph.fingerprint:
        raise PlacementError("it was made for another graph", where="certificate", expected=blocks.graph.fingerprint)
    stages = tuple(tuple(labels) for labels in script["stages"])
    mesh = Mesh.lay(cluster, script["mesh"], stages=len(stages))
    axes = len(mesh.axes)
    plans = {}
    for entry in script["kinds"]:
        kind = blocks.by_name.get(entry["kind"])
        if kind is None:
            raise PlacementError(f"no block kind {entry['kind']!r} in the graph", where="certificate")
        plans[kind.name] = _replay_kind(entry, kind, axes)
    boundary: dict[int, Spec] = {int(group): tuple(spec) for group, spec in script["boundary"].items()}
    plan = Plan(mesh=mesh, stages=stages, blocks=plans, boundary=boundary, origin="replayed certificate")
    check_connected(plan, blocks)
    return plan


def _replay_kind(entry: Json, kind: BlockKind, axes: int) -> BlockPlan:
    modes: dict[str, Mode] = {}
    paths: dict[tuple[str, int], tuple[Transfer, ...]] = {}
    for kernel in entry["kernels"]:
        name = kernel["kernel"]
        modes[name] = _replay_mode(kind, name, kernel["steps"], axes)
        for read in kernel["reads"]:
            paths[(name, read["operand"])] = _replay_path(read["steps"])
    exits = {name: _replay_path(steps) for name, steps in entry["exits"].items()}
    tiers = {step["target"]: step["dim"] for step in entry["tiers"]}
    aliases = {step["target"]: step["dim"] for step in entry["removed"]}
    for name, source in aliases.items():
        if not any(o.output.name == name and o.kind in MOVES and o.operands[0].name == source for o in kind.ops):
            raise PlacementError(f"{name} is not an identity of {source}", where=f"certificate: {kind.name}")
    return BlockPlan(modes=modes, paths=paths, exits=exits, tiers=tiers, aliases=aliases)


def _replay_path(steps: Sequence[Json]) -> tuple[Transfer, ...]:
    out = []
    for step in steps:
        transfer = make_transfer(step["tensor"], tuple(step["before"]), tuple(step["after"]))
        if [_step_json(s) for s in transfer.derivation] != step["steps"]:
            raise PlacementError(
                f"{step['steps']} do not make {transfer.collective}", where=f"certificate: {step['tensor']}"
            )
        out.append(transfer)
    return tuple(out)


def _replay_mode(kind: BlockKind, name: str, steps: Sequence[Json], axes: int) -> Mode:
    where = f"certificate: {kind.name}: {name}"
    op, covers = _fused_op(kind, name, steps, where)
    choices: list[Choice | None] = [None] * axes
    for step in steps:
        axis = step["axis"]
        if axis < 0:
            continue
        if not axis < axes:
            raise PlacementError(f"axis {axis} of a mesh with {axes}", where=where)
        choices[axis] = _applied(op, step, choices[axis], where)
    if any(choice is None for choice in choices):
        raise PlacementError("an axis is left undecided", where=where)
    return make_mode(op, [c for c in choices if c is not None], covers=covers)


def _applied(op: Op, step: Json, before: Choice | None, where: str) -> Choice:
    """The choice along one axis after a step: dup and dedup run the operator whole, split takes a row of its
    signature, fuse turns a token cut into the routed one."""
    primitive, dim = step["primitive"], step["dim"]
    if primitive == "dup_kernel":
        return REPLICATED
    if primitive == "dedup_kernel":
        return OWNER
    if primitive == "split_kernel":
        rows = [c for c in signature(op) if c.dim == dim and c.kind is not CutKind.ROUTE]
    else:
        rows = [
            c for c in signature(op) if c.kind is CutKind.ROUTE and f"{c.dim}→{c.out}" == dim and before is not None
        ]
    if not rows:
        raise PlacementError(f"{primitive} of {op.name} by {dim!r}: its signature has no such row", where=where)
    return rows[0]


def _fused_op(kind: BlockKind, name: str, steps: Sequence[Json], where: str) -> tuple[Op, tuple[str, ...]]:
    """The kernel that makes tensor `name`: an operator of the block, or one fused from several by the script's fuse
    steps."""
    by_output = {op.output.name: op for op in kind.ops}
    if name not in by_output:
        raise PlacementError(f"no operator makes {name!r}", where=where)
    op = by_output[name]
    covers: tuple[str, ...] = (op.name,)
    fusions = {f.name: f for f in FUSIONS}
    for step in steps:
        if step["primitive"] != "fuse_kernels" or step["axis"] >= 0:
            continue
        fusion = fusions.get(step["dim"])
        inner = (
            by_output.get(op.operands[fusion.operand].name) if fusion and fusion.operand < len(op.operands) else None
        )
        if fusion is None or inner is None:
            raise PlacementError(f"no fusion {step['dim']!r} applies to {op.name}", where=where)
        op, covers = fuse(fusion, op, inner), (inner.name, *covers)
    return op, covers


def check_connected(plan: Plan, blocks: Blocks) -> None:
    """Every operand is read in a spec that its path really leads to, and every port leaves in its group's spec."""
    for kind in blocks.kinds:
        block = plan.blocks[kind.name]
        made: dict[str, Spec] = {t.name: plan.boundary[blocks.port_group[(kind.name, t.name)]] for t in kind.inputs}
        made.update({name: mode.out for name, mode in block.modes.items()})
        for name, mode in block.modes.items():
            for index, (tensor, wanted) in enumerate(zip(mode.op.operands, mode.operands)):
                if tensor.name in made:
                    _check_path(
                        made[tensor.name], block.paths.get((name, index), ()), wanted, f"{name} ← {tensor.name}"
                    )
                elif tensor.name in blocks.graph.producer:
                    raise PlacementError(
                        f"{name} reads {tensor.name}, which no kernel of the plan makes", where=kind.name
                    )
        _check_ports(kind, block, plan, blocks, made)


def _check_ports(kind: BlockKind, block: BlockPlan, plan: Plan, blocks: Blocks, made: Mapping[str, Spec]) -> None:
    for tensor in kind.outputs:
        if block.source(tensor.name) not in made:
            raise PlacementError(f"no kernel makes the port {tensor.name}", where=kind.name)
        wanted = plan.boundary[blocks.port_group[(kind.name, tensor.name)]]
        _check_path(made[block.source(tensor.name)], block.exits.get(tensor.name, ()), wanted, f"exit of {tensor.name}")


def _check_path(now: Spec, steps: Sequence[Transfer], wanted: Spec, where: str) -> None:
    for step in steps:
        if step.before != now:
            raise PlacementError(f"a {step.collective} from {step.before} of a value laid {now}", where=where)
        now = step.after
    if now != wanted:
        raise PlacementError(f"laid {now}, read {wanted}", where=where)
