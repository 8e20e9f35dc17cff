"""How the counts grow: e-nodes, classes, modes, columns and events at 1×, 2× and 4× layers, and at 0 to 3 mesh axes.

Counts do not depend on the machine. Expected: the e-graph does not grow with the layers (blocks of one structure are
shared) nor with the GPUs; events grow linearly with the layers; e-nodes grow by a factor per axis.

    python benchmarks/growth.py
"""

from __future__ import annotations

from dataclasses import replace

from rooflang.assumptions import PAPER
from rooflang.cost import CostModel
from rooflang.eqsat import saturate_all
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.network import network
from rooflang.hw import Cluster, Mesh
from rooflang.ir.blocks import split_blocks
from rooflang.ir.graph import Graph
from rooflang.models import Workload, load
from rooflang.search.api import simulate

MODEL = "deepseek-v4-pro"
WORKLOAD = Workload(stage="decode", context=65536, batch=128)


def graph_of(times: int) -> Graph:
    """The model with `times` its layers: the pattern of layer kinds repeats."""
    model = load(MODEL)
    config = model.config
    layers = config.num_hidden_layers
    ratios = config.compress_ratios[:layers] * times + config.compress_ratios[layers:]
    return replace(model, config=replace_config(config, layers * times, ratios)).build(WORKLOAD, PAPER)


def replace_config(config: object, layers: int, ratios: object) -> object:
    import msgspec

    return msgspec.structs.replace(config, num_hidden_layers=layers, compress_ratios=ratios)


def main() -> None:
    counted = f"{'e-nodes':>9} {'classes':>8} {'modes':>7} {'transfers':>10} {'flow columns':>13}"
    print(f"{'layers':>8} {'axes':>5} {'kinds':>6} {counted}")
    for times in (1, 2, 4):
        graph = graph_of(times)
        blocks = split_blocks(graph)
        for axes in (0, 1, 2) if times > 1 else (0, 1, 2, 3):
            by_kind = saturate_all(blocks, axes)
            frozen = by_kind.values()
            cluster = Cluster.of("gh200", 4**axes)
            cost = CostModel.of(graph, cluster, Mesh.lay(cluster, [4] * axes), PAPER)
            columns = network(CostedGraph.of(blocks, by_kind, cost)).columns
            counts = (
                sum(sum(f.stats.enodes.values()) for f in frozen),
                sum(f.stats.classes for f in frozen),
                sum(len(f.modes) for f in frozen),
                sum(len(f.transfers) for f in frozen),
            )
            row = f"{counts[0]:>9} {counts[1]:>8} {counts[2]:>7} {counts[3]:>10} {columns:>13}"
            print(f"{61 * times:>8} {axes:>5} {len(frozen):>6} {row}")
    print(f"\n{'layers':>8} {'GPUs':>6} {'operators':>10} {'events':>8}")
    for times in (1, 2, 4):
        for gpus in (64, 128):
            cluster = Cluster.of("gb300", gpus)
            sim = simulate(graph_of(times), hardware=cluster, batch=128, dp=gpus, assumptions=PAPER).sim
            print(f"{61 * times:>8} {gpus:>6} {sim.operators:>10} {sim.events:>8}")


if __name__ == "__main__":
    main()
