"""Models: the compute graph of one prefill or decode step, built from the fields of a published `config.json`.

This package is a folder at the top level of the repository, linked into `rooflang`.

>>> from rooflang.models import Workload, load
>>> graph = load("deepseek-v4-pro").build(Workload(stage="decode", context=65536, batch=512))
>>> graph.sizes["hidden"], graph.sizes["ctx4"]
(7168, 16384)
"""

if __name__ != "rooflang.models":
    raise ImportError("import this package as `rooflang.models`, not as `models`")

from rooflang.models.registry import Description, Model, load, model_names
from rooflang.models.workload import STAGES, Workload

__all__ = ["STAGES", "Description", "Model", "Workload", "load", "model_names"]
