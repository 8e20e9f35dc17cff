"""What a bench answers with: data of bounded size, and errors as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from rooflang.errors import RefusedError, RooflangError, ValueRangeError

#: Entries of a page, and the most that may be asked for.
PAGE, LONGEST_PAGE = 25, 200

#: Characters of one argument, and of a line in an answer.
LONGEST_ARGUMENT, LONGEST_LINE = 20_000, 500

_Entry = TypeVar("_Entry")


def page_of(entries: Sequence[_Entry], page: int, size: int) -> tuple[Sequence[_Entry], dict[str, int]]:
    """Entries of a page, counted from 1, and where it stands. Raises `ValueRangeError`."""
    if not 1 <= size <= LONGEST_PAGE:
        raise ValueRangeError(f"{size} entries", where="size", expected=f"1 to {LONGEST_PAGE}")
    pages = max(1, -(-len(entries) // size))
    if not 1 <= page <= pages:
        raise ValueRangeError(f"page {page}", where="page", expected=f"1 to {pages}")
    return entries[(page - 1) * size : page * size], {"page": page, "pages": pages, "total": len(entries)}


def short(text: str) -> str:
    """A line that is no longer than an answer may have."""
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


def check_text(text: str, where: str) -> str:
    """The text, if it is short and printable. Raises `ValueRangeError`."""
    if len(text) > LONGEST_ARGUMENT:
        raise ValueRangeError(
            f"{len(text):,} characters", where=where, expected=f"at most {LONGEST_ARGUMENT:,}, in several calls"
        )
    if not all(character.isprintable() or character in "\n\t" for character in text):
        raise ValueRangeError("control characters", where=where, expected="printable text")
    return text


def error_data(error: RooflangError) -> dict[str, Any]:
    """An error as data: its code, what, where, expected and hint; for a refused action also the rule's code."""
    data: dict[str, Any] = {"error": error.code, "what": short(error.what)}
    if isinstance(error, RefusedError):
        data["refusal"] = error.refusal
    for name in ("where", "expected", "hint"):
        if getattr(error, name):
            data[name] = short(getattr(error, name))
    return data
