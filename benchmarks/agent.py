"""One action and a simulation on whole models: what is laid anew, what is simulated, and the CPU time of both.

Counts do not depend on the machine. Expected: an action lays one kind of block anew and prices what changed in it,
however many layers there are; a simulation runs one representative of each class of equal ranks, however many GPUs.

    python benchmarks/agent.py
"""

from __future__ import annotations

import time

from rooflang.agent import Session
from rooflang.sim.cache import TIMELINES

SETTINGS = [
    ("deepseek-v4-pro", 64, 4096, 1),
    ("deepseek-v4-pro", 256, 4096, 16),
    ("kimi-k3", 64, 64, 1),
]

BLOCK = "layers.4"


def main() -> None:
    heads = f"{'kinds':>6} {'laid':>5} {'kernels':>8} {'new':>4} {'lifted':>7} {'rows':>6}"
    print(f"{'model':<16} {'GPUs':>5} {heads} {'apply s':>8} {'simulate s':>11}")
    for model, gpus, batch, stages in SETTINGS:
        session = Session.start(model, hardware="b300", gpus=gpus, context=65536, batch=batch, assumptions="paper")
        session.run(f"pipeline stages={stages}\ndata_parallel axis=x\nexpert_parallel axis=x")
        before = session.plan
        target = next(op.name for op in session.world.graph.ops if op.block == BLOCK and op.kind == "matmul")
        TIMELINES.clear()
        start = time.process_time()
        session.apply(f"dup_kernel {target}")
        applied = time.process_time()
        result = session.simulate(check_memory=False)
        done = time.process_time()
        after = session.plan
        laid = [name for name in after.blocks if after.blocks[name] is not before.blocks[name]]
        kernels = [mode for name in laid for mode in after.blocks[name].modes.values()]
        old = {id(mode) for name in laid for mode in before.blocks[name].modes.values()}
        new = sum(id(mode) not in old for mode in kernels)
        lifted = len(session.prepared().placed.ops)
        counts = f"{len(after.blocks):>6} {len(laid):>5} {len(kernels):>8} {new:>4} {lifted:>7} {result.operators:>6}"
        print(f"{model:<16} {gpus:>5} {counts} {applied - start:>8.3f} {done - applied:>11.3f}")


if __name__ == "__main__":
    main()
