"""Min-marginals against trying every combination of states."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rooflang.extractors.marginals import marginals

from .test_tables import SIZES, Sum, built, cases, value


@given(cases(), st.sampled_from([(), (2,), (3, 1)]), st.integers(0, 5))
def test_what_the_best_choice_with_a_state_costs(cases: list[Sum], keep: tuple[int, ...], seed: int) -> None:
    found = built(cases)
    found.eliminate(keep, 10_000)
    rng = np.random.default_rng(seed)
    names = tuple(sorted(keep))
    extra = rng.integers(0, 9, [1, *(SIZES[name] for name in names)]).astype(np.float64)
    out = marginals(found, (names, extra))
    for variable, count in enumerate(SIZES):
        for state in range(count):
            ranges = [[state] if each == variable else range(size) for each, size in enumerate(SIZES)]
            for point, case in enumerate(cases):
                least = min(value(case, s) + float(extra[(0, *(s[name] for name in names))]) for s in product(*ranges))
                got = out[variable][min(point, len(out[variable]) - 1)][state]
                assert got == least
