"""Every operator kind in an e-graph: whatever plan is drawn, it computes what the kind computes."""

from __future__ import annotations

import pytest

from rooflang.soundness.cases import CASES
from rooflang.soundness.egraphs import Saturations
from rooflang.soundness.search import falsify

#: What may be neither copied, left to one, nor cut runs on one GPU only: over any axis there is no plan.
_ALONE = {"stateful_sample"}


@pytest.mark.parametrize("name", sorted(set(CASES) - _ALONE))
def test_plans_of_every_kind(name: str) -> None:
    found = falsify(Saturations(names=(name,)), examples=6)
    assert found is None, found.message
