"""Pieces of egglog text that several rules share. `Mode<n> k i s0 … so` says: axes 0 … i-1 of kernel k (n operands) are
decided, operand 0 lies as s0, …, and the output as so; it is complete when i is the number of axes."""

from __future__ import annotations


def row(prefix: str, count: int) -> str:
    """`s0 s1 ` for two: variables of one prefix, each followed by a space."""
    return "".join(f"{prefix}{i} " for i in range(count))


def decide_by_row(relation: str, arity: int, ruleset: str) -> str:
    """The rule that decides one more axis of a mode by a signature row, `<relation><n> k row c0 … co` (one digit
    each).
    """
    moved = "".join(f"(+ s{i} (* m c{i})) " for i in range(arity))
    return (
        f"(rule ((Mode{arity} k i {row('s', arity)}so) ({relation}{arity} k row {row('c', arity)}co) (Axis i m))\n"
        f"      ((Mode{arity} k (+ i 1) {moved}(+ so (* m co)))) :ruleset {ruleset})"
    )


def decide_alike(guard: str, arity: int, digit: int, ruleset: str) -> str:
    """The rule that decides one more axis of a guarded kernel's mode by the same digit for operands and output."""
    moved = "".join(f"(+ s{i} (* m {digit})) " for i in range(arity)) if digit else row("s", arity)
    out = f"(+ so (* m {digit}))" if digit else "so"
    return (
        f"(rule ((Mode{arity} k i {row('s', arity)}so) ({guard} k) (Axis i m))\n"
        f"      ((Mode{arity} k (+ i 1) {moved}{out})) :ruleset {ruleset})"
    )
