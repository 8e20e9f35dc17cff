"""What every test shares: how Hypothesis runs, and that nothing is kept in, or taken from, the user's cache."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: the first example of a property may import numpy or egglog. In CI the examples are the same
# every time, so that a red run can be repeated.
settings.register_profile("rooflang", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("rooflang")

os.environ["ROOFLANG_CACHE"] = "off"
