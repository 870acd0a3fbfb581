"""Power by walking through every outcome of a small study, in rational numbers."""

from fractions import Fraction
from itertools import product
from math import factorial, sqrt

from tests.reference.verdict import tail

# Student's t at 95% with one and two degrees of freedom.
T = {2: 12.706204736, 3: 4.302652730}


def seed_outcomes(questions, gain, loss):
    """(gains, losses) of one seed and their chances."""
    gain, loss = Fraction(gain), Fraction(loss)
    chances = {}
    for b, c in product(range(questions + 1), repeat=2):
        if (rest := questions - b - c) >= 0:
            ways = factorial(questions) // (
                factorial(b) * factorial(c) * factorial(rest)
            )
            chances[b, c] = ways * gain**b * loss**c * (1 - gain - loss) ** rest
    return chances


def power(questions, gain, loss, categories=1, seeds=1, alpha=Fraction(1, 20)):
    total = Fraction(0)
    outcomes = seed_outcomes(questions, gain, loss)
    for study in product(outcomes, repeat=seeds):
        b, c = (sum(counts) for counts in zip(*study, strict=True))
        if tail(b, c) * categories < alpha and above(study):
            chance = Fraction(1)
            for counts in study:
                chance *= outcomes[counts]
            total += chance
    return float(total)


def above(study):
    """Student's interval of the seeds' differences is above 0."""
    if len(study) == 1:
        return True
    net = [b - c for b, c in study]
    mean = sum(net) / len(net)
    spread = sqrt(sum((x - mean) ** 2 for x in net) / (len(net) - 1))
    return mean > T[len(net)] * spread / sqrt(len(net))


def changes(base, trained, weights, samples):
    gain = loss = 0.0
    for p, q, w in zip(base, trained, weights, strict=True):
        solved, solved_trained = 1 - (1 - p) ** samples, 1 - (1 - q) ** samples
        gain += w / sum(weights) * (1 - solved) * solved_trained
        loss += w / sum(weights) * solved * (1 - solved_trained)
    return gain, loss
