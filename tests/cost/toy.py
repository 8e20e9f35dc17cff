"""A toy machine whose numbers are powers of ten, and small operators on it.

One GPU: 1 TFLOP/s in BF16, twice that in FP8, four times in FP4, half in FP32; HBM of 1 TB/s. Domains of four GPUs at
100 GB/s and 1 µs; 10 GB/s and 3 µs between domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rooflang.assumptions import PHYSICAL, Assumptions
from rooflang.cost import CostModel
from rooflang.hw import Cluster, Mesh
from rooflang.ir.graph import Graph
from rooflang.ir.tensor import Num

NVLINK, IB = 100e9, 10e9
NVLINK_S, IB_S = 1e-6, 3e-6
HBM = 1e12
BF16, FP8, FP4, FP32 = 1e12, 2e12, 4e12, 0.5e12

_TEXT = """
name = "toy"
description = "round numbers"

[gpu]
name = "toy"
peaks = { fp4 = "4 TFLOP/s", fp8 = "2 TFLOP/s", bf16 = "1 TFLOP/s", fp32 = "0.5 TFLOP/s" }
source = "made up"

[hbm]
capacity = "1 GB"
bandwidth = "1 TB/s"
latency = "0.5 us"
source = "made up"

[scale_up]
name = "nvlink"
bandwidth = "100 GB/s"
latency = "0.5 us"
largest = 4
source = "made up"

[scale_out]
name = "ib"
bandwidth = "10 GB/s"
latency = "1 us"
source = "made up"

[nic]
name = "nic"
attach = "gpu"
bandwidth = "20 GB/s"
latency = "0.5 us"
source = "made up"

[c2c]
bandwidth = "50 GB/s"
latency = "0.5 us"
source = "made up"

[cpu]
name = "host"
gpus_per_cpu = 1
source = "made up"

[dram]
capacity = "100 GB"
bandwidth = "40 GB/s"
latency = "0.1 us"
source = "made up"
"""


def toy(gpus: int, *, domain: int = 4, cap: str = "") -> Cluster:
    """`gpus` toy GPUs; `cap` is the most that a collective gets out of a domain."""
    text = _TEXT.replace('latency = "1 us"\n', f'latency = "1 us"\ndomain_cap = "{cap}"\n') if cap else _TEXT
    with TemporaryDirectory() as folder:
        path = Path(folder) / "toy.toml"
        path.write_text(text, encoding="utf-8")
        return Cluster.of(path, gpus, domain=domain)


def model(
    graph: Graph,
    mesh: Sequence[int] = (),
    *,
    domain: int = 0,
    assumptions: Assumptions = PHYSICAL,
    batch: Num = None,
    stages: int = 1,
) -> CostModel:
    """Costs of a graph on a toy mesh of these axis sizes; all of it in one domain if `domain` is not given."""
    gpus = stages
    for size in mesh:
        gpus *= size
    cluster = toy(gpus, domain=domain or min(gpus, 4))
    return CostModel.of(graph, cluster, Mesh.lay(cluster, mesh, stages=stages), assumptions, batch=batch)
