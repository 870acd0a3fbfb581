"""Returns by their definitions, in float64 loops; imports nothing from jerp."""


def discounted_returns(reward, discount):
    return [
        sum(discount ** (k - t) * reward[k] for k in range(t, len(reward)))
        for t in range(len(reward))
    ]


def lambda_returns(reward, value, end_value, discount, lambda_):
    """Forward view: the mixture of n-step returns of one episode.

    `end_value` is worth what follows the last reward: 0 after a natural end.
    """
    values = [*value, end_value]
    length = len(reward)
    returns = []
    for t in range(length):
        steps = [
            sum(discount**k * reward[t + k] for k in range(n))
            + discount**n * values[t + n]
            for n in range(1, length - t + 1)
        ]
        mixture = sum((1 - lambda_) * lambda_**n * g for n, g in enumerate(steps[:-1]))
        returns.append(mixture + lambda_ ** (len(steps) - 1) * steps[-1])
    return returns


def gae(reward, value, end_value, discount, lambda_):
    """The sum of discounted residuals."""
    values = [*value, end_value]
    residual = [
        reward[t] + discount * values[t + 1] - values[t] for t in range(len(reward))
    ]
    return discounted_returns(residual, discount * lambda_)
