"""Exact numbers: rationals as elements of NumPy arrays, so that references compute without rounding.

Sums, products, quotients and comparisons are exact, and every finite float is the rational that it is. A function that
leaves the rationals is replaced by one that stays in them:

- e^x becomes 2^g(x) with g(x) = sign(⌊x⌋) · (bits of |⌊x⌋|), an integer that grows with x and stays small. `logits`
  applies g once, where scores are complete; from there on `exp` is 2^x of integers, which keeps sums to products and
  order to order. Maxima, masks, ties and top-k stay what they are, and log-sum-exp states combine exactly.
- √x, tanh, log(1 + x) and rounding become fixed pseudo-random functions (oracles) of the number: two sides of an
  equation agree under any function only if they apply it to equal arguments.

−∞ and ∞ are the floats. They mark what is masked or missing and are never summed into a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd, inf, isfinite, lcm
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Salts of the oracles: odd constants, one a function.
_SQRT, _TANH, _RINT, _BRIEF = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93
_LOG1P = 0xFF51AFD7ED558CCD
_MASK = (1 << 64) - 1


class Exact:
    """A rational number `num / den` in lowest terms, den > 0. Nothing changes it; it equals equal ints."""

    __slots__ = ("den", "num")

    def __init__(self, num: int, den: int = 1) -> None:
        if den != 1:
            common = gcd(num, den)
            if den < 0:
                common = -common
            num, den = num // common, den // common
        self.num = num
        self.den = den

    def __add__(self, other: Any) -> Any:
        o = other if type(other) is Exact else _of(other)
        if type(o) is not Exact:
            return o
        if self.den == o.den:
            return Exact(self.num + o.num, self.den)
        return Exact(self.num * o.den + o.num * self.den, self.den * o.den)

    def __neg__(self) -> Exact:
        return Exact(-self.num, self.den)

    def __pos__(self) -> Exact:
        return self

    def __abs__(self) -> Exact:
        return Exact(abs(self.num), self.den)

    def __sub__(self, other: Any) -> Any:
        o = other if type(other) is Exact else _of(other)
        if type(o) is not Exact:
            return o if o is NotImplemented else -o
        if self.den == o.den:
            return Exact(self.num - o.num, self.den)
        return Exact(self.num * o.den - o.num * self.den, self.den * o.den)

    def __rsub__(self, other: Any) -> Any:
        o = _of(other)
        return o - self if type(o) is Exact else o

    def __mul__(self, other: Any) -> Any:
        o = other if type(other) is Exact else _of(other)
        if type(o) is not Exact:
            return o if o is NotImplemented else _never("a product with ∞")
        return Exact(self.num * o.num, self.den * o.den)

    def __truediv__(self, other: Any) -> Any:
        o = other if type(other) is Exact else _of(other)
        if type(o) is not Exact:
            return o if o is NotImplemented else Exact(0)
        if not o.num:
            raise ZeroDivisionError("an exact number divided by zero")
        return Exact(self.num * o.den, self.den * o.num)

    def __rtruediv__(self, other: Any) -> Any:
        o = _of(other)
        return o / self if type(o) is Exact else o

    __radd__ = __add__
    __rmul__ = __mul__

    def __pow__(self, power: int) -> Exact:
        return Exact(self.num**power, self.den**power)

    def __floor__(self) -> int:
        return self.num // self.den

    def __bool__(self) -> bool:
        return bool(self.num)

    def __hash__(self) -> int:
        return hash(self.num) if self.den == 1 else hash((self.num, self.den))

    def __eq__(self, other: Any) -> bool:
        o = other if type(other) is Exact else _of(other)
        return type(o) is Exact and self.num == o.num and self.den == o.den

    def __lt__(self, other: Any) -> bool:
        return self._below(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> bool:
        return self._below(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> bool:
        return self._below(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> bool:
        return self._below(other, lambda a, b: a >= b)

    def _below(self, other: Any, order: Callable[[Any, Any], bool]) -> bool:
        o = other if type(other) is Exact else _of(other)
        if type(o) is Exact:
            return order(self.num * o.den, o.num * self.den)
        return NotImplemented if o is NotImplemented else order(0.0, o)

    def __repr__(self) -> str:
        return str(self.num) if self.den == 1 else f"{self.num}/{self.den}"

    # NumPy's unary functions call the method of their name on every element of an object array.

    def exp(self) -> Exact:
        """2^x of an integer. Raises `ValueError` for other numbers: pass them through `logits` first."""
        if self.den != 1:
            raise ValueError(f"exp of {self}, which is no integer: what exp is taken of goes through `logits`")
        return Exact(1 << self.num) if self.num >= 0 else Exact(1, 1 << -self.num)

    def sqrt(self) -> Exact:
        """A positive number that depends on x only; the reciprocal of an integer, so that quotients stay short."""
        return Exact(1, 1 + self._oracle(_SQRT) % 97)

    def tanh(self) -> Exact:
        """A number in (−1, 1) that depends on x only."""
        return Exact(self._oracle(_TANH) % 127 - 63, 64)

    def log1p(self) -> Exact:
        """A number from 0 to 1 that depends on x only."""
        return Exact(self._oracle(_LOG1P) % 61, 64)

    def rint(self) -> Exact:
        """An integer that depends on x only."""
        return Exact(self._oracle(_RINT) % 127 - 63)

    def logit(self) -> Exact:
        """g(x) = sign(⌊x⌋) · (bits of |⌊x⌋|)."""
        whole = self.num // self.den
        return Exact(whole.bit_length() if whole >= 0 else -whole.bit_length())

    def brief(self) -> Exact:
        """An integer from −3 to 3 that depends on x only, 0 for 0 alone."""
        bits = self._oracle(_BRIEF) % 6
        return Exact(bits - 3 if bits < 3 else bits - 2) if self.num else self

    def _oracle(self, salt: int) -> int:
        """Pseudo-random bits of the number: two rounds of multiplication and shifts (as in splitmix64)."""
        bits = (self.num * salt ^ self.den * _RINT) & _MASK
        bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & _MASK
        bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & _MASK
        return bits ^ bits >> 31


def _of(value: Any) -> Any:
    """The exact number that a finite number is, an infinity as it is, `NotImplemented` for anything else (arrays)."""
    if isinstance(value, (bool, int)):
        return Exact(int(value))
    if isinstance(value, float):
        if isfinite(value):
            return Exact(*value.as_integer_ratio())
        return value if value in (inf, -inf) else _never("NaN")
    if isinstance(value, (Integral, np.bool_)):
        return Exact(int(value))
    return value if isinstance(value, Exact) else NotImplemented


def _never(what: str) -> Any:
    raise ArithmeticError(f"exact arithmetic met {what}")


# -- arrays -----------------------------------------------------------------------------------------------------------

_TO_EXACT = np.frompyfunc(lambda x: x if type(x) is Exact else _of(x), 1, 1)
_SHORT = np.frompyfunc(lambda x: x.brief(), 1, 1)
_EXP = np.frompyfunc(lambda x: Exact(0) if x == -inf else (x if type(x) is Exact else _of(x)).exp(), 1, 1)
_LOGIT = np.frompyfunc(lambda x: x if x == -inf else (x if type(x) is Exact else _of(x)).logit(), 1, 1)


def is_exact(array: Array) -> bool:
    """True for arrays of exact numbers (dtype object), False for floats and ids."""
    return array.dtype == object


def to_exact(array: Array) -> Array:
    """The same numbers as exact ones; arrays of integers are ids and stay as they are."""
    if np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_:
        return array
    return np.asarray(_TO_EXACT(array), dtype=object)


def settled(results: tuple[Array, ...], operands: Iterable[Array]) -> tuple[Array, ...]:
    """Results computed from these operands: if any of them is exact, constants among the results become so too."""
    return tuple(to_exact(a) for a in results) if any(is_exact(a) for a in operands) else results


def alike(a: Array, b: Array) -> bool:
    """Equal shapes, and equal numbers: exactly, or up to rounding where both are floats."""
    if a.shape != b.shape:
        return False
    if np.issubdtype(a.dtype, np.floating) and np.issubdtype(b.dtype, np.floating):
        return np.allclose(a, b, rtol=1e-9, atol=1e-12)
    return bool(np.array_equal(a, b))


def shortened(x: Array) -> Array:
    """Exact numbers by an oracle of few values, so that long chains of operators keep numbers short; others as they
    are."""
    return np.asarray(_SHORT(x), dtype=object) if is_exact(x) else x


def logits(x: Array) -> Array:
    """What exp may be taken of: floats as they are, exact numbers as g(x). Scores have to be complete here."""
    return np.asarray(_LOGIT(x), dtype=object) if is_exact(x) else x


def exp(x: Array) -> Array:
    """e^x of floats, 2^x of exact integers, 0 at −∞."""
    return np.asarray(_EXP(x), dtype=object) if is_exact(x) else np.asarray(np.exp(x))


def einsum(*arguments: Any) -> Array:
    """`numpy.einsum` of two operands in its form with sublists; exact operands are put over common denominators."""
    left, left_dims, right, right_dims, out = arguments
    if not (is_exact(left) or is_exact(right)):
        return np.asarray(np.einsum(left, left_dims, right, right_dims, out))
    (a, below_a), (b, below_b) = _over_common(left), _over_common(right)
    total = np.einsum(a, left_dims, b, right_dims, out)
    below = below_a * below_b
    return np.asarray(np.frompyfunc(lambda num: Exact(int(num), below), 1, 1)(total), dtype=object)


def _over_common(array: Array) -> tuple[Array, int]:
    """Integer numerators over one denominator."""
    exact = np.asarray(_TO_EXACT(array), dtype=object)
    below = lcm(*{x.den for x in exact.flat})
    return np.asarray(np.frompyfunc(lambda x: x.num * (below // x.den), 1, 1)(exact), dtype=object), below
