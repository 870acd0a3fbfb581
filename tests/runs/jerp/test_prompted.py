"""A prompted model as what plays in a run: each iteration asks anew."""

import jax

from jerp.bridge.prompting import Prompting
from jerp.bridge.scripted import ScriptedExecutor
from jerp.envs.house_text import HouseText
from jerp.runs.jerp.prompted import PromptedPlay
from tests.runs.jerp.small_run import HOUSE, TASKS


def test_iterations_ask_anew_and_one_that_is_done_again_asks_the_same():
    tasks = jax.tree.map(lambda x: x[:2], TASKS)

    def asked(key):
        executor = ScriptedExecutor(lambda request: " fly")
        play = PromptedPlay(executor, HouseText(HOUSE.size), Prompting("plain"))
        play(key, HOUSE, tasks, None, {}, num_steps=1, batch_size=4, shared_start=True)
        return executor.requests

    first, second, again = (asked(jax.random.key(i)) for i in (0, 1, 0))
    assert first == again
    assert len({*first, *second}) == 8
    numbers = [request.sample_index for request in first]
    assert numbers == [numbers[0]] * 2 + [numbers[0] + 1] * 2
