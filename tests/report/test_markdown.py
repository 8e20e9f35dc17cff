"""Tables in Markdown."""

from __future__ import annotations

from rooflang.report.markdown import markdown_table


def test_words_to_the_left_numbers_to_the_right_bars_escaped() -> None:
    assert markdown_table(("<name", "size"), [("a|b", "1")]) == "| name | size |\n| --- | ---: |\n| a\\|b | 1 |"
