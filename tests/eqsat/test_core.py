"""The core rulesets: what a leaf and a port may be asked for."""

from __future__ import annotations

import pytest

from rooflang.eqsat import core
from rooflang.eqsat.engine import Engine
from rooflang.eqsat.program import ALL, program
from rooflang.rules.theory import Theory

from .blocks import layer, mlps

KIND = layer(mlps(2))


def answers(tensor: str, spec: tuple[str, ...]) -> set[str]:
    """Constructors of the e-nodes that answer a view of a leaf or port."""
    theory = Theory.of(KIND, len(spec))
    number = theory.number[tensor]
    engine = Engine()
    engine.load((*program(theory, frozenset()).commands, f"(View $t{number} {theory.encode(spec)})"))
    while engine.step(ALL):
        pass
    rows = engine.freeze().rows
    (term,) = rows[f"$t{number}"]
    (view,) = [row for row in rows["View"] if row.inputs == (term.output, theory.encode(spec))]
    return {name for name in ("Hold", "PortAt", *core.TRANSFERS) if view.output in {row.output for row in rows[name]}}


@pytest.mark.parametrize(
    ("spec", "held"), [(("R",), True), (("ffn",), True), (("O",), True), (("P",), False), (("ffn", "P"), False)]
)
def test_a_weight_is_held_in_any_layout_but_partial(spec: tuple[str, ...], held: bool) -> None:
    assert ("Hold" in answers("layers.0.w1", spec)) == held


@pytest.mark.parametrize(("spec", "arrives"), [(("R",), True), (("batch",), True), (("O",), False), (("P",), False)])
def test_a_port_arrives_in_any_layout_of_a_boundary(spec: tuple[str, ...], arrives: bool) -> None:
    assert ("PortAt" in answers("x", spec)) == arrives


def test_a_weight_is_never_transferred_and_a_port_is() -> None:
    assert answers("layers.0.w1", ("R",)) == {"Hold"}
    assert answers("x", ("R",)) == {"PortAt", "AllGather", "Broadcast"}
    assert answers("x", ("batch",)) == {"PortAt", "AllToAll", "Slice"}
