"""What runs say of themselves: the same if they do the same, else by field."""

from dataclasses import dataclass, field, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jerp.bridge.llm_reflector import LlmReflector
from jerp.bridge.scripted import ScriptedExecutor
from jerp.envs.probes import probe_params
from jerp.models.token_policy import token_policy
from jerp.runs.policy.description import described, run_description
from jerp.runs.policy.groups import PolicyTask
from jerp.training.group_settings import GroupConfig, GroupHyper
from tests.training.cue_world import POLICY, STEPS, CueWorld

TASK = PolicyTask(CueWorld(STEPS), POLICY, GroupConfig(4), 4, STEPS)
HYPER, KEY, TASKS = GroupHyper(), jax.random.key(0), probe_params("action", "delayed")


def said(task=TASK, hyper=HYPER, key=KEY, tasks=TASKS, **beside):
    return run_description(task, hyper, key, tasks, **beside)


def changed(**other):
    ours, theirs = said(), said(**other)
    return {k for k in {*ours, *theirs} if ours.get(k) != theirs.get(k)}


def test_the_same_run_says_the_same_however_its_numbers_are_kept():
    whole = HYPER.replace(max_length=50)
    traced = jax.tree.map(jnp.float32, whole)
    assert said(hyper=whole) == said(hyper=traced)
    tasks = jax.tree.map(np.asarray, TASKS)
    assert changed(tasks=tasks, key=jax.random.key(0)) == set()
    assert said()["hyper/learning_rate"] == "0.001"
    assert said()["task/policy/config/num_layers"] == "1"


def test_what_differs_is_named():
    config = replace(TASK.config, baseline="leave_one_out")
    assert changed(task=replace(TASK, config=config)) == {"task/config/baseline"}
    assert changed(task=replace(TASK, group_size=8)) == {"task/group_size"}
    assert changed(hyper=HYPER.replace(clip_high=0.3)) == {"hyper/clip_high"}
    assert changed(key=jax.random.key(1)) == {"key"}
    assert changed(tasks=probe_params("action", "action")) == {"tasks"}
    other = replace(TASK, env=CueWorld(STEPS + 1))
    assert changed(task=other) == {"task/env/num_steps"}


def test_long_settings_are_short_and_objects_have_no_address():
    words = tuple((i + 1, i + 2) for i in range(50))
    policies = [
        token_policy(99, 1, 2, num_steps=2, actions=(*words, last))
        for last in ((60, 61), (60, 62))
    ]
    one, other = (said(task=replace(TASK, policy=p)) for p in policies)
    assert max(map(len, one.values())) < 100
    assert one["task/policy/actions"] != other["task/policy/actions"]

    class World:
        """Has the `repr` of `object`."""

        def __init__(self, size=3):
            self.size = size

    assert changed(task=replace(TASK, env=World())) >= {"task/env/size"}
    sizes = [said(task=replace(TASK, env=World(n)))["task/env/size"] for n in (3, 4)]
    assert sizes == ["3", "4"]
    task = replace(TASK, env=World())
    assert said(task=task) == said(task=replace(TASK, env=World()))


def played(*args, **settings):
    """Stands for what plays from the host."""


def test_what_is_beside_a_run_belongs_to_it():
    large = {"decoder": np.arange(1e4, dtype=np.float32)}
    other = {"decoder": large["decoder"] + 1}
    assert changed(frozen=large) == {"frozen"}
    assert said(frozen=large) == said(frozen=jax.tree.map(jnp.asarray, large))
    assert said(frozen=large) != said(frozen=other)
    assert said(reference=large)["reference"] != said(reference=other)["reference"]
    assert changed(play=played) == {"play"}
    settings = [said(play=partial(played, view=view)) for view in ("wide", "narrow")]
    assert settings[0]["play/view"] == "'wide'" != settings[1]["play/view"]


def test_what_is_counted_along_the_way_is_not_what_a_run_is_of():
    executor = ScriptedExecutor(lambda request: "", name="first")
    before = described("reflector", LlmReflector(executor))
    executor.calls += 1
    assert described("reflector", LlmReflector(executor)) == before
    assert before["reflector/executor"] == "scripted:first"
    other = LlmReflector(ScriptedExecutor(lambda request: "", name="other"))
    assert described("reflector", other) != before

    @dataclass(frozen=True)
    class Counting:
        rate: float
        calls: int = field(default=0, compare=False)

    assert described("play", Counting(0.5, 3)) == described("play", Counting(0.5))
    assert described("play", Counting(0.5)) != described("play", Counting(0.6))
