"""States that are left out, against the bound with each of them fixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflang.extractors.dual import dual, shared_groups
from rooflang.extractors.forms import Points, Weights
from rooflang.extractors.layouts import IntArray
from rooflang.extractors.task import Task
from rooflang.extractors.worthwhile import Line, eliminated, worthwhile
from rooflang.ir import Graph, GraphBuilder

from .graphs import Case, residual, two_layers

LIMIT = 1_000_000


def aside(batch: int, hidden: int, ffn: int, *, layers: int) -> Graph:
    """A value that layers pass by: they lack the port group in which it goes from the first block to the last one."""
    g = GraphBuilder("aside", batch=batch, hidden=hidden, ffn=ffn)
    g.block = "start"
    rows = g.input("rows", "batch ffn")
    x = g.op("x", "matmul", [rows, g.weight("in", "ffn hidden")], "batch hidden")
    kept = g.op("kept", "matmul", [rows, g.weight("by", "ffn hidden")], "batch hidden")
    for layer in range(layers):
        g.block = name = f"layers.{layer}"
        up = g.op(f"{name}.up", "matmul", [x, g.weight(f"{name}.w1", "hidden ffn")], "batch ffn")
        x = g.op(f"{name}.down", "matmul", [up, g.weight(f"{name}.w2", "ffn hidden")], "batch hidden")
    g.block = "end"
    return g.build(g.op("sum", "add", [x, kept], "batch hidden"))


def _all(task: Task) -> dict[str, list[IntArray]]:
    forms = dual(task.costed, task.at, task.keep).forms
    return {name: [np.arange(count) for count in form.tables(()).counts] for name, form in forms.items()}


def _bound(task: Task, alive: dict[str, list[IntArray]], points: Points, line: Line) -> float:
    """The least total over layouts between blocks."""
    groups, total = shared_groups(task.costed), line.added[0]
    for name, form in dual(task.costed, task.at, task.keep).forms.items():
        total = total + line.counts[name] * eliminated(form, groups, points, alive[name], LIMIT)[1][0]
    return float(total.min())


@settings(max_examples=20)
@given(
    st.sampled_from([two_layers, residual, aside]),
    st.sampled_from([8, 1024]),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.sampled_from([1.001, 1.05, 1.3]),
    st.integers(0, 3),
)
def test_a_state_stays_if_the_bound_with_it_is_low(
    build: type, batch: int, share: float, most: float, seed: int
) -> None:
    task = Case.of(build(batch, 64, 512, layers=2), mesh=(4,), domain=2).task()
    points: Points = ((task.at, Weights(local=share, exposed=1.0 - share)),)
    forms, groups, alive = dual(task.costed, task.at, task.keep).forms, shared_groups(task.costed), _all(task)
    rng = np.random.default_rng(seed)
    counts = {name: float(rng.integers(1, 4)) for name in forms}
    added = rng.uniform(0.0, 1e-7, [1, *(len(specs) for specs in groups.values())])
    line = Line(counts=counts, added=added)
    most_s = most * _bound(task, alive, points, line)
    left = worthwhile(forms, groups, alive, points, line, most_s, LIMIT)
    assert left is not None
    for name in forms:
        for variable, states in enumerate(alive[name]):
            for state in states:
                one: Sequence[IntArray] = [
                    states[state : state + 1] if v == variable else s for v, s in enumerate(alive[name])
                ]
                bound = _bound(task, {**alive, name: list(one)}, points, line)
                if abs(bound / most_s - 1.0) > 1e-8:
                    assert (state in left[name][variable]) == (bound < most_s)


def test_nothing_is_left_where_no_plan_is_as_fast() -> None:
    task = Case.of(two_layers(8, 64, 512, layers=2), mesh=(4,), domain=2).task()
    points: Points = ((task.at, Weights(local=0.5, exposed=0.5)),)
    forms, groups, alive = dual(task.costed, task.at, task.keep).forms, shared_groups(task.costed), _all(task)
    line = Line(counts=dict.fromkeys(forms, 1.0), added=np.zeros([1, *(len(specs) for specs in groups.values())]))
    bound = _bound(task, alive, points, line)
    assert worthwhile(forms, groups, alive, points, line, 0.99 * bound, LIMIT) is None
    with pytest.raises(Exception, match="too many layouts"):
        worthwhile(forms, groups, alive, points, line, 1.1 * bound, 1)
