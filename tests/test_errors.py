"""Errors say what, where, what was expected and what to do; and they survive the way to another process."""

from __future__ import annotations

import pickle

import pytest

from rooflang import errors
from rooflang.errors import RefusedError, RooflangError, UnknownNameError


def all_kinds() -> list[type[RooflangError]]:
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, RooflangError)]


def test_message_has_a_line_for_each_part() -> None:
    error = RooflangError("batch is 0", where="--batch", expected="1 or more", hint="try --batch 64")
    assert str(error) == "--batch: batch is 0\n  expected: 1 or more\n  hint: try --batch 64"


def test_message_leaves_out_parts_that_are_not_given() -> None:
    assert str(RooflangError("batch is 0")) == "batch is 0"
    assert str(RooflangError("batch is 0", hint="try 64")) == "batch is 0\n  hint: try 64"


def test_unknown_name_lists_the_known_and_offers_the_nearest() -> None:
    error = UnknownNameError("hardware", "b30", iter(["h200", "gb300", "b300"]), where="--hardware")
    assert str(error).splitlines() == [
        "--hardware: unknown hardware 'b30'",
        "  expected: one of b300, gb300, h200",
        "  hint: did you mean b300 or gb300?",
    ]


def test_unknown_name_is_compared_without_regard_to_case() -> None:
    error = UnknownNameError("model", "deepseek-v4-PRO", ["DeepSeek-V4-Pro", "kimi-k3"])
    assert error.hint == "did you mean DeepSeek-V4-Pro?"


def test_unknown_name_far_from_all_offers_nothing() -> None:
    assert UnknownNameError("model", "zzz", ["kimi-k3"]).hint == ""


def test_unknown_name_where_nothing_is_known() -> None:
    error = UnknownNameError("rule", "split", [])
    assert error.expected == "no rule is known here"
    assert error.hint == ""


def test_codes_tell_the_kinds_apart_and_no_error_exits_with_success() -> None:
    codes = [kind.code for kind in all_kinds()]
    assert len(codes) >= 9
    assert len(set(codes)) == len(codes)
    # Python itself exits with 1 on an uncaught exception; a user's mistake must be told apart from a bug.
    assert all(kind.exit_code >= 2 for kind in all_kinds())


@pytest.mark.parametrize("kind", [each for each in all_kinds() if each is not UnknownNameError])
def test_pickle_keeps_every_part(kind: type[RooflangError]) -> None:
    code = ("code",) if kind is RefusedError else ()
    error = kind(*code, "what", where="where", expected="expected", hint="hint")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)


def test_pickle_keeps_an_unknown_name() -> None:
    error = UnknownNameError("hardware", "b30", ["b300", "H200"], where="--hardware")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is UnknownNameError
    assert str(copy) == str(error)
