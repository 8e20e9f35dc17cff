"""Quantities are read exactly, shown readably, and refused with a reason."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import UnitError, ValueRangeError
from rooflang.units import KINDS, parse, parse_count, show_bytes, show_seconds, whole

SIZES = st.floats(min_value=0, max_value=1e300, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("288 GB", "bytes", 288e9),
        ("288GB", "bytes", 288e9),
        ("  1 GiB ", "bytes", 2.0**30),
        ("1.5 TiB", "bytes", 1.5 * 2.0**40),
        (".5 B", "bytes", 0.5),
        ("0 B", "bytes", 0.0),
        ("1e3 B", "bytes", 1e3),
        ("3.35 TB/s", "bytes_per_s", 3.35e12),
        ("50 MiB/s", "bytes_per_s", 50 * 2.0**20),
        ("2250 TFLOP/s", "flop_per_s", 2250e12),
        ("13.5 PFLOP/s", "flop_per_s", 13.5e15),
        ("0.5 us", "s", 0.5e-6),
        ("0.5 \N{MICRO SIGN}s", "s", 0.5e-6),
        ("0.5 \N{GREEK SMALL LETTER MU}s", "s", 0.5e-6),
        ("20 ms", "s", 20e-3),
        ("3 s", "s", 3.0),
    ],
)
def test_reads(text: str, kind: str, value: float) -> None:
    assert parse(text, kind) == pytest.approx(value, rel=1e-15, abs=0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "bytes"),
        ("GB", "bytes"),
        ("288", "bytes"),
        ("288 gb", "bytes"),
        ("288 XB", "bytes"),
        ("288 GB/s", "bytes"),
        ("288 GB GB", "bytes"),
        ("2.8.8 GB", "bytes"),
        ("-1 GB", "bytes"),
        ("1_000 GB", "bytes"),
        ("nan B", "bytes"),
        ("1e400 B", "bytes"),
        ("3.35 TB", "bytes_per_s"),
        ("3.35 TBps", "bytes_per_s"),
        ("2250 TFLOPS", "flop_per_s"),
        ("2250 TB/s", "flop_per_s"),
        ("5 min", "s"),
        ("5 Ms", "s"),
    ],
)
def test_refuses_text(text: str, kind: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text, kind, where="b300.toml: hbm")
    assert caught.value.where == "b300.toml: hbm"
    assert repr(text) in str(caught.value)
    assert caught.value.expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [-1, -0.5, math.nan, math.inf, True])
def test_refuses_numbers_that_are_no_size(number: float, kind: str) -> None:
    with pytest.raises(UnitError):
        parse(number, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_in_the_message_can_itself_be_read(kind: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse("?", kind)
    assert parse(caught.value.expected.split("'")[1], kind) > 0


@pytest.mark.parametrize("text", ["400 Gb/s", "400 Gbit/s", "400 Gbps"])
def test_a_rate_in_bits_is_explained(text: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text, "bytes_per_s")
    assert "50 GB/s" in caught.value.hint


@given(SIZES, st.sampled_from(sorted(KINDS)))
def test_a_number_is_already_si(value: float, kind: str) -> None:
    assert parse(value, kind) == value


@given(SIZES, st.sampled_from([(kind, unit) for kind, units in KINDS.items() for unit in units]))
def test_every_unit_scales_the_number_before_it(value: float, unit: tuple[str, str]) -> None:
    kind, name = unit
    expected = value * KINDS[kind][name]
    if math.isfinite(expected):
        assert parse(f"{value!r} {name}", kind) == expected


@pytest.mark.parametrize(
    ("text", "value"), [("65536", 65536), ("64k", 65536), ("64K", 65536), (" 1 m ", 2**20), ("0", 0), (7, 7)]
)
def test_reads_counts(text: str | int, value: int) -> None:
    assert parse_count(text) == value


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5k", "64 kk", "64g", "6 4", "0x40"])
def test_refuses_counts(text: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_count(text, where="--context")
    assert caught.value.where == "--context"


@pytest.mark.parametrize(
    ("value_s", "text"),
    [
        (0.0, "0 ns"),
        (5e-10, "0.5 ns"),
        (0.5e-6, "500 ns"),
        (1165.49e-6, "1.165 ms"),
        (0.0157, "15.7 ms"),
        (3.441, "3.441 s"),
        (12345.6, "12,346 s"),
        (-0.02, "-20 ms"),
    ],
)
def test_shows_seconds(value_s: float, text: str) -> None:
    assert show_seconds(value_s) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1500, "1.5 kB"),
        (24.811e6, "24.81 MB"),
        (288e9, "288 GB"),
        (1.5e12, "1.5 TB"),
        (2e19, "20,000 PB"),
        (-3e6, "-3 MB"),
    ],
)
def test_shows_bytes(value: float, text: str) -> None:
    assert show_bytes(value) == text


@given(st.floats(min_value=1, max_value=1e18))
def test_what_is_shown_reads_back_as_the_same_size(value: float) -> None:
    assert parse(show_bytes(value).replace(",", ""), "bytes") == pytest.approx(value, rel=6e-4)
    assert parse(show_seconds(value * 1e-9).replace(",", ""), "s") == pytest.approx(value * 1e-9, rel=6e-4)


@pytest.mark.parametrize("value", [True, 8.0, "8", None, [8]])
def test_what_is_no_whole_number(value: object) -> None:
    with pytest.raises(ValueRangeError, match="is not possible") as caught:
        whole(value, where="--batch")
    assert (caught.value.where, caught.value.expected) == ("--batch", "a whole number, 1 or more")
    with pytest.raises(ValueRangeError):
        whole(value, where="--batch", least=None)


def test_whole_numbers_of_all_kinds() -> None:
    import numpy as np

    assert type(whole(np.int64(8), where="--batch")) is int
    assert whole(-3, where="--seed", least=None) == -3
    assert whole(0, where="--images", least=0) == 0
    with pytest.raises(ValueRangeError):
        whole(0, where="--batch")


@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [
        ("80 gb", "bytes", "did you mean GB?"),
        ("1979 TFLOPS", "flop_per_s", "did you mean TFLOP/s?"),
        ("400 Gb/s", "bytes_per_s", "rates are in bytes: 400 Gb/s is 50 GB/s"),
        ("3 parsec", "s", ""),
        ("3", "bytes", ""),
    ],
)
def test_a_unit_that_is_spelled_otherwise_is_named(text: str, kind: str, hint: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text, kind)
    assert caught.value.hint == hint
