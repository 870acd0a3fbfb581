"""Tokens drawn from torch's logits, as `jerp.models.sampling` draws them from JAX's."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from jerp.bridge.rows import Job

__all__ = ["draw_tokens"]


def draw_tokens(
    logits: Any, uniform: Sequence[float], jobs: Sequence[Job]
) -> tuple[list[int], list[float]]:
    """Draws one token a row; rows never mix.

        p_i ~ exp(logit_i / temperature)  over the kept tokens;  token = F^-1(uniform)

    Kept are the `top_k` largest logits and, among these, the smallest set of most
    likely tokens whose mass reaches `top_p`. Ties at the edge are kept.

    Args:
      logits: tensor `[B, V]` float32, on any device.
      uniform: `B` numbers in [0, 1).
      jobs: `B` jobs; how they draw.

    Returns:
      `(tokens, log_probs)`, the latter under the distribution sampled from; 0 where
      the temperature is 0, which takes the largest logit.
    """
    torch = importlib.import_module("torch")

    def column(values: Sequence[float], dtype: Any = torch.float32) -> Any:
        return torch.tensor(values, dtype=dtype, device=logits.device)[:, None]

    greedy = column([job.temperature <= 0 for job in jobs], torch.bool)
    scaled = logits / column([job.temperature or 1.0 for job in jobs])
    below = scaled.amax(-1, keepdim=True) - scaled
    weight = torch.exp(-below)
    if any(job.temperature > 0 and (job.top_k or job.top_p < 1) for job in jobs):
        size = logits.shape[-1]
        top_k = column([min(job.top_k or size, size) for job in jobs], torch.int64)
        top_p = column([job.top_p for job in jobs])
        weight = weight * _kept(torch, below, top_k, top_p)
    cumulative = weight.cumsum(-1)
    total = cumulative[:, -1:]
    above = (cumulative > column(uniform) * total) & (weight > 0)
    place = torch.arange(logits.shape[-1], device=logits.device)
    last = torch.where(weight > 0, place, 0).amax(-1, keepdim=True)
    # rounding may leave the target above every sum
    drawn = torch.where(
        above.any(-1, keepdim=True), above.int().argmax(-1, keepdim=True), last
    )
    token = torch.where(greedy, below.argmin(-1, keepdim=True), drawn)
    log_prob = -below.gather(-1, token) - total.log()
    log_prob = torch.where(greedy, torch.zeros_like(log_prob), log_prob)
    return token[:, 0].tolist(), log_prob[:, 0].tolist()


def _kept(torch: Any, below: Any, top_k: Any, top_p: Any) -> Any:
    """`[B, V]` bool. `below >= 0` is how far a logit is under the largest one."""
    order = below.sort(-1).values
    kept = below <= order.gather(-1, top_k - 1)
    order = torch.where(order <= order.gather(-1, top_k - 1), order, torch.inf)
    mass = torch.exp(-order).cumsum(-1)
    reached = mass >= top_p * mass[:, -1:]
    edge = order.gather(-1, reached.int().argmax(-1, keepdim=True))
    # with top_p = 1 rounding must not cut off the least likely tokens
    return kept & ((below <= edge) | (top_p >= 1))
