"""A tiny model that knows the words of the house, as a folder of weights."""

import jax

from jerp.envs.house import house_small
from jerp.envs.house_rules import HouseRules
from jerp.envs.house_text import TASK_TEXTS, HouseText
from jerp.envs.house_things import OBJECTS, PLACES, ROOMS, HouseTask
from jerp.models.presets import tiny_decoder
from jerp.storage.export import export_folder
from tests.bridge.words import word_tokenizer
from tests.envs.homes import some_tasks
from tests.models.tiny import random_params

TEMPLATE = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"


def house_words():
    """A tokenizer of all that the house and its rules can say."""
    house = house_small()
    text, language = HouseText(house.size), HouseRules(house.size)
    row = jax.tree.map(lambda x: x[0], some_tasks(1))
    names = [thing.name for thing in (*OBJECTS, *PLACES)]
    asked = [TASK_TEXTS[t].format(kind=n, place="x") for t in HouseTask for n in names]
    return word_tokenizer(
        *asked,
        *(f"{name} In the {room}: 1 2 3 4," for name in names for room in ROOMS),
        *(text.action(a, row) for a in range(house.num_actions)),
        *language.situations,
        *language.moves,
        "You stand in the hall at. Your hand is empty. It is closed open. You see:",
        "nothing hold hot cold clean and (2) (3) Rules: - When, .",
    )


def small_model(folder, *, chat_template=TEMPLATE):
    tokenizer = house_words()
    config = tiny_decoder(tokenizer.get_vocab_size(), context_length=2048)
    return export_folder(
        folder,
        config,
        random_params(0, config),
        tokenizer,
        chat_template=chat_template,
        stop_tokens=(2,),
    )
