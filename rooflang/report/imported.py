"""What `rooflang import` and `rooflang validate` print."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rooflang.importers.exported import Exported
from rooflang.importers.work import COMPARED, Comparison, graph_work
from rooflang.ir.graph import Graph
from rooflang.ir.tensor import Role
from rooflang.report.layout import facts, paragraph, table

#: PyTorch's names of operators that are products; those of attention have the word in their names.
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_int_mm")


def imported_facts(program: Exported, graph: Graph) -> dict[str, Any]:
    """The graph in numbers, ready for JSON: operators, dims, FLOPs by sort beside PyTorch's count."""
    works = graph_work(graph)
    counted = {"product": 0, "attention": 0, "other": 0}
    for name, flops in program.flops.items():
        bare = name.partition(".")[0]
        sort = "product" if bare in _PRODUCTS else "attention" if "attention" in bare else "other"
        counted[sort] += flops
    opaque = Counter(str(op.attr("function")) for op in graph.ops if op.kind == "opaque")
    return {
        "name": program.name,
        "torch": program.torch,
        "operators": len(graph.ops),
        "kinds": dict(Counter(op.kind for op in graph.ops).most_common()),
        "opaque": dict(opaque),
        "dims": dict(graph.sizes),
        "weight_bytes": graph.leaf_bytes(Role.WEIGHT),
        "flops": {sort: sum(work.flops for work in works if work.sort == sort) for sort in COMPARED},
        "torch_flops": counted,
    }


def show_imported(found: dict[str, Any]) -> str:
    """The same as text."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in found["kinds"].items())
    dims = ", ".join(f"{label} {size:,}" for label, size in found["dims"].items())
    rows = [
        ("program", f"{found['name']}, exported by torch {found['torch']}"),
        ("operators", f"{found['operators']}: {kinds}"),
        ("dims", dims),
        ("weights", f"{found['weight_bytes']:,.0f} B"),
    ]
    for sort in COMPARED:
        ours, theirs = found["flops"][sort], found["torch_flops"][sort]
        same = "the same as" if ours == theirs else f"{ours - theirs:+,.0f} beside {theirs:,.0f} of"
        rows.append((f"FLOPs, {sort}", f"{ours:,.0f}, {same} PyTorch's counter"))
    text = facts(rows, indent="")
    if not found["opaque"]:
        return text
    names = ", ".join(f"{name} ({count})" for name, count in found["opaque"].items())
    return f"{text}\n\n{paragraph(f'Opaque, which nothing may cut, and whose FLOPs are not known: {names}.')}"


def show_comparison(found: Comparison) -> str:
    """A graph beside a trace, as text."""
    heads = ("<operators", "graph", "trace", "FLOPs, graph", "FLOPs, trace", "bytes, graph", "bytes, trace")
    rows = []
    for line in found.lines:
        numbers = [f"{each:,.0f}" for pair in (line.ops, line.flops, line.bytes) for each in pair]
        rows.append([line.sort, *numbers])
    parts = [table(heads, rows)]
    if found.products:
        unlike = [
            (f"{rows_:,} × {inner:,}", f"{ours:,}", f"{theirs:,}")
            for (rows_, inner), (ours, theirs) in found.products.items()
        ]
        parts.append(table(("<products of", "columns, graph", "columns, trace"), unlike))
    parts.append(f"FLOPs differ by {found.difference:.2%} at most")
    return "\n\n".join(parts)
