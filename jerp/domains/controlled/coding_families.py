"""Families of small programming problems, in three difficulties.

Each is a function: see `coding_family` for what its parts mean. All text is this
project's own.
"""

from __future__ import annotations

from jerp.domains.controlled.coding_family import Family, family

__all__ = ["FAMILIES"]

SMALL, MEDIUM, EVEN = range(2, 10), range(3, 16), range(2, 13, 2)
LETTERS, STARTS, MARKS = "aeinrt", "cmpst", "!?.:;"
EMPTY_LIST, EMPTY_TEXT = (([],),), (("",),)


@family(0, k=SMALL)
def shift(n, *, k):
    """Return n plus {k}."""
    return n + k


@family(0, k=SMALL)
def scale(n, *, k):
    """Return n times {k}."""
    return n * k


@family(0, k=SMALL)
def gap(n, *, k):
    """Return {k} minus n."""
    return k - n


@family(0, k=range(3, 12))
def leftover(m, *, k):
    """Return the remainder of m divided by {k}."""
    return m % k


@family(0, k=SMALL)
def is_multiple(m, *, k):
    """Return True if m is divisible by {k}."""
    return m % k == 0


@family(0, k=range(3))
def pick(xs, *, k):
    """Return the item of xs at index {k}."""
    return xs[k]


@family(0, c=STARTS)
def begins(s, *, c):
    """Return True if s starts with '{c}'."""
    return s.startswith(c)


@family(0, k=SMALL)
def bump_square(n, *, k):
    """Return the square of n, plus {k}."""
    return n * n + k


@family(0, k=SMALL, edges=EMPTY_LIST)
def stretch(xs, *, k):
    """Return a list with each item of xs times {k}."""
    return [x * k for x in xs]


@family(0, k=SMALL)
def cube(n, *, k):
    """Return the cube of n, minus {k}."""
    return n**3 - k


@family(0, k=SMALL, edges=EMPTY_TEXT)
def size(s, *, k):
    """Return the number of characters in s, plus {k}."""
    return len(s) + k


@family(0, k=SMALL)
def distance(n, *, k):
    """Return the absolute difference of n and {k}."""
    return abs(n - k)


@family(0, k=SMALL, edges=EMPTY_LIST)
def amount(xs, *, k):
    """Return the number of items of xs, times {k}."""
    return len(xs) * k


@family(0, k=SMALL, edges=EMPTY_LIST)
def sum_plus(xs, *, k):
    """Return the sum of xs, plus {k}."""
    return sum(xs) + k


@family(1, low=range(1, 7, 2), high=range(15, 24, 3))
def is_between(n, *, low, high):
    """Return True if n is between {low} and {high}, both included."""
    return low <= n <= high


@family(1, k=SMALL, edges=EMPTY_LIST)
def total(xs, *, k):
    """Return the sum of xs, times {k}."""
    return sum(xs) * k


@family(1, k=SMALL)
def peak(xs, *, k):
    """Return the largest item of xs, plus {k}."""
    return max(xs) + k


@family(1, k=SMALL)
def low_point(xs, *, k):
    """Return the smallest item of xs, minus {k}."""
    return min(xs) - k


@family(1, k=range(2, 13), edges=EMPTY_LIST)
def keep_big(xs, *, k):
    """Return a list of the items of xs greater than {k}."""
    return [x for x in xs if x > k]


@family(1, c=LETTERS, edges=EMPTY_TEXT)
def count_letter(s, *, c):
    """Return how many times the letter '{c}' occurs in s."""
    return s.count(c)


@family(1, k=SMALL, edges=EMPTY_LIST)
def keep_multiples(xs, *, k):
    """Return a list of the items of xs divisible by {k}."""
    return [x for x in xs if x % k == 0]


@family(1, c=STARTS, edges=EMPTY_LIST)
def keep_starting(ws, *, c):
    """Return a list of the words of ws that start with '{c}'."""
    return [w for w in ws if w.startswith(c)]


@family(1, k=range(2, 13), edges=EMPTY_LIST)
def keep_small(xs, *, k):
    """Return a list of the items of xs less than {k}."""
    return [x for x in xs if x < k]


@family(1, k=SMALL, edges=EMPTY_LIST)
def drop_multiples(xs, *, k):
    """Return a list of the items of xs that are not divisible by {k}."""
    return [x for x in xs if x % k]


@family(1, k=SMALL)
def digit_sum(m, *, k):
    """Return the sum of the digits of m, plus {k}."""
    return sum(map(int, str(m))) + k


@family(1, k=SMALL)
def sum_to(m, *, k):
    """Return the sum of the numbers from {k} to m, m included."""
    return sum(range(k, m + 1))


@family(1, k=EVEN, edges=EMPTY_LIST)
def count_small(xs, *, k):
    """Return how many items of xs are less than {k}."""
    return sum(x < k for x in xs)


@family(2, k=SMALL, edges=EMPTY_LIST)
def count_big(xs, *, k):
    """Return how many items of xs are greater than {k}."""
    return sum(x > k for x in xs)


@family(2, k=range(2, 6), edges=EMPTY_LIST)
def sum_multiples(xs, *, k):
    """Return the sum of the items of xs that are divisible by {k}."""
    return sum(x for x in xs if x % k == 0)


@family(2, k=EVEN, edges=EMPTY_LIST)
def square_big(xs, *, k):
    """Return a list of the squares of the items of xs greater than {k}."""
    return [x * x for x in xs if x > k]


@family(2, k=(4, 5, 6), edges=EMPTY_LIST)
def long_words(ws, *, k):
    """Return a list of the words of ws longer than {k} letters."""
    return [w for w in ws if len(w) > k]


@family(2, c=STARTS, edges=EMPTY_LIST)
def starting(ws, *, c):
    """Return how many words of ws start with '{c}'."""
    return sum(w.startswith(c) for w in ws)


@family(2, k=range(4, 10), edges=EMPTY_LIST)
def any_multiple(xs, *, k):
    """Return True if any item of xs is divisible by {k}."""
    return any(x % k == 0 for x in xs)


@family(2, k=range(2, 7), edges=EMPTY_LIST)
def count_multiples(xs, *, k):
    """Return how many items of xs are divisible by {k}."""
    return sum(x % k == 0 for x in xs)


@family(2, k=SMALL, edges=EMPTY_LIST)
def sum_squares(xs, *, k):
    """Return the sum of the squares of the items of xs, plus {k}."""
    return sum(x * x for x in xs) + k


@family(2, k=SMALL, edges=EMPTY_LIST)
def squares_plus(xs, *, k):
    """Return a list of the squares of the items of xs, each plus {k}."""
    return [x * x + k for x in xs]


@family(2, k=SMALL, edges=EMPTY_LIST)
def word_sizes(ws, *, k):
    """Return a list of the lengths of the words of ws, each plus {k}."""
    return [len(w) + k for w in ws]


@family(2, k=(4, 5, 6), edges=EMPTY_LIST)
def count_long(ws, *, k):
    """Return how many words of ws are longer than {k} letters."""
    return sum(len(w) > k for w in ws)


@family(2, k=range(3, 10), edges=EMPTY_LIST)
def sum_big(xs, *, k):
    """Return the sum of the items of xs that are greater than {k}."""
    return sum(x for x in xs if x > k)


@family(2, k=SMALL, edges=EMPTY_LIST)
def total_length(ws, *, k):
    """Return the sum of the lengths of the words of ws, plus {k}."""
    return sum(len(w) for w in ws) + k


@family(2, k=SMALL)
def longest(ws, *, k):
    """Return the length of the longest word of ws, plus {k}."""
    return max(len(w) for w in ws) + k


@family(2, k=range(4, 12), edges=EMPTY_LIST)
def sum_small(xs, *, k):
    """Return the sum of the items of xs that are less than {k}."""
    return sum(x for x in xs if x < k)


@family(2, k=SMALL, edges=EMPTY_LIST)
def square_small(xs, *, k):
    """Return a list of the squares of the items of xs less than {k}."""
    return [x * x for x in xs if x < k]


# fmt: off
FAMILIES: tuple[Family, ...] = (
    shift, scale, gap, leftover, is_multiple, pick, begins, bump_square, stretch, cube,
    size, distance, amount, sum_plus, is_between, total, peak, low_point, keep_big,
    count_letter, keep_multiples, keep_starting, keep_small, drop_multiples, digit_sum,
    sum_to, count_small, count_big, sum_multiples, square_big, long_words, starting,
    any_multiple, count_multiples, sum_squares, squares_plus, word_sizes, count_long,
    sum_big, total_length, longest, sum_small, square_small,
)
