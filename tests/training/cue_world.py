"""The probe world with its cue and step as fields, and two kinds of policy for it."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from jerp.envs.probes import Probe, probe_params
from jerp.models.policy import Acted, Evaluated
from jerp.models.step_policy import step_policy
from jerp.ops.masked import categorical_entropy, masked_log_softmax
from jerp.rollout.scan import rollout

STEPS = 2
POLICY = step_policy(
    (2, STEPS + 1), 2, num_steps=STEPS, hidden_size=16, num_layers=1, num_heads=2
)
CRITIC = step_policy(
    (2, STEPS + 1),
    2,
    num_steps=STEPS,
    hidden_size=16,
    num_layers=1,
    num_heads=2,
    value=True,
)


@dataclass(frozen=True)
class Table:
    """Logits and values of every step as parameters; a row is its episode's `seed`."""

    def init(self, key, rows=16):
        logits = jax.random.normal(key, (rows, STEPS, 2))
        return {"logits": logits, "value": jnp.zeros((rows, STEPS))}

    def evaluate(self, params, data, *, key=None):
        del key
        legal = data.legal | ~data.mask[..., None]
        log_probs = masked_log_softmax(params["logits"][data.seed], legal)
        action = jnp.where(data.mask, data.action, 0)[..., None]
        return Evaluated(
            log_prob=jnp.take_along_axis(log_probs, action, axis=-1)[..., 0],
            entropy=categorical_entropy(log_probs),
            value=params["value"][data.seed],
        )


@dataclass(frozen=True)
class CueTable:
    """Logits and values by cue and step: a policy that can solve every probe."""

    def init(self, key):
        logits = 0.1 * jax.random.normal(key, (2, STEPS, 2))
        return {"logits": logits, "value": jnp.zeros((2, STEPS))}

    def start(self, params, batch_size):
        return ()

    def act(self, params, memory, keys, observation, legal):
        log_probs = self._log_probs(params, observation, legal)
        action = jax.vmap(jax.random.categorical)(keys, log_probs).astype(jnp.int32)
        taken = jnp.take_along_axis(log_probs, action[:, None], axis=1)[:, 0]
        return memory, Acted(action, taken)

    def evaluate(self, params, data, *, key=None):
        del key
        seen = jnp.where(data.mask[..., None], data.observation, 0)
        log_probs = self._log_probs(params, seen, data.legal)
        action = jnp.where(data.mask, data.action, 0)[..., None]
        return Evaluated(
            log_prob=jnp.take_along_axis(log_probs, action, axis=-1)[..., 0],
            entropy=categorical_entropy(log_probs),
            value=params["value"][seen[..., 0], seen[..., 1]],
        )

    def _log_probs(self, params, seen, legal):
        # A step after the last is padding: any row will do.
        step = jnp.minimum(seen[..., 1], STEPS - 1)
        some = legal | ~jnp.any(legal, axis=-1, keepdims=True)
        return masked_log_softmax(params["logits"][seen[..., 0], step], some)


@dataclass(frozen=True)
class CueWorld(Probe):
    field_sizes = (2, STEPS + 1)

    def reset(self, key, params):
        return self._shown(*super().reset(key, params))

    def step(self, key, state, action, params):
        return self._shown(*super().step(key, state, action, params))

    def oracle(self, state, params):
        return state.cue

    def _shown(self, state, now):
        fields = jnp.stack([state.cue, state.step])
        return state, now.replace(observation=fields)


@partial(jax.jit, static_argnames=("policy", "kind", "groups", "size"))
def play(key, params, *, policy=POLICY, kind="matching", groups=4, size=4):
    """`groups` comparison groups of `size` episodes that start alike."""
    tasks = jax.tree.map(lambda x: jnp.repeat(x, groups), probe_params(kind))
    return rollout(
        key,
        CueWorld(STEPS),
        tasks,
        policy,
        params,
        num_steps=STEPS,
        batch_size=groups * size,
        shared_start=True,
    )
