"""What a joint run refuses before anything is written."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from jerp.bridge.llm_reflector import LlmReflector
from jerp.bridge.misled import Misled
from jerp.bridge.scripted import ScriptedExecutor
from jerp.errors import ConfigError
from jerp.runs.jerp.settings import RuleSettings
from jerp.training.joint import RuleConfig
from tests.runs.jerp.small_run import LANGUAGE, RULES, TYPES, Busy, run

LLM = LlmReflector(ScriptedExecutor({}))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"reflector": None}, "reflector: expected one to learn rules with, got None"),
        ({"language": None}, "language: expected the one that the policy's rules"),
        ({"task_key": TYPES[1:]}, r"task_key: expected an integer for each of 12 task"),
        ({"task_key": TYPES + 6}, r"indices of 6 task_keys, got 6 to 11"),
        ({"task_keys": ("pick",) * 6}, "task_keys: expected names .*, each once"),
        ({"task_keys": (*"abcde", " f\n")}, "task_keys: expected names of one plain"),
        ({"task_words": ("heat it",)}, "task_words: expected one for each of 12 tasks"),
        (
            {"rules": RuleSettings(RuleConfig(3))},
            "num_rules: expected the policy's 2, or 0, got 3",
        ),
        ({"chunk": 0}, "chunk: expected at least 1, got 0"),
        ({"chunk": 1.5}, r"chunk: expected a whole number, at least 1, got 1\.5"),
        ({"iterations": 1.5}, "iterations: expected a whole number"),
        *(
            ({"keep": x}, f"keep: expected at least 1, or None, got {x}")
            for x in (0, -1)
        ),
        ({"keep": "x"}, "keep: expected a whole number, at least 1, or None, got 'x'"),
        ({"rules_until": -1}, "rules_until: expected at least 0, or None, got -1"),
        ({"rules_until": "x"}, "rules_until: expected a whole number"),
        ({"rules": RULES.config}, r"rules: expected RuleSettings, .*RuleSettings\(con"),
        ({"rules": None}, "rules: expected RuleSettings, got None"),
        ({"start_pool": {"heat": []}}, "start_pool: expected a PoolDocument, got {"),
        (
            {"start_pool": "rules.md"},
            r"start_pool: .*got 'rules\.md'; a file is read by",
        ),
        ({"reflector": "contrast"}, "reflector: .* a method `reflect`, .* 'contrast'"),
        ({"reflector": Busy}, "reflector: expected an object, got the class Busy"),
        *(
            ({"reflector": Busy(name)}, r"reflector\.name: expected a text of one line")
            for name in ("", "a\nb", 5, None)
        ),
        (
            {"reflector": LLM},
            "tell: expected transcripts for the reflector 'llm script",
        ),
        ({"reflector": Misled(LLM, LANGUAGE)}, "tell: expected transcripts for"),
        (
            {"learn_rules": False, "learn_policy": False},
            "expected one of them at least",
        ),
        ({"task_keys": "abcdef"}, "task_keys: expected a sequence of texts, got 'abcd"),
        ({"task_keys": None}, "task_keys: expected a sequence of texts, got None"),
        ({"task_key": [[1], [2, 3]]}, "task_key: expected an integer a task, got rows"),
        ({"task_words": [1] * 12}, "task_words: expected texts, got 1"),
        ({"reference": {"w": np.zeros(3)}}, "reference: expected decoder/.*got absent"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything(tmp_path, changes, word):
    with pytest.raises(ConfigError, match=word):
        run(tmp_path / "run", **{"iterations": 2, **changes})
    assert not (tmp_path / "run").exists()


@dataclass(frozen=True)
class Needy(Busy):
    """Would write nothing without references."""

    needs_references: bool = True


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"use_references": False}, "use_references: .+, got False"),
        ({"rules": replace(RULES, references=0)}, "rules.references: .+, got 0"),
        ({"rules": replace(RULES, references_a_group=0)}, "references_a_group: .+ 0"),
    ],
)
def test_a_reflector_that_needs_references_gets_them(tmp_path, changes, word):
    with pytest.raises(ConfigError, match=word) as caught:
        run(tmp_path, 1, reflector=Needy(), **changes)
    assert "reflector 'busy'" in str(caught.value)
    assert "min_tasks=1" in str(caught.value) and not [*tmp_path.iterdir()]
    run(tmp_path / "free", 0, reflector=Needy(needs_references=False), **changes)
    run(tmp_path / "same", 0, reflector=Needy(), learn_rules=False, **changes)
