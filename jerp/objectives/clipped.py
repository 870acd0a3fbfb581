"""Clipped policy losses of the PPO family, by token or by sequence.

`[B, L]` holds B sequences of L padded tokens, True in `mask` where the policy that
learns drew the token. The ratio is that of the learning policy to the one that the
batch's updates started from. Only `log_prob` carries a gradient.
"""

from __future__ import annotations

from typing import Literal, get_args

import jax.numpy as jnp
from jax import lax

from jerp.errors import ConfigError
from jerp.objectives.aggregate import Aggregation, aggregate_loss
from jerp.objectives.entries import entry_mean, real_entries
from jerp.objectives.kl import KlEstimator, kl_estimate
from jerp.ops.checks import (
    check_any,
    check_axes,
    check_choice,
    check_settings,
    concrete,
)
from jerp.ops.masked import masked_mean, safe_exp
from jerp.records import LossOutput, WeightedMean
from jerp.typing import Array, ArrayLike

__all__ = ["Form", "Ratio", "clipped_policy_loss"]

Form = Literal["ppo", "cispo"]
Ratio = Literal["token", "sequence", "sequence_token"]


def clipped_policy_loss(
    log_prob: Array,
    old_log_prob: Array,
    advantage: Array,
    mask: Array,
    *,
    clip_low: ArrayLike = 0.2,
    clip_high: ArrayLike = 0.2,
    dual_clip: ArrayLike | None = None,
    form: Form = "ppo",
    ratio: Ratio = "token",
    sampler_log_prob: Array | None = None,
    max_importance: ArrayLike = 2.0,
    reference_log_prob: Array | None = None,
    kl_weight: ArrayLike = 0.0,
    kl_estimator: KlEstimator = "k3",
    aggregation: Aggregation = "token_mean",
    constant: ArrayLike | None = None,
) -> LossOutput:
    """Policy loss whose ratio is clipped, with the options of its family.

        L = aggregate of w_t P_t + kl_weight KL_t

        form "ppo":   P_t = - min(r A, clip(r, 1 - clip_low, 1 + clip_high) A)
                      and, where A < 0, at most - dual_clip A
             "cispo": P_t = - sg[clip(r, 1 - clip_low, 1 + clip_high)] A log pi_t

        ratio "token":          r_t = pi_t / pi_old_t
              "sequence":       s = exp(mean_t log(pi_t / pi_old_t)), of all its tokens
              "sequence_token": sg[s] pi_t / sg[pi_t]

        w_t = sg[min(pi_old_t / pi_sampler_t, max_importance)], 1 without a sampler
        KL_t = `kl_estimate`(pi, pi_reference)

    with `sg` no gradient. Beyond a log-ratio of 80 the exponential goes on as its
    tangent, so that value and gradient are finite.

    | variant | keywords besides the defaults |
    | --- | --- |
    | PPO | none |
    | GRPO | `aggregation="sequence_mean_token_mean"`, `kl_weight=0.04` |
    | Dr.GRPO | `aggregation="sum_over_constant"`, `constant` the longest length |
    | DAPO | `clip_high=0.28` |
    | GSPO | `ratio="sequence"`, `clip_low=3e-4`, `clip_high=4e-4`, and as GRPO |
    | GSPO-token | the same with `ratio="sequence_token"`, for advantages by token |
    | CISPO | `form="cispo"`, `clip_low=1.0` (none below) |
    | verl's default | `dual_clip=3.0` |

    Args:
      log_prob: `[B, L]` float, of the drawn tokens under the policy that learns. The
        padding of all arrays may hold anything, NaN and infinities included.
      old_log_prob: `[B, L]`, under the policy before the batch's first update, by the
        same code and numerics as `log_prob`.
      advantage: `[B, L]`, or `[B]` for every token of the sequence.
      mask: `[B, L]` bool.
      clip_low: >= 0; infinity for no lower clip.
      clip_high: >= 0; infinity for no upper clip.
      dual_clip: > 1, a bound for the ratio of tokens with a negative advantage, beyond
        which their gradient is 0; None for none. Only with "ppo".
      form: see above.
      ratio: see above. "sequence_token" only with "ppo": "cispo" has no gradient
        through the ratio, and "sequence" gives it the same value.
      sampler_log_prob: `[B, L]`, under the engine that drew the tokens, where its
        numerics differ from those of training.
      max_importance: > 0.
      reference_log_prob: `[B, L]`, under the policy to stay near to.
      kl_weight: >= 0; a Python 0 without a reference. With 0 a reference is only
        logged.
      kl_estimator: see `kl_estimate`.
      aggregation: see `aggregate_loss`; of policy loss and KL alike.
      constant: see `aggregate_loss`.

    Returns:
      The loss, and metrics as means over tokens:
        `ratio`
        `clip_fraction`, of it `clip_fraction_upper` and `clip_fraction_lower`: tokens
          whose gradient the clip takes ("cispo": whose ratio is outside); without those
          of the dual clip
        `dual_clip_fraction`, with a dual clip
        `old_kl_k1`, `old_kl_k3`: estimates of KL(old, policy)
        `importance_weight`, `importance_truncated` (a share), with a sampler
        `kl`, with a reference
        `tokens`: the mean length; its `total` counts tokens, its `weight` sequences
        `invalid`: tokens with a NaN or infinite entry; its `total` counts them

    Raises:
      ConfigError: keywords that contradict each other.
      InputError: a NaN or infinite real entry, a keyword out of range, an all-masked
        batch, where Python can see it. Under jit an invalid token is counted and makes
        NaN of the loss, of the metrics that are no shares, and of its own gradient (of
        its sequence's, where the ratio is the sequence's); so does a NaN in a reference
        that is only logged. A batch without a real token has total, weight and gradient
        0, so that accumulating over microbatches survives it.

    Deviations: GSPO's loss is one a sequence: with "sequence_mean_token_mean" as in its
      paper, while "token_mean" lets long sequences count for more. verl's code has
      `dual_clip=3.0` unasked. In verl-agent's, the gradient of a masked token whose
      ratio overflows is NaN; here padding reaches nothing.

    Reference: PPO, Schulman et al., arXiv:1707.06347, eq. 7; dual clip, Ye et al.,
      arXiv:1912.09729; GRPO, Shao et al., arXiv:2402.03300, eq. 3; DAPO, Yu et al.,
      arXiv:2503.14476; GSPO, Zheng et al., arXiv:2507.18071; CISPO, MiniMax-M1,
      arXiv:2506.13585; truncated importance sampling, Yao et al., "Your Efficient RL
      Framework Secretly Brings You Off-Policy RL Training", 2025.

    Example:
      >>> old, mask = jnp.log(jnp.array([[0.5, 0.5]])), jnp.ones((1, 2), bool)
      >>> new = jnp.log(jnp.array([[0.75, 0.25]]))
      >>> out = clipped_policy_loss(new, old, jnp.array([2.0]), mask)
      >>> round(float(out.loss.value()), 4)  # - 2 (1.2 + 0.5) / 2
      -1.7
      >>> float(out.metrics["clip_fraction_upper"].value())
      0.5
    """
    check_axes(mask=(mask, "B L", bool))
    poison = _check_ranges(clip_low, clip_high, dual_clip, max_importance, kl_weight)
    _check_choices(form, ratio, dual_clip, reference_log_prob, kl_weight)
    check_any("mask", mask)
    arrays = {
        "log_prob": log_prob,
        "old_log_prob": old_log_prob,
        "advantage": _by_token(advantage, mask),
        "sampler_log_prob": sampler_log_prob,
        "reference_log_prob": reference_log_prob,
    }
    given = {name: x for name, x in arrays.items() if x is not None}
    real, invalid = real_entries(mask, **given)
    log_prob = real.pop("log_prob")
    real = lax.stop_gradient(real)
    old, advantage = real["old_log_prob"], real["advantage"] + poison
    ratios = _ratios(log_prob, old, mask, ratio)
    if form == "ppo":
        loss, metrics = _ppo(ratios, advantage, clip_low, clip_high, dual_clip)
    else:
        loss, metrics = _cispo(ratios, advantage, clip_low, clip_high, log_prob)
    metrics |= {
        "ratio": ratios,
        "invalid": invalid,
        "old_kl_k1": kl_estimate(old, log_prob, mask, estimator="k1"),
        "old_kl_k3": kl_estimate(old, log_prob, mask, estimator="k3"),
    }
    if sampler_log_prob is not None:
        weight = safe_exp(old - real["sampler_log_prob"])
        metrics["importance_truncated"] = weight > max_importance
        metrics["importance_weight"] = jnp.minimum(weight, max_importance)
        loss = metrics["importance_weight"] * loss
    if reference_log_prob is not None:
        reference = real["reference_log_prob"]
        metrics["kl"] = kl_estimate(log_prob, reference, mask, estimator=kl_estimator)
        loss = loss + kl_weight * metrics["kl"]
    return LossOutput(
        loss=aggregate_loss(loss, mask, aggregation=aggregation, constant=constant),
        metrics=_over_tokens(metrics, mask),
    )


def _by_token(advantage: Array, mask: Array) -> Array:
    """An advantage a sequence becomes one a token."""
    advantage = jnp.asarray(advantage)
    if advantage.ndim == 1:
        check_axes(mask=(mask, "B L"), advantage=(advantage, "B"))
        advantage = jnp.broadcast_to(advantage[:, None], mask.shape)
    return advantage


def _ratios(log_prob: Array, old: Array, mask: Array, ratio: str) -> Array:
    """What is clipped, `[B, L]`."""
    log_ratio = log_prob - old
    if ratio == "token":
        return safe_exp(log_ratio)
    of_sequence = safe_exp(masked_mean(log_ratio, mask, axis=1))
    of_sequence = jnp.broadcast_to(of_sequence[:, None], mask.shape)
    if ratio == "sequence":
        return of_sequence
    one = jnp.exp(log_prob - lax.stop_gradient(log_prob))
    return lax.stop_gradient(of_sequence) * one


def _ppo(
    ratio: Array,
    advantage: Array,
    clip_low: ArrayLike,
    clip_high: ArrayLike,
    dual_clip: ArrayLike | None,
) -> tuple[Array, dict[str, Array]]:
    """Losses `[B, L]` and what was clipped.

    The minimum of two products is written as the choice it amounts to, so that a token
    counted as clipped is exactly a token without a gradient.
    """
    above = (advantage > 0) & (ratio > 1 + clip_high)
    below = (advantage < 0) & (ratio < 1 - clip_low)
    metrics = _clip_metrics(above, below)
    bounded = jnp.where(above, 1 + clip_high, jnp.where(below, 1 - clip_low, ratio))
    if dual_clip is not None:
        far = (advantage < 0) & (ratio > dual_clip)
        bounded = jnp.where(far, dual_clip, bounded)
        metrics["dual_clip_fraction"] = far
    return -bounded * advantage, metrics


def _cispo(
    ratio: Array,
    advantage: Array,
    clip_low: ArrayLike,
    clip_high: ArrayLike,
    log_prob: Array,
) -> tuple[Array, dict[str, Array]]:
    """Losses `[B, L]` and what was clipped."""
    low, high = 1 - clip_low, 1 + clip_high
    weight = lax.stop_gradient(jnp.clip(ratio, low, high))
    return -weight * advantage * log_prob, _clip_metrics(ratio > high, ratio < low)


def _clip_metrics(above: Array, below: Array) -> dict[str, Array]:
    return {
        "clip_fraction": above | below,
        "clip_fraction_upper": above,
        "clip_fraction_lower": below,
    }


def _over_tokens(metrics: dict[str, Array], mask: Array) -> dict[str, WeightedMean]:
    length = WeightedMean(
        total=jnp.sum(mask, dtype=jnp.float32),
        weight=jnp.sum(jnp.any(mask, axis=1), dtype=jnp.float32),
    )
    means = {
        name: entry_mean(lax.stop_gradient(x), mask) for name, x in metrics.items()
    }
    return {**means, "tokens": length}


def _check_ranges(
    clip_low: ArrayLike,
    clip_high: ArrayLike,
    dual_clip: ArrayLike | None,
    max_importance: ArrayLike,
    kl_weight: ArrayLike,
) -> ArrayLike:
    return check_settings(
        clip_low=(clip_low, lambda v: v >= 0, ">= 0"),
        clip_high=(clip_high, lambda v: v >= 0, ">= 0"),
        dual_clip=(dual_clip, lambda v: v > 1, "> 1"),
        max_importance=(max_importance, lambda v: v > 0, "> 0"),
        kl_weight=(kl_weight, lambda v: v >= 0, ">= 0"),
    )


def _check_choices(
    form: str,
    ratio: str,
    dual_clip: ArrayLike | None,
    reference: Array | None,
    kl_weight: ArrayLike,
) -> None:
    check_choice("form", form, get_args(Form))
    check_choice("ratio", ratio, get_args(Ratio))
    if form == "cispo" and dual_clip is not None:
        raise ConfigError(
            f'dual_clip: expected None with form="cispo", got {dual_clip}'
        )
    if form == "cispo" and ratio == "sequence_token":
        raise ConfigError(
            'ratio: expected "token" or "sequence" with form="cispo", got '
            f'{ratio!r}. Without a gradient through the ratio "sequence" is the same'
        )
    weight = concrete(kl_weight)
    if reference is None and (weight is None or weight != 0):
        raise ConfigError(
            f"kl_weight: expected 0 without reference_log_prob, got {kl_weight}. Give "
            "the reference's log-probabilities"
        )
