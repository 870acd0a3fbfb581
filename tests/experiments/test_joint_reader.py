"""How a language model reads rules: its settings, its tasks, and what it is told."""

import re
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.joint_rules.base import all_rules
from experiments.joint_rules.config import JerpConfig
from experiments.joint_rules.language_model_config import (
    PAPER,
    READER_SMOKE,
    ReaderSizes,
    reader_algorithm,
    reader_lora,
    reader_task,
)
from experiments.joint_rules.language_model_reader import (
    chosen_tasks,
    open_reader,
    told_of,
)
from experiments.joint_rules.language_model_retrieval import Lines, Similar
from jerp.envs.house import house_large, house_small
from jerp.envs.house_rules import HouseRules
from jerp.envs.rule_language import read_sentence
from jerp.errors import ConfigError, UnknownNameError
from jerp.models.decoder import DecoderConfig
from jerp.models.presets import tiny_decoder
from jerp.rules.book import RuleBook
from jerp.rules.pool import init_pool
from jerp.training.group import make_group_step
from tests.experiments.small_reader import TEMPLATE, house_words


def test_settings_of_a_reader(tmp_path):
    config = JerpConfig(policy="smollm2-135m")
    assert config.folder.name == "jerp-smollm2-135m" and config.reads
    assert config.reader_sizes == ReaderSizes()
    assert replace(config, smoke=True).reader_sizes is READER_SMOKE
    assert "--policy smollm2-135m" in config.command
    with pytest.raises(UnknownNameError, match="did you mean 'smollm2-135m'"):
        JerpConfig(policy="smollm2")
    assert replace(config, full=True).reader_sizes is PAPER
    for name, value in {"seeds": 3, "rules": tmp_path, "by": "instance"}.items():
        with pytest.raises(ConfigError, match=f"{name}: expected none with policy"):
            JerpConfig(policy="smollm2-135m", **{name: value})


def test_microbatches_divide_the_episodes_of_an_update():
    config, hyper = reader_algorithm(ReaderSizes())
    assert config.microbatches == 3 and config.num_groups == 3
    assert hyper.kl_weight == 0.001
    assert reader_algorithm(replace(READER_SMOKE, microbatch=8))[0].microbatches == 1


QWEN = DecoderConfig(
    vocab_size=151_936,
    hidden_size=1536,
    intermediate_size=8960,
    num_layers=28,
    num_heads=12,
    num_kv_heads=2,
    head_dim=128,
    context_length=32_768,
    rope_base=1e6,
    rms_epsilon=1e-6,
    qkv_bias=True,
)
"""Sizes of Qwen2.5-1.5B-Instruct."""


def test_the_papers_numbers_make_a_task_of_a_model_of_that_size():
    task, hyper = reader_task(PAPER, QWEN)
    assert (task.group_size, task.num_steps) == (8, 50)
    assert task.env.world == house_large() and task.env.world.horizon == 50
    assert task.config.num_groups * task.group_size == 256
    assert PAPER.iterations == PAPER.asked_iterations == 200
    assert (hyper.learning_rate, hyper.discount) == (3e-6, 0.95)
    assert (task.policy.lora.rank, task.policy.lora.alpha) == (64, 64.0)
    assert (task.config.advantage, task.config.scale) == ("group", "std")
    shapes = jax.eval_shape(task.policy.init, jax.random.key(0))
    sizes = {
        name: sum(leaf.size for leaf in jax.tree.leaves(tree))
        for name, tree in shapes.items()
    }
    assert sizes["decoder"] == 1_543_714_304  # as its authors count: 1.54 B
    # Of each matrix in -> out: 64 (in + out).
    kinds = [(1536, 1536), (1536, 256), (1536, 256), (1536, 1536)]
    kinds += [(1536, 8960), (1536, 8960), (8960, 1536)]
    assert sizes["adapters"] == 28 * 64 * sum(map(sum, kinds))
    init, _ = make_group_step(task.config, task.policy)
    adapters = {"adapters": shapes["adapters"]}
    state = jax.eval_shape(init, jax.random.key(0), hyper, adapters)
    assert jax.tree.structure(state.params) == jax.tree.structure(adapters)


def test_the_papers_numbers_ask_for_a_context_that_holds_an_episode():
    with pytest.raises(ConfigError, match=r"context_length: expected at least 4096"):
        reader_task(PAPER, replace(QWEN, context_length=2048))


def test_adapters_may_stand_in_the_last_layers_alone():
    lora = reader_lora(READER_SMOKE, replace(QWEN, num_layers=12))
    match = re.compile(lora.targets).fullmatch
    assert match("layer_11/q") and not match("layer_1/q") and not match("layer_10/q")
    every = re.compile(reader_lora(PAPER, QWEN).targets).fullmatch
    assert all(every(f"layer_{i}/down") for i in range(28)) and not every("layer_28/q")


@pytest.fixture(scope="module")
def reader():
    """Who reads, of a model without weights: nothing here is computed by it."""
    tokenizer = house_words()
    config = tiny_decoder(tokenizer.get_vocab_size(), context_length=2048)
    weights = SimpleNamespace(
        name="made up", config=config, tokenizer=tokenizer, chat_template=TEMPLATE
    )
    return open_reader(weights, replace(READER_SMOKE, num_rules=3))


def test_tasks_are_as_many_of_each_type_in_turn(reader):
    found = chosen_tasks(jax.random.key(1), reader, 3, "train")
    assert found.kinds.tolist() == [0, 1, 0, 1, 0, 1]
    np.testing.assert_array_equal(found.tasks.task, found.kinds)
    assert [words.split()[0] for words in reader.words(found.tasks)] == [
        "Put",
        "Look",
    ] * 3


def test_right_and_wrong_rules_speak_of_the_same_situations(reader):
    held = chosen_tasks(jax.random.key(1), reader, 1, "seen")
    right, wrong = told_of(jax.random.key(2), reader, held)
    assert right.shape == wrong.shape == (2, 3)
    rules, language = all_rules(reader.place.rule_sizes), HouseRules(house_small().size)
    both = (right >= 0) & (wrong >= 0)
    assert both.any()
    np.testing.assert_array_equal(rules[right[both], 0], rules[wrong[both], 0])
    assert (rules[right[both], 1] != rules[wrong[both], 1]).all()
    for rule in right[right >= 0]:
        assert read_sentence(language, reader.texts[rule]) == tuple(rules[rule])


class Letters:
    """Embeds a text by how often it has each letter."""

    fingerprint = "letters"

    def embed(self, texts):
        rows = [[text.count(c) for c in "abc"] for text in texts]
        return np.asarray(rows, np.float32)


def test_rules_are_retrieved_by_what_they_are_about_in_the_pool_of_their_type():
    book = RuleBook(["Do aaa.", "Do bbb.", "Do ccc."])
    pool = init_pool(2, 3).replace(
        active=jnp.array([[True, True, False], [False, False, True]]),
        rule_id=jnp.array([[0, 1, -1], [-1, -1, 2]]),
        score=jnp.array([[9.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        tokens=jnp.array([[4, 4, 0], [0, 0, 9]]),
    )
    similar = Similar(Letters(), ("bb", "aa", "bb"), np.int32([0, 0, 1]), 1, 9)
    assert similar(pool, book).tolist() == [[1], [0], [2]]
    assert replace(similar, tokens=8)(pool, book).tolist() == [[1], [0], [-1]]
    assert similar(init_pool(2, 3), RuleBook()).tolist() == [[-1]] * 3


def test_a_rule_is_as_long_as_its_line_in_a_prompt():
    lines = Lines(house_words())
    # Rules : \n - When it is hot , \n and the full stop.
    assert lines("When it is hot, open it.") == 13


def test_a_model_that_cannot_be_asked_is_refused_before_anything_is_done():
    config = tiny_decoder(9)
    weights = SimpleNamespace(name="base", config=config, chat_template="")
    with pytest.raises(ConfigError, match="policy: expected an instruction-tuned"):
        open_reader(weights, READER_SMOKE)
