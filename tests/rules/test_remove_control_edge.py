"""remove_control_edge: an order may go unless a write in place hangs on it."""

from __future__ import annotations

import pytest

from rooflang.rules import rule
from rooflang.rules.examples import decode_step
from rooflang.rules.record import Ok, Refusal

RULE = rule("remove_control_edge")


def test_an_order_that_only_data_carry_is_refused() -> None:
    refused = RULE.check(decode_step(), "append", "attend", control=[])
    assert isinstance(refused, Refusal)
    assert refused.code == "no-such-edge"


@pytest.mark.parametrize("edge", [("save", "append"), ("append", "save")])
def test_the_order_of_a_write_in_place_and_a_read_is_kept(edge: tuple[str, str]) -> None:
    """Either order of the two, whichever was chosen."""
    refused = RULE.check(decode_step(), *edge, control=[edge])
    assert isinstance(refused, Refusal)
    assert refused.code == "memory-order"


def test_an_order_that_no_memory_needs_may_go() -> None:
    assert isinstance(RULE.check(decode_step(), "save", "copy", control=[("save", "copy")]), Ok)


def test_another_edge_in_the_same_direction_does_not_replace_it() -> None:
    refused = RULE.check(decode_step(), "save", "append", control=[("save", "append"), ("save", "attend")])
    assert isinstance(refused, Refusal)
    assert refused.code == "memory-order"


def test_a_detour_keeps_the_order() -> None:
    """`append` before `save` directly, and by way of attend, which reads what append wrote."""
    control = [("append", "save"), ("attend", "save")]
    assert isinstance(RULE.check(decode_step(), "append", "save", control=control), Ok)
