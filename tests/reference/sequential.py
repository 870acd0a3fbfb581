"""The sequential paired test in rational numbers, path by path."""

from fractions import Fraction
from math import comb, pi

import numpy as np


def e_value(gains, losses):
    number = gains + losses
    below = sum(comb(number + 1, i) for i in range(gains + 1))
    return Fraction(below, (number + 1) * comb(number, gains))


def integral(gains, losses):
    """2 times the integral of (2p)^g (2(1-p))^l over [1/2, 1], at Gauss's points."""
    points, weights = np.polynomial.legendre.leggauss((gains + losses) // 2 + 1)
    p = 0.75 + points / 4
    return 2 * float(weights / 4 @ ((2 * p) ** gains * (2 * (1 - p)) ** losses))


def spent(number, alpha, spending):
    if spending == "halving":
        return alpha / 2**number
    return alpha * 6 / (pi * number) ** 2


def verdict(gains, losses, pairs, most, level):
    """0 undecided, 1 accepted, 2 rejected."""
    if e_value(gains, losses) >= 1 / Fraction(level):
        return 1
    best = e_value(gains + most - pairs, losses)
    return 2 if best < 1 / Fraction(level) else 0


def power(p_gain, p_loss, level, most):
    """(power, expected pairs) after each number of pairs up to `most`."""
    p_gain, p_loss, level = Fraction(p_gain), Fraction(p_loss), Fraction(level)
    living, powers, expected = {(0, 0): Fraction(1)}, [Fraction(0)], [Fraction(0)]
    for _ in range(most):
        grown = {}
        for (b, c), chance in living.items():
            steps = (
                ((b + 1, c), p_gain),
                ((b, c + 1), p_loss),
                ((b, c), 1 - p_gain - p_loss),
            )
            for counts, p in steps:
                grown[counts] = grown.get(counts, 0) + chance * p
        expected.append(expected[-1] + 1 - powers[-1])
        living = {n: p for n, p in grown.items() if e_value(*n) * level < 1}
        powers.append(powers[-1] + sum(grown.values()) - sum(living.values()))
    return powers, expected


def first_discordant(gain, loss, task, mask):
    voted, votes = set(), []
    for b, c, t, kept in zip(gain, loss, task, mask, strict=True):
        votes.append((b - c) if kept and t not in voted else 0)
        if votes[-1]:
            voted.add(t)
    return votes
