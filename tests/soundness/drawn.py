"""Claims as Hypothesis tests: their examples drawn, and made small, by Hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rooflang.soundness.search import Property
from rooflang.soundness.source import Source, Unsuitable


class Drawn(Source):
    """Answers that Hypothesis gives."""

    def __init__(self, data: st.DataObject, *, wide: bool) -> None:
        self.wide = wide
        self._data = data

    def below(self, bound: int) -> int:
        return self._data.draw(st.integers(0, bound - 1))


def hold(claim: Property, examples: int) -> None:
    """Fail with the smallest counterexample that Hypothesis finds. Half of the examples have no extent of 1."""

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data(), st.booleans())
    def run(data: st.DataObject, wide: bool) -> None:
        try:
            with np.errstate(all="ignore"):
                message = claim(Drawn(data, wide=wide))
        except Unsuitable:
            assume(False)
        else:
            assert message is None, message

    run()
