"""SmolLM2 reflects and plays by prompting, where it is cached; nothing is fetched."""

import jax
import pytest

from jerp.bridge.executor import Sampling
from jerp.bridge.llm_reflector import LlmReflector
from jerp.bridge.local import LocalExecutor
from jerp.bridge.prompting import Prompting
from jerp.bridge.reflexion import play_reflexion
from jerp.envs.house import house_small
from jerp.envs.house_tasks import house_tasks
from jerp.envs.house_text import HouseText
from jerp.storage.weights import list_models, load_weights
from jerp.trajectory import check_trajectory
from jerp.typing import Outcome
from tests.bridge.test_llm_reflector import LOST, WON
from tests.bridge.trials import occasion

[INFO] = (info for info in list_models() if info.name == "smollm2")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.weights,
    pytest.mark.skipif(
        not INFO.present,
        reason=f"no SmolLM2 weights in {INFO.path}; type: jerp models pull smollm2",
    ),
]


def test_a_language_model_plays_takes_notes_and_reflects():
    executor = LocalExecutor(load_weights("smollm2"))
    house = house_small()
    tasks = house_tasks(jax.random.key(0), 2, size=house.size)
    found = play_reflexion(
        *(jax.random.key(1), house, tasks, executor, HouseText(house.size)),
        Prompting("react", Sampling(temperature=0.7, max_tokens=48)),
        num_trials=2,
        num_steps=3,
        batch_size=2,
    )
    for trial in found.trials:
        check_trajectory(trial.trajectory)
        assert (trial.trajectory.outcome != Outcome.INFRASTRUCTURE).all()
        assert trial.trajectory.usage[..., 2].max() > 0
        assert (trial.unparsed <= 3).all()
    said = sum(map(len, found.notes)) + sum(found.rejected.values())
    assert said == (found.success[0] == 0).sum()
    reflector = LlmReflector(executor, sampling=Sampling(0.0, max_tokens=64))
    group = occasion(WON, LOST, rules=["Light the stove first.", "Wait."])
    [reflection] = reflector.reflect([group])
    assert reflection.status in ("ok", "truncated", "empty")
    assert len(reflection.operations) + sum(reflection.rejected.values()) > 0
    assert reflector.reflect([group]) == [reflection]
