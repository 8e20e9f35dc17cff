"""Numbers as people read them."""

from __future__ import annotations

import pytest

from rooflang.report.numbers import (
    show_count,
    show_error,
    show_gain,
    show_gap,
    show_layers,
    show_memory,
    show_rate,
    show_share,
)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (show_rate(90989.27), "90,989.3"),
        (show_rate(599.512), "599.51"),
        (show_rate(88.8574), "88.857"),
        (show_rate(0.29087), "0.291"),
        (show_rate(0.012391), "0.0124"),
        (show_rate(0.0000995), "9.95e-05"),
        (show_rate(0.0), "0"),
        (show_share(0.4312), "43.1%"),
        (show_share(1e-6), "<0.1%"),
        (show_share(0.0), "0.0%"),
        (show_gap(0.0031), "0.31%"),
        (show_gap(None), "–"),
        (show_error(0.0012), "+0.12%"),
        (show_error(-0.0012), "-0.12%"),
        (show_error(-1e-9), "0.00%"),
        (show_gain(0.123), "+12.3%"),
        (show_gain(-0.001), "-0.1%"),
        (show_gain(4.2), "×5.2"),
        (show_gain(-1e-9), "0.0%"),
        (show_count(65536), "64k"),
        (show_count(2**20), "1m"),
        (show_count(1000), "1000"),
        (show_layers([3, *[4] * 14, 2]), "3,4x14,2"),
        (show_layers([61]), "61"),
        (show_memory(151_800_000_000, 288_000_000_000), "151.8 GB  53%"),
    ],
)
def test_shown(shown: str, text: str) -> None:
    assert shown == text
