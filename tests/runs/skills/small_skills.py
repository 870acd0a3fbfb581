"""The smallest run of skills: a tiny optimizer, and a workplace that is scripted.

A draft is some letters and the end; what a skill comes to is a digest of task, text and
sample, so that every run is known beforehand, and depends on nothing else.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass, field

import jax
import numpy as np

from jerp.models.decoder import DecoderConfig
from jerp.models.draft_policy import DraftPolicy
from jerp.runs.skills.loop import train_skills
from jerp.runs.skills.settings import SkillSettings
from jerp.runs.skills.work import ReadDraft, SkillRun
from jerp.skills.document import Skill, parse_skill
from jerp.training.skill import skill_algorithm
from jerp.typing import Outcome

PROMPT, LENGTH, STATES = 5, 4, 2
DECODER = DecoderConfig(7, 8, 16, 1, 2, 2, 4, context_length=PROMPT + LENGTH)
POLICY = DraftPolicy(DECODER, PROMPT, LENGTH, stop_tokens=(1,))
CONFIG, HYPER = skill_algorithm(STATES, learning_rate=0.01)
SETTINGS = SkillSettings(phases=2, batches=2, num_drafts=4, num_runs=2)
TASKS = ("apples", "pears", "plums")
KEY = jax.random.key(7)
PARAMS = jax.device_get(POLICY.init(jax.random.key(1)))


@dataclass(frozen=True)
class Scripted:
    """Executes by digest.

    Attributes:
      fate: of all runs, instead of the digest's.
      luck: makes it another workplace.
      dies_after: trials after which the next one is the last straw.
      asked: every trial that was executed.
      shown: every state that a prompt was made of.
    """

    fate: Outcome | None = None
    luck: int = 0
    dies_after: int | None = field(default=None, compare=False)
    asked: list = field(default_factory=list, compare=False)
    shown: list = field(default_factory=list, compare=False)

    def prompts(self, states):
        self.shown.extend(states)
        rows = np.zeros((len(states), PROMPT), np.int32)
        for row, state in zip(rows, states, strict=True):
            words = [2 + TASKS.index(state.task)]
            if state.skill is not None:
                words.append(2 + len(parse_skill(state.skill).workflow))
            words += [5] * (state.success is not None)
            words += [6] * (state.failure is not None)
            row[: len(words)] = words
        return rows

    def read(self, task, tokens, mask):
        letters = [int(token) for token in tokens[mask] if token > 1]
        if len(letters) == LENGTH:
            return ReadDraft(None, "cut", len(letters), ("unclosed",))
        if not letters:
            return ReadDraft(None, "", 0, ("malformed_skill", "empty"))
        steps = tuple(f"Do {letter}." for letter in letters)
        return ReadDraft(Skill(task, "Fruit.", steps), f"Of {letters}.", len(letters))

    def execute(self, trials):
        found = []
        for trial in trials:
            if self.dies_after is not None and len(self.asked) >= self.dies_after:
                raise KeyboardInterrupt
            self.asked.append(trial)
            found.append(self.run(trial))
        return found

    def run(self, trial):
        text = f"{self.luck}|{trial.task}|{trial.skill}|{trial.sample}"
        byte = hashlib.sha256(text.encode()).digest()[0]
        kinds = ((110, Outcome.SUCCESS), (220, Outcome.FAILURE), (240, 2), (256, 4))
        outcome = next(kind for most, kind in kinds if byte < most)
        outcome = outcome if self.fate is None else self.fate
        return SkillRun(outcome, {"said": [byte, trial.sample]}, 1 + byte % 3, byte)


def run(folder, until=None, **changes):
    """`train_skills` with small settings, some of them changed."""
    given = {"key": KEY, "workplace": Scripted(), "policy": POLICY, "config": CONFIG}
    given |= {"hyper": HYPER, "params": PARAMS}
    first = [changes.pop(name, value) for name, value in given.items()]
    settings = {"tasks": TASKS, "settings": SETTINGS, "execute_at_once": 5}
    return train_skills(folder, *first, until=until, **{**settings, **changes})


def bits(tree):
    """Of every leaf, keys included."""
    return [
        np.asarray(jax.random.key_data(x) if "key<" in str(x.dtype) else x).tobytes()
        for x in jax.tree.leaves(tree)
    ]


def written(folder):
    """What a run says in files, but for its checkpoints."""
    names = ("metrics.jsonl", "tree.jsonl", "runs.jsonl")
    return {name: (folder / name).read_bytes() for name in names}


def most_often(workplace):
    """How often that trial was executed that was executed most."""
    return max(Counter(workplace.asked).values(), default=0)
