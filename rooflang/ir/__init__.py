"""The intermediate representation: labelled tensors, operators by signature, graphs, layouts."""

from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Cut, CutKind, Spec
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.layout import Mode, Step, Transfer, make_mode, make_transfer
from rooflang.ir.op import Op, OpKind, op_kind, op_kinds, signature
from rooflang.ir.shards import shard_sizes
from rooflang.ir.tensor import DTYPES, Dim, Dtype, Role, Tensor

__all__ = [
    "DTYPES",
    "OWNER",
    "PARTIAL",
    "REPLICATED",
    "Cut",
    "CutKind",
    "Dim",
    "Dtype",
    "Graph",
    "GraphBuilder",
    "Mode",
    "Op",
    "OpKind",
    "Role",
    "Spec",
    "Step",
    "Tensor",
    "Transfer",
    "make_mode",
    "make_transfer",
    "op_kind",
    "op_kinds",
    "shard_sizes",
    "signature",
]
