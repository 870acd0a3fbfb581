"""A house that is played by prompting, and an oracle in words for it."""

from dataclasses import replace

import jax

from jerp.bridge.prompted_episodes import play_prompted
from jerp.bridge.prompting import Prompting
from jerp.bridge.world_text import rows_of
from jerp.envs.house import house_small
from jerp.envs.house_text import HouseText
from jerp.rollout.demonstrations import demonstrations
from tests.envs.homes import some_tasks

STEPS, BATCH = 8, 4
HOUSE = replace(house_small(), horizon=STEPS)
TASKS = some_tasks(2)
TEXT = HouseText(HOUSE.size)
SAID = [TEXT.task(None, task) for task in rows_of(jax.device_get(TASKS))]
PLAIN, REACT = Prompting("plain"), Prompting("react")
SIZES = {"num_steps": STEPS, "batch_size": BATCH}


def play(executor, prompting=PLAIN, **options):
    sizes = {**SIZES, **options}
    return play_prompted(
        jax.random.key(3), HOUSE, TASKS, executor, TEXT, prompting, **sizes
    )


def listed(request):
    """The actions that a prompt lists, and what stands before them."""
    told, _, options = request.messages[1].content.partition("What can be done now:\n")
    lines = options.partition("\n\n")[0].split("\n")
    return [line.removeprefix("Action: ") for line in lines], told


def steps_of(request):
    """How many steps the episode of a prompt took."""
    return listed(request)[1].count("\nAction: ")


def oracle_actions():
    """What an oracle does in the same worlds."""
    play = jax.jit(lambda key: demonstrations(key, HOUSE, TASKS, **SIZES))
    return jax.device_get(play(jax.random.key(3)))


class Oracle:
    """Answers with what the oracle does, as thoughtfully as is asked."""

    def __init__(self, shown, thought=""):
        self.shown, self.thought = shown, thought

    def __call__(self, request):
        row = next(i for i, said in enumerate(SAID) if said in listed(request)[1])
        action = TEXT.action(int(self.shown.action[row, steps_of(request)]), None)
        return f" {self.thought}\nAction: {action}" if self.thought else f" {action}"
