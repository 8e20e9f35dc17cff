"""What a simulation costs: one table, printed in a minute or two.

    python benchmarks/simulator.py

Every case runs in a process of its own. CPU seconds are those of that process after its imports; memory is what its
peak grew by since then. `prepare` leads from the model's name to the placed graph, `simulate` from there to the result.
The second table runs one and the same step with every rank's own operators, in our engine and in SimPy, and says how
many times longer than the quotient that takes; all have to end at the same time.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import msgspec
import simpy

from rooflang.cost.model import CostModel
from rooflang.errors import CapacityError
from rooflang.models import Model, load
from rooflang.place.grid import grid_plan
from rooflang.place.lower import PlacedGraph, lower
from rooflang.search.problem import Problem
from rooflang.sim.build import build
from rooflang.sim.engine import run
from rooflang.sim.fleet import DeviceOverride
from rooflang.sim.pipeline import simulate_pipeline
from rooflang.sim.program import CAP_ONE, Program, ProgramBuilder
from rooflang.sim.simulate import simulate
from rooflang.sim.verdict import verdict

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=sorted(CASES), help="run one case in this process and print it as JSON")
    parser.add_argument("--json", metavar="FILE", help="also write all rows there")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measured(CASES[options.case])))
        return
    rows = [{"case": name, **in_process(name)} for name in CASES]
    show(rows)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


def in_process(name: str) -> Row:
    command = [sys.executable, __file__, "--case", name]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def show(rows: Sequence[Row]) -> None:
    print(f"{'case':52} {'operators':>10} {'prepare':>9} {'simulate':>9} {'memory':>8}   has to be")
    for row in rows:
        if "ratio" in row:
            continue
        limits = ", ".join(f"{limit}" for limit in row.get("limits", ()))
        print(
            f"{row['case']:52} {row['operators']:>10,} {row['prepare_s']:>7.2f} s {row['simulate_s']:>7.2f} s "
            f"{row['memory_mb']:>5.0f} MB   {limits}"
        )
    print()
    print(f"{'the same step':52} {'operators':>10} {'CPU':>9} {'memory':>11} {'times the quotient':>19}")
    base = next(row for row in rows if row.get("ratio") == "quotient")
    for row in rows:
        if "ratio" in row:
            assert row["step_s"] == base["step_s"] or abs(row["step_s"] / base["step_s"] - 1) < 1e-9
            print(
                f"{row['case']:52} {row['operators']:>10,} {row['simulate_s']:>7.2f} s {row['memory_mb']:>8.0f} MB "
                f"{row['simulate_s'] / base['simulate_s']:>17.0f} ×"
            )


def measured(case: Callable[[], Row]) -> Row:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = case()
    row["memory_mb"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return row


# -- cases ------------------------------------------------------------------------------------------------------------


@dataclass
class Watch:
    """CPU seconds since the last look."""

    last_s: float = field(default_factory=time.process_time)

    def lap(self) -> float:
        now = time.process_time()
        passed, self.last_s = now - self.last_s, now
        return passed


def prepared(
    model: str | Model, hardware: str, gpus: int, batch: int, *, dp: int, pp: int = 1, partition: Sequence[int] = ()
) -> tuple[PlacedGraph, CostModel]:
    problem = Problem.of(model, hardware=hardware, gpus=gpus, stage="decode", context=65536)
    graph = problem.graph.resized(batch=dp)
    plan = grid_plan(graph, problem.cluster, dp=dp, cp=1, pp=pp, partition_layers=partition or None)
    return lower(plan, problem.blocks), problem.cost(plan.mesh, batch)


def flash() -> Row:
    watch = Watch()
    placed, cost = prepared("deepseek-v4-flash", "gb300", 64, 65536, dp=64)
    prepare_s = watch.lap()
    found = simulate(placed, cost, tokens=1)
    return row(prepare_s, watch.lap(), found.operators, "≤ 0.5 CPU-s in all", "≤ 150 MB")


def pro() -> Row:
    watch = Watch()
    placed, cost = prepared("deepseek-v4-pro", "b300", 256, 4096, dp=16, pp=16, partition=[3] + [4] * 14 + [2])
    prepare_s = watch.lap()
    found = simulate(placed, cost, tokens=1)
    return row(prepare_s, watch.lap(), found.operators)


def k3(*overrides: DeviceOverride) -> Row:
    watch = Watch()
    placed, cost = prepared("kimi-k3", "b300", 128, 4096, dp=128)
    prepare_s = watch.lap()
    found = simulate(placed, cost, tokens=1, overrides=overrides)
    return row(prepare_s, watch.lap(), found.operators, "≤ 1 s", "≤ 150 MB")


def one_slow() -> Row:
    return k3(DeviceOverride(gpus=(13,), compute=0.9, hbm=0.9))


def large_pipeline() -> Row:
    """The same architecture with 1,024 experts, so that they divide over the 512 GPUs of a stage."""
    watch = Watch()
    model = load("kimi-k3")
    text = msgspec.structs.replace(model.config.text_config, num_experts=1024)
    wide = replace(model, config=msgspec.structs.replace(model.config, text_config=text))
    placed, cost = prepared(wide, "b300", 4096, 32 * 1024, dp=512, pp=8)
    prepare_s = watch.lap()
    found = simulate_pipeline(placed, cost, tokens=1, micro_batches=32, steps=1)
    return row(prepare_s, watch.lap(), found.operators, "≤ 3 s", "≤ 300 MB")


def asymmetric() -> Row:
    """100,000 operators on 64 devices that no two of which are alike: there is nothing to fold."""
    watch = Watch()
    rng = Random(0)
    builder = ProgramBuilder()
    devices = [[builder.add_resource(f"{what} {i}") for what in ("compute", "memory", "link")] for i in range(64)]
    last: list[int] = [-1] * 64
    for number in range(100_000):
        device = rng.randrange(64)
        compute, memory, link = devices[device]
        parts = [(compute, rng.random(), CAP_ONE, False), (memory, rng.random(), CAP_ONE, False)]
        if rng.random() < 0.3:
            parts.append((link, rng.random(), CAP_ONE, True))
        after = {last[device], last[rng.randrange(64)]} - {-1}
        stream = [(device, rng.randrange(2))]
        last[device] = builder.add_op(f"op {number}", after, stream, parts, rng.random() * 0.1)
    program = builder.build()
    prepare_s = watch.lap()
    run(program)
    return row(prepare_s, watch.lap(), program.op_count)


def hopeless() -> Row:
    watch = Watch()
    placed, cost = prepared("deepseek-v4-flash", "gb300", 64, 2**22, dp=64)
    prepare_s = watch.lap()
    try:
        simulate(placed, cost, tokens=1)
    except CapacityError:
        return row(prepare_s, watch.lap(), 0, "≤ 0.1 s")
    raise SystemExit("it fits, which it should not")


def bound_only() -> Row:
    watch = Watch()
    placed, cost = prepared("deepseek-v4-pro", "b300", 256, 4096, dp=16, pp=16)
    prepare_s = watch.lap()
    verdict(placed.plan, placed.blocks, cost)
    return row(prepare_s, watch.lap(), 0)


def row(prepare_s: float, simulate_s: float, operators: int, *limits: str) -> Row:
    return {"prepare_s": prepare_s, "simulate_s": simulate_s, "operators": operators, "limits": limits}


# -- the same step, three ways ----------------------------------------------------------------------------------------


def same_step(ratio: str, explicit: bool, engine: Callable[[Program], float]) -> Row:
    placed, cost = prepared("deepseek-v4-flash", "gb300", 64, 65536, dp=64)
    watch = Watch()
    program = build(placed, cost, explicit=explicit).program
    makespan_s = engine(program)
    found = row(0.0, watch.lap(), program.op_count)
    return {**found, "ratio": ratio, "step_s": makespan_s}


def ours(program: Program) -> float:
    return run(program).makespan_s


class Shared:
    """A resource in SimPy: at every change, what is left of every user is updated and the next end is set anew."""

    def __init__(self, env: simpy.Environment) -> None:
        self.env = env
        self.left: dict[simpy.Event, list[float]] = {}
        self.changed_s = 0.0
        self.version = 0

    def use(self, seconds: float, cap: float) -> simpy.Event:
        self.update()
        done = self.env.event()
        self.left[done] = [seconds, cap]
        self.reset()
        return done

    def rate(self) -> float:
        return 1 / max(1.0, sum(cap for _, cap in self.left.values()))

    def update(self) -> None:
        passed = (self.env.now - self.changed_s) * self.rate()
        self.changed_s = self.env.now
        for user in self.left.values():
            user[0] -= passed

    def reset(self) -> None:
        self.version += 1
        if self.left:
            self.env.process(self.wake(self.version))

    def wake(self, version: int) -> Generator[simpy.Event, None, None]:
        yield self.env.timeout(max(0.0, min(left for left, _ in self.left.values())) / self.rate())
        if version != self.version:
            return
        self.update()
        for done in [done for done, (left, _) in self.left.items() if left <= 1e-15]:
            del self.left[done]
            done.succeed()
        self.reset()


def in_simpy(program: Program) -> float:
    """The step as one would write it in SimPy: a process for each operator, an event for each component."""
    env = simpy.Environment()
    resources = [Shared(env) for _ in program.resource_names]
    starts, pred_start = program.component_start.tolist(), program.pred_start.tolist()
    pred, where = program.pred.tolist(), program.component_resource.tolist()
    seconds, cap = program.component_s.tolist(), (program.component_cap / CAP_ONE).tolist()
    is_net, alpha_s = program.component_is_net.tolist(), program.op_alpha_s.tolist()
    done = defaultdict(env.event)

    def operator(op: int) -> Generator[simpy.Event, None, None]:
        if pred_start[op] < pred_start[op + 1]:
            yield env.all_of([done[before] for before in pred[pred_start[op] : pred_start[op + 1]]])
        parts = range(starts[op], starts[op + 1])
        net = [resources[where[i]].use(seconds[i], cap[i]) for i in parts if is_net[i]]
        local = [resources[where[i]].use(seconds[i], cap[i]) for i in parts if not is_net[i]]
        if net or alpha_s[op]:
            local.append(env.process(network(net, alpha_s[op])))
        if local:
            yield env.all_of(local)
        done[op].succeed()

    def network(parts: list[simpy.Event], latency_s: float) -> Generator[simpy.Event, None, None]:
        if parts:
            yield env.all_of(parts)
        yield env.timeout(latency_s)

    for op in range(program.op_count):
        env.process(operator(op))
    env.run()
    return float(env.now)


CASES: dict[str, Callable[[], Row]] = {
    "V4 Flash, 64 GB300, batch 65,536": flash,
    "V4 Pro, 256 B300, PP16": pro,
    "Kimi K3 (93 layers, 896 experts), 128 B300": k3,
    "the same, one GPU of 128 slower": one_slow,
    "4,096 B300, PP8 × 32 micro-batches": large_pipeline,
    "asymmetric, 100,000 operators": asymmetric,
    "out of memory: V4 Flash, 64 GB300, batch 4 M": hopeless,
    "bounds only: V4 Pro, 256 B300, PP16": bound_only,
    "quotient: V4 Flash, 64 GB300": lambda: same_step("quotient", False, ours),
    "every rank's operators, our engine": lambda: same_step("explicit", True, ours),
    "every rank's operators, SimPy": lambda: same_step("SimPy", True, in_simpy),
}

if __name__ == "__main__":
    main()
