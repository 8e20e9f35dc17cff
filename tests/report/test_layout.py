"""Tables and paragraphs: aligned, wrapped between words, never shortened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rooflang.report.layout import WIDTH, facts, paragraph, table

cells = st.text(st.sampled_from("ab→ "), max_size=120)


def test_numbers_to_the_right_and_words_to_the_left() -> None:
    assert table(("<name", "size"), [("a", "1"), ("long name", "1,000")]) == (
        "name        size\na              1\nlong name  1,000"
    )


def test_the_last_column_of_words_is_wrapped() -> None:
    text = table(("<name", "<words"), [("a", "word " * 60)])
    lines = text.splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= WIDTH
    assert all(line.startswith("      word") for line in lines[2:])


@given(st.lists(st.tuples(cells, cells, cells), max_size=4))
def test_no_word_is_lost(rows: list[tuple[str, str, str]]) -> None:
    for heads in (("<x", "y", "<z"), ("<x", "<y", "z")):
        text = table(heads, rows)
        shown = text.split()
        assert sorted(shown) == sorted([*"xyz", *(word for row in rows for cell in row for word in cell.split())])


def test_facts_are_aligned_and_wrapped() -> None:
    text = facts([("a", "word " * 60), ("longer", "x"), ("none", "")])
    lines = text.splitlines()
    assert lines[0].startswith("  a       word")
    assert lines[1].startswith("          word")
    assert lines[-2:] == ["  longer  x", "  none"]
    assert max(map(len, lines)) <= WIDTH


def test_a_long_word_is_not_broken() -> None:
    word = "layers.0.experts_w13" * 10
    assert word in paragraph(f"the tensor {word} is large", first="  ")
