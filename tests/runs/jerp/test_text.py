"""A joint run of a policy that reads the world, and its rules, as text."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from jerp.bridge.prompting import Prompting
from jerp.bridge.reflection import Operation, Reflection
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.world_episodes import play_worlds
from jerp.bridge.world_text import TextView
from jerp.envs.house_text import HouseText
from jerp.errors import ConfigError, StorageError
from jerp.models.token_policy import token_policy
from jerp.rules.edits import EditOp
from jerp.runs.jerp.occasions import situate_by_replay
from jerp.runs.jerp.prompted import PromptedPlay
from jerp.storage.metrics import read_metrics
from tests.bridge.words import word_tokenizer
from tests.runs.jerp.small_run import ENV, HOUSE, LANGUAGE, STEPS, TASK, bits, run
from tests.runs.jerp.test_loop import Listening

SEEN, WRITTEN = 160, 7
TEXT = HouseText(HOUSE.size)
WORDS = word_tokenizer(
    "Rules: -",
    *(f"When {situation}," for situation in LANGUAGE.situations),
    *(f"{move}." for move in LANGUAGE.moves),
    *(TEXT.action(a, None) for a in range(HOUSE.num_actions)),
    "You stand in the hall. Your hand is empty. You see: nothing. hold: at >",
)
POLICY = token_policy(
    *(WORDS.get_vocab_size(), SEEN, WRITTEN),
    num_steps=STEPS,
    hidden_size=8,
    num_layers=1,
    num_heads=1,
)


class Watched:
    """`play_worlds`, which keeps what episodes were shown."""

    def __init__(self):
        view = TextView(
            *(TEXT, WORDS),
            num_actions=HOUSE.num_actions,
            num_observation_tokens=SEEN,
            num_action_tokens=WRITTEN,
        )
        self.view, self._seen = view, []

    def __call__(self, *arguments, **settings):
        data = play_worlds(*arguments, view=self.view, **settings)
        first = data.observation["tokens"][:, 0]
        texts = settings["rule_texts"]
        self._seen.append((data.working_set, texts, [*map(self._told, first)]))
        return data

    def _told(self, ids):
        return " ".join(WORDS.id_to_token(int(i)) for i in ids if i)


@pytest.mark.slow
def test_rules_are_read_and_learned_as_text(tmp_path):
    task = replace(TASK, policy=POLICY)
    play, listening = Watched(), Listening(name="busy")
    settings = {
        "task": task,
        "play": play,
        "language": None,
        "tell": lambda data, _: play.view.transcripts(data),
        "situate": situate_by_replay(ENV),
        "reflector": listening,
        "chunk": 1,
    }
    trained = run(tmp_path / "whole", 3, **settings)
    heard = [trial for o in listening.heard[1] for trial in o.trials]
    assert all("You stand in the hall" in t.text and t.move.size for t in heard)
    shown = [
        (texts[ids[0]], told)
        for sets, texts, seen in play._seen
        for ids, told in zip(np.asarray(sets), seen, strict=True)
        if ids[0] >= 0
    ]
    assert shown and all(told.startswith("Rules :") for _, told in shown)
    for text, told in shown:
        assert " ".join(WORDS.encode(text).tokens) in told
    rows = read_metrics(tmp_path / "whole" / "metrics.jsonl")
    assert rows[-1]["rules"] > 4 and rows[1]["grad_norm"] > 0
    assert max(row["sampler_gap"] for row in rows) < 1e-4

    run(tmp_path / "parts", 1, **settings)
    rest = run(tmp_path / "parts", 3, **settings)
    assert bits(rest.state) == bits(trained.state)


def test_a_policy_without_rules_and_without_a_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="expected 0 for a policy that reads no rule"):
        run(tmp_path, 1, task=replace(TASK, policy=POLICY))
    assert not [*tmp_path.iterdir()]


@dataclass(frozen=True)
class Teller:
    """Says in a rule how often the model was seen to open something."""

    name: str = "teller"

    def reflect(self, occasions):
        texts = [trial.text for o in occasions for trial in o.trials]
        assert all("What can be done" not in text for text in texts)
        opened = sum(text.count("Action: open it") for text in texts)
        text = f"Remember that it was opened {opened} times."
        return [Reflection((Operation(EditOp.ADD, (), text),)) for _ in occasions]


def test_rules_of_a_model_that_is_prompted(tmp_path):
    asked = []

    def opens(request):
        asked.append(request.messages[1].content)
        return "Action: open it" if "open it" in asked[-1] else "Action: sing"

    executor = ScriptedExecutor(opens)
    play = PromptedPlay(executor, TEXT, Prompting("plain"))
    settings = {
        "task": replace(TASK, policy=None, env=HOUSE, num_steps=2),
        "params": {},
        "play": play,
        "tell": play.tell,
        "language": None,
        "reflector": Teller(),
        "learn_policy": False,
        "chunk": 1,
    }
    trained = run(tmp_path, 1, **settings)
    assert not any("Remember" in told for told in asked)
    asked.clear()
    again = PromptedPlay(ScriptedExecutor(opens), TEXT, Prompting("plain"))
    trained = run(tmp_path, 2, **{**settings, "play": again, "tell": again.tell})
    assert any("- Remember that it was opened 0 times." in told for told in asked)
    assert len(trained.book) > 0 and trained.state.train.params == {}
    other = PromptedPlay(ScriptedExecutor(opens), TEXT, Prompting("react"))
    with pytest.raises(StorageError, match="config/play/prompting/style is 'plain'"):
        run(tmp_path, 3, **{**settings, "play": other})
