"""What holds for shards of any number and any size, proved by algebra, and what does not, refuted.

A cut is sound for every shape if three things hold: the operator's result is a function of a *state* that every share
of the cut label has; states of shares combine, by an associative operation, to the state of the whole; and every index
has exactly one owner. The first is how references are written (one code computes the whole and any share). The second
and third are the lemmas here. By induction over the shards, in the order in which they are combined, they give the
equation for any number of shards, empty ones included.

sympy does the algebra; it is imported when a lemma is proved. Inequalities are proved by splitting into regions, each
written with variables that are at least 0: an expression whose coefficients are at least 0 is at least 0 there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Lemma:
    """A statement; `proof` is true where algebra shows it. `wrong` are look-alikes: each function is true where it
    refutes its own. `rules` are the primitives that rest on it."""

    name: str
    says: str
    rules: tuple[str, ...]
    proof: Callable[[], bool]
    wrong: dict[str, Callable[[], bool]] = field(default_factory=dict)

    def holds(self) -> bool:
        """Is it proved, and is every look-alike refuted? Raises `ImportError` without sympy."""
        return self.proof() and all(refuted() for refuted in self.wrong.values())


def _zero(*expressions: Any) -> bool:
    import sympy

    return all(sympy.simplify(sympy.expand(each)) == 0 for each in expressions)


def _never_negative(expression: Any) -> bool:
    """Is a polynomial in variables that are at least 0 at least 0, term by term?"""
    import sympy

    opened = sympy.expand(sympy.sympify(expression))
    symbols = sorted(opened.free_symbols, key=str)
    return all(term >= 0 for term in (sympy.Poly(opened, *symbols).coeffs() if symbols else [opened]))


# -- log-sum-exp ------------------------------------------------------------------------------------------------------


def _states(count: int) -> list[tuple[Any, Any, Any]]:
    """States (w, l, o): w = e^m > 0 for the maximum m; l and o are sums that were divided by w."""
    import sympy

    return [tuple(sympy.symbols(f"w{i} l{i} o{i}", positive=True)) for i in range(count)]


def _lse(a: tuple[Any, Any, Any], b: tuple[Any, Any, Any], top: Any) -> tuple[Any, Any, Any]:
    """Two states combined, rescaled to `top`."""
    return top, (a[1] * a[0] + b[1] * b[0]) / top, (a[2] * a[0] + b[2] * b[0]) / top


def _lse_adds() -> bool:
    """A state stands for (w·l, w·o). Whatever positive number takes the place of the maximum, combining adds these:
    hence any order and grouping gives one result, and an empty share (0, 0) changes nothing. The quotient o/l is that
    of the sums."""
    import sympy

    a, b = _states(2)
    top = sympy.symbols("top", positive=True)
    both = _lse(a, b, top)
    denotes = _zero(both[0] * both[1] - a[0] * a[1] - b[0] * b[1], both[0] * both[2] - a[0] * a[2] - b[0] * b[2])
    finish = _zero(both[2] / both[1] - (a[0] * a[2] + b[0] * b[2]) / (a[0] * a[1] + b[0] * b[1]))
    empty = _zero(_lse(a, (b[0], sympy.Integer(0), sympy.Integer(0)), a[0])[1] - a[1])
    return denotes and finish and empty


def _lse_unscaled() -> bool:
    a, b = _states(2)
    return not _zero(a[0] * (a[1] + b[1]) - a[0] * a[1] - b[0] * b[1])


def _lse_average() -> bool:
    a, b = _states(2)
    return not _zero((a[2] / a[1] + b[2] / b[1]) / 2 - (a[0] * a[2] + b[0] * b[2]) / (a[0] * a[1] + b[0] * b[1]))


# -- top-k ------------------------------------------------------------------------------------------------------------


def _topk_merges() -> bool:
    """Candidates are totally ordered: by value falling, then by id rising. Of x in one share, let a and b be how many
    of its own share and of the other one come before it. It is among the first k of both together if a + b < k. Merging
    the first k of each keeps it if a < k and min(a, k) + min(b, k) < k. Where a and b are below k these are the same.
    Where one is not (a = k + more, or b = k + more) neither keeps it. argmax is k = 1."""
    import sympy

    a, b, k, more = sympy.symbols("a b k more", nonnegative=True)
    union = a + b - k  # at least 0: the union does not keep x
    first = _never_negative(union.subs(a, k + more))
    merged = a + k  # min(a, k) + min(b, k) where a < k ≤ b
    second = _never_negative(union.subs(b, k + more)) and _never_negative(merged - k)
    return first and second


def _kept(a: int, b: int, k: int, offered: int) -> bool:
    """Is a candidate kept that has a and b others before it, when each share offers some?"""
    return a < offered and min(a, offered) + min(b, offered) < k


def _topk_of_fewer() -> bool:
    """Shares that offer k/2 candidates: the second best of all is lost where both lie in one share."""
    return _kept(1, 0, 2, 2) and not _kept(1, 0, 2, 1)


def _topk_by_arrival() -> bool:
    """Without ids the order is not total: of two equal values each side keeps its own."""
    one, other = (5, 0), (5, 1)

    def first(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
        return x if x[0] >= y[0] else y

    return first(one, other) != first(other, one)


# -- statistics of norms ----------------------------------------------------------------------------------------------


def _rms_adds() -> bool:
    """Σx² and the count add; the mean of the whole is the quotient of the sums, whatever the sizes of the shards."""
    import sympy

    m1, m2, n1, n2 = sympy.symbols("m1 m2 n1 n2", positive=True)  # mean squares and sizes of two shards
    whole = (m1 * n1 + m2 * n2) / (n1 + n2)
    sums = [m1 * n1, m2 * n2]
    return _zero((sums[0] + sums[1]) / (n1 + n2) - whole)


def _mean_of_means() -> bool:
    """(m₁ + m₂)/2 differs from the mean by (m₁ − m₂)(n₂ − n₁)/(2(n₁ + n₂)): right for equal shards only."""
    import sympy

    m1, m2, n1, n2 = sympy.symbols("m1 m2 n1 n2", positive=True)
    error = (m1 + m2) / 2 - (m1 * n1 + m2 * n2) / (n1 + n2)
    known = (m1 - m2) * (n2 - n1) / (2 * (n1 + n2))
    return _zero(error - known) and not _zero(error) and _zero(error.subs(n2, n1))


def _variance_from_sums() -> bool:
    """Σ(x − μ)²/n = Σx²/n − μ², so that layer norm needs Σx and Σx² and no second exchange."""
    import sympy

    x1, x2, x3 = sympy.symbols("x1:4", real=True)
    n, sums, squares = sympy.symbols("n s q")
    mean = sums / n
    by_definition = squares - 2 * mean * sums + n * mean**2  # Σ(x − μ)² = Σx² − 2μΣx + nμ²
    xs = [x1, x2, x3]
    opened = sum((x - n) ** 2 for x in xs) - (sum(x**2 for x in xs) - 2 * n * sum(xs) + 3 * n**2)
    return _zero(by_definition / n - (squares / n - mean**2), opened)


def _variance_of_shards() -> bool:
    """The mean of the shards' variances leaves out how far their means lie apart."""
    import sympy

    a, b = sympy.symbols("a b", real=True)  # two shards of one element each: variances 0
    whole = (a**2 + b**2) / 2 - ((a + b) / 2) ** 2
    return not _zero(whole)


# -- affine scan ------------------------------------------------------------------------------------------------------


def _matrices(names: str) -> Any:
    import sympy

    return sympy.symbols(names, commutative=False)


def _then(first: tuple[Any, Any], second: tuple[Any, Any]) -> tuple[Any, Any]:
    """S ← A₁S + B₁, then S ← A₂S + B₂, as one map."""
    return second[0] * first[0], second[0] * first[1] + second[1]


def _affine_scan() -> bool:
    """Maps compose, associatively, to a map; applying it is applying them in turn. Matrices of any size."""
    import sympy

    a1, b1, a2, b2, a3, b3, s = _matrices("A1 B1 A2 B2 A3 B3 S")
    one, two, three = (a1, b1), (a2, b2), (a3, b3)
    left, right = _then(_then(one, two), three), _then(one, _then(two, three))
    together = _then(one, two)
    applied = together[0] * s + together[1] - (a2 * (a1 * s + b1) + b2)
    return all(sympy.expand(x) == 0 for x in (left[0] - right[0], left[1] - right[1], applied))


def _delta_is_affine() -> bool:
    """(I − βkkᵀ)·D·S + βkvᵀ is A·S + B with A and B free of S, and B's column j depends on column j of v alone, so that
    values may be cut; A mixes all keys, so that keys may not."""
    import sympy

    beta = sympy.Symbol("beta")
    k, v, d = (sympy.Matrix(2, 1, sympy.symbols(f"{n}1:3")) for n in "kvd")
    s = sympy.Matrix(2, 2, sympy.symbols("s1:5"))
    turn = (sympy.eye(2) - beta * k * k.T) * sympy.diag(*d)
    added = beta * k * v.T
    decayed = sympy.diag(*d) * s
    stepped = decayed + beta * k * (v - decayed.T * k).T
    affine = sympy.expand(stepped - (turn * s + added)) == sympy.zeros(2, 2)
    by_column = v[1] not in added[:, 0].free_symbols and v[0] not in added[:, 1].free_symbols
    return bool(affine and by_column and turn[0, 1] != 0)


def _affine_swapped() -> bool:
    import sympy

    a1, b1, a2, b2 = _matrices("A1 B1 A2 B2")
    x, y = _then((a1, b1), (a2, b2)), _then((a2, b2), (a1, b1))
    return bool(sympy.expand(x[0] - y[0]) != 0 and sympy.expand(x[1] - y[1]) != 0)


def _affine_summed() -> bool:
    import sympy

    a1, b1, a2, b2 = _matrices("A1 B1 A2 B2")
    return bool(sympy.expand(_then((a1, b1), (a2, b2))[1] - (b1 + b2)) != 0)


# -- ownership --------------------------------------------------------------------------------------------------------


def _one_owner() -> bool:
    """Shard r has the indices from o(r) up to o(r+1), with o rising from 0 to N. Sizes add up to N: the sum telescopes.
    Were i in shard r and in a later one r′, then o(r′) ≤ i < o(r+1); but o(r′) − o(r+1) is a sum of sizes."""
    import sympy

    o = sympy.Function("o")
    r, n = sympy.symbols("r n", integer=True, nonnegative=True)
    telescopes = sympy.simplify(sympy.summation(o(r + 1) - o(r), (r, 0, n - 1)) - (o(n) - o(0))) == 0
    sizes = sympy.symbols("size0:3", nonnegative=True)
    return bool(telescopes and _never_negative(sum(sizes)))


def _shards_add_up() -> bool:
    """`shard_sizes` gives shard i max(0, min(s, N − i·s)) of N with s = ⌈N/count⌉. With o(i) = min(N, i·s) that is
    o(i+1) − o(i) in each region: whole (N = (i+1)s + more), cut off (N = i·s + rest, s = rest + more), empty (i·s = N +
    more). o(0) = 0, and o(count) = N since count·s ≥ N. So the sizes add up to N for every N, count and alignment."""
    import sympy

    i, s, more, rest = sympy.symbols("i s more rest", nonnegative=True)
    # Per region: N, o(i), o(i+1), the size that the formula gives.
    whole_n = (i + 1) * s + more
    cut_s = rest + more
    cut_n = i * cut_s + rest
    whole = _zero(((i + 1) * s - i * s) - s) and _never_negative(whole_n - i * s - s)
    cut = _zero((cut_n - i * cut_s) - rest) and _never_negative((i + 1) * cut_s - cut_n)
    empty = _never_negative(more)  # o(i+1) − o(i) = N − N = 0, and N − i·s = −more gives max(0, …) = 0
    below, count = sympy.symbols("below count", nonnegative=True)
    ceiling = _never_negative((count * (s + below)) - count * s)  # s ≥ N/count: count·s ≥ N
    return whole and cut and empty and ceiling


def _floor_loses() -> bool:
    """⌊N/count⌋ each leaves N mod count over: of 10 rows cut in 4, 2 are lost."""
    from rooflang.ir.shards import shard_sizes

    return 4 * (10 // 4) == 8 and sum(shard_sizes(10, [4])) == 10


def _nested_digits() -> bool:
    """Shard c₀·n₁ + c₁ of two axes has the digits c₀ and c₁: dividing by n₁ gives them back, for 0 ≤ c₁ < n₁."""
    import sympy

    c0, c1, gap = sympy.symbols("c0 c1 gap", integer=True, nonnegative=True)
    n1 = c1 + 1 + gap
    number = c0 * n1 + c1
    above, under = number - c0 * n1, (c0 + 1) * n1 - number - 1  # c₀ ≤ number/n₁ < c₀ + 1
    return _never_negative(above) and _never_negative(under) and _zero(number - c0 * n1 - c1)


def _local_head() -> bool:
    """Head h of all reads the key-value head h ÷ R. The second shard of 2 of 4 heads, R = 2, has heads 2 and 3: its
    local numbers 0 and 1 would lead to key-value head 0."""
    each, start = 2, 2
    return any(head // each != (head - start) // each for head in range(start, start + 2))


# -- transfers --------------------------------------------------------------------------------------------------------


def _all_to_all() -> bool:
    """Block (s, r) is part r, along e, of shard s of d. A gather has all blocks (s, r) in the order of s; the scatter
    takes those with one r: rank r has (s, r) for every s. An all-to-all sends (s, r) from s to r, and r has the same.
    That every index of d and of e is in one block is `ownership`; how many ranks there are plays no part."""
    for count in range(1, 7):
        ranks = range(count)
        gathered = [(s, r) for s in ranks for r in ranks]
        scattered = {r: [block for block in gathered if block[1] == r] for r in ranks}
        sent = {(s, r): (s, r) for s in ranks for r in ranks}
        if scattered != {r: [sent[s, r] for s in ranks] for r in ranks}:
            return False
    return True


def _all_to_all_same_dim() -> bool:
    """With d = e rank r would have the blocks (s, r) for every s, where (r, s) for every s lay."""
    ranks = range(3)
    return any([(s, r) for s in ranks] != [(r, s) for s in ranks] for r in ranks)


LEMMAS = (
    Lemma(
        name="log-sum-exp",
        says="states (m, l, o) of shards combine to the state of the whole, in any order, empty shards included",
        rules=("split_kernel", "merge_reduce_broadcast", "merge_reduce_scatter"),
        proof=_lse_adds,
        wrong={"sums not rescaled": _lse_unscaled, "an average of softmaxes": _lse_average},
    ),
    Lemma(
        name="top-k and argmax",
        says="the first k of the first k of shards are the first k of the whole, ties decided by global id",
        rules=("split_kernel", "merge_reduce_broadcast", "merge_reduce_scatter"),
        proof=_topk_merges,
        wrong={"shards that offer k/2": _topk_of_fewer, "ties by arrival": _topk_by_arrival},
    ),
    Lemma(
        name="RMS",
        says="sums of squares and counts add; the whole's mean is the quotient of the sums",
        rules=("split_kernel", "fuse_kernels"),
        proof=_rms_adds,
        wrong={"a mean of means": _mean_of_means},
    ),
    Lemma(
        name="variance",
        says="sums and sums of squares give the variance of the whole",
        rules=("split_kernel",),
        proof=_variance_from_sums,
        wrong={"a mean of variances": _variance_of_shards},
    ),
    Lemma(
        name="affine scan",
        says="maps S ← A·S + B compose in order to one such map; the delta rule is one, with its values independent",
        rules=("split_kernel",),
        proof=lambda: _affine_scan() and _delta_is_affine(),
        wrong={"maps in another order": _affine_swapped, "sums without decay": _affine_summed},
    ),
    Lemma(
        name="ownership",
        says="shards of any sizes own every index once; `shard_sizes` adds up; nested cuts have independent digits",
        rules=(
            "split_kernel",
            "merge_gather_scatter",
            "merge_gather_broadcast",
            "merge_reduce_scatter",
            "dup_kernel",
            "dedup_kernel",
        ),
        proof=lambda: _one_owner() and _shards_add_up() and _nested_digits(),
        wrong={"sizes by floor division": _floor_loses, "a head's local number": _local_head},
    ),
    Lemma(
        name="all-to-all",
        says="what a scatter takes of a gather is what an all-to-all sends",
        rules=("merge_gather_scatter",),
        proof=_all_to_all,
        wrong={"from a dim to itself": _all_to_all_same_dim},
    ),
)
