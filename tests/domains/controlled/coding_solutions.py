"""One expression a family, written apart from the generator: its tests' oracle."""

SOLUTIONS = {
    "shift": "n + {k}",
    "scale": "n * {k}",
    "gap": "{k} - n",
    "leftover": "m % {k}",
    "is_multiple": "m % {k} == 0",
    "pick": "xs[{k}]",
    "begins": "s[0] == '{c}'",
    "bump_square": "n ** 2 + {k}",
    "is_between": "{low} <= n and n <= {high}",
    "total": "sum(x * {k} for x in xs)",
    "peak": "sorted(xs)[-1] + {k}",
    "low_point": "sorted(xs)[0] - {k}",
    "stretch": "list(map(lambda x: x * {k}, xs))",
    "keep_big": "list(filter(lambda x: x > {k}, xs))",
    "count_letter": "len([c for c in s if c == '{c}'])",
    "count_big": "len([x for x in xs if x > {k}])",
    "sum_multiples": "sum([x for x in xs if not x % {k}])",
    "square_big": "[x ** 2 for x in xs if x > {k}]",
    "long_words": "[w for w in ws if len(w) >= {k} + 1]",
    "starting": "len([w for w in ws if w[0] == '{c}'])",
    "any_multiple": "0 in [x % {k} for x in xs]",
    "digit_sum": "m // 10 + m % 10 + {k}",
    "cube": "n * n * n - {k}",
    "distance": "max(n - {k}, {k} - n)",
    "keep_multiples": "[x for x in xs if not x % {k}]",
    "keep_starting": "[w for w in ws if w[0] == '{c}']",
    "count_multiples": "[x % {k} for x in xs].count(0)",
    "sum_squares": "{k} + sum([x ** 2 for x in xs])",
    "squares_plus": "[{k} + x ** 2 for x in xs]",
    "word_sizes": "[{k} + len(w) for w in ws]",
    "count_long": "len([w for w in ws if len(w) > {k}])",
    "sum_to": "sum(i for i in range({k}, m + 1))",
    "sum_big": "sum([x for x in xs if x > {k}])",
    "size": "len(s) + {k}",
    "keep_small": "[x for x in xs if not x >= {k}]",
    "amount": "len(xs) * {k}",
    "drop_multiples": "[x for x in xs if x % {k} != 0]",
    "total_length": "len(''.join(ws)) + {k}",
    "longest": "sorted(map(len, ws))[-1] + {k}",
    "count_small": "len([x for x in xs if x < {k}])",
    "sum_plus": "{k} + sum(xs)",
    "sum_small": "sum([x for x in xs if x < {k}])",
    "square_small": "[x * x for x in xs if x < {k}]",
}


def solution(task) -> str:
    """Source of a right function."""
    expression = SOLUTIONS[task.payload["name"]].format(**task.payload["parameters"])
    return f"{task.prompt}\n    return {expression}"
