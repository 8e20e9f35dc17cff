"""A rewrite rule, as text of the width of a page."""

from __future__ import annotations

import re
import textwrap

from rooflang.report.layout import WIDTH, paragraph
from rooflang.rules.record import Rule

#: What stands before the words of a line: the indent, and a label such as `sound` with the gap after it.
_START = re.compile(r" *(?:[a-z]+ {2,})?")

#: A space that is not to be broken at.
_TIED = "\0"

#: Terms at this depth are kept together: those of a rule's premises and conclusions.
_WHOLE = 3


def show_rule(rule: Rule) -> str:
    """The whole record; long lines go on below their words, egglog between its terms."""
    return "\n".join(map(_fitted, rule.describe().splitlines()))


def _fitted(line: str) -> str:
    if len(line) <= WIDTH:
        return line
    if line.lstrip().startswith("("):
        return _egglog(line)
    start = _START.match(line)
    assert start is not None  # it matches nothing, too
    return paragraph(line[start.end() :], first=start[0], then=" " * start.end())


def _egglog(line: str) -> str:
    """A line of a rule: `(rule (PREMISES)`, or `(CONCLUSIONS) :ruleset NAME)` further in."""
    text = line.lstrip()
    indent = len(line) - len(text)
    depth = 0 if text.startswith("(rule") else 1
    tied = []
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        tied.append(_TIED if letter == " " and depth >= _WHOLE else letter)
    then = " " * (indent + len("(rule (" if text.startswith("(rule") else "("))
    wrapped = textwrap.fill(
        "".join(tied),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapped.replace(_TIED, " ")
