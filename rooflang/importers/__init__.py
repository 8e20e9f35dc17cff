"""Programs from elsewhere: `torch.export` to a compute graph, and execution traces beside a graph."""

from rooflang.importers.convert import to_graph
from rooflang.importers.exported import Exported, Node, read_exported
from rooflang.importers.trace import read_trace
from rooflang.importers.work import Comparison, Work, compare, graph_work

__all__ = [
    "Comparison",
    "Exported",
    "Node",
    "Work",
    "compare",
    "graph_work",
    "read_exported",
    "read_trace",
    "to_graph",
]
