"""The adapter: what it asks of egglog's bindings is what they do, in every version that is supported."""

from __future__ import annotations

from rooflang.eqsat.engine import LINES_PER_PARSE, Engine

COUNTING = (
    "(datatype N (Num i64) (Next N))",
    "(relation Limit (i64))",
    "(ruleset count)",
    "(rule ((= e (Num n)) (Limit m) (< n m)) ((union (Next e) (Num (+ n 1)))) :ruleset count)",
)


def counting(limit: int) -> Engine:
    engine = Engine()
    assert engine.load((*COUNTING, f"(Limit {limit})", "(let $zero (Num 0))")) == len(COUNTING) + 2
    return engine


def test_a_step_says_whether_anything_changed() -> None:
    engine = counting(3)
    assert [engine.step("count") for _ in range(5)] == [True, True, True, False, False]
    assert engine.sizes() == {"Num": 4, "Next": 3, "Limit": 1}


def test_frozen_rows_are_integers_and_classes_compare() -> None:
    engine = counting(2)
    while engine.step("count"):
        pass
    rows = engine.freeze().rows
    class_of = {row.inputs[0]: row.output for row in rows["Num"]}
    assert sorted(class_of) == [0, 1, 2]
    assert {row.inputs[0]: row.output for row in rows["Next"]} == {
        class_of[0]: class_of[1],
        class_of[1]: class_of[2],
    }
    assert [row.output for row in rows["$zero"]] == [class_of[0]]
    assert [row.inputs for row in rows["Limit"]] == [(2,)]


def test_long_programs_are_parsed_in_pieces() -> None:
    engine = counting(0)
    count = 3 * LINES_PER_PARSE + 1
    assert engine.load(f"(Limit {-n - 1})" for n in range(count)) == count
    assert engine.sizes()["Limit"] == count + 1


def test_freezing_adds_nothing() -> None:
    engine = counting(5)
    engine.step("count")
    before = engine.sizes()
    first, second = engine.freeze(), engine.freeze()
    assert engine.sizes() == before
    assert {name: len(rows) for name, rows in first.rows.items()} == {n: len(rows) for n, rows in second.rows.items()}
