"""BFCL under the seven actions: its own references win, by its own checker."""

import numpy as np
import pytest

from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.domains.benchmark import Call
from jerp.domains.bfcl import Bfcl, BfclDomain
from jerp.domains.tool_use.conversation import call_text
from jerp.harness.actions import Action
from jerp.typing import Outcome
from tests.domains.installed import needs

needs("bfcl_eval", "pip install --no-deps bfcl-eval==2026.3.23")
needs("mpmath", "pip install mpmath")

ORDER = (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.SUBMIT)
NUMBER = 12


def reference(bfcl, tasks, *, spoilt=False):
    """A stand-in that says, one after another, what the references say."""
    moves = {bfcl.start(task).opening: bfcl.oracle(task) for task in tasks}

    def answer(request):
        said = sum(m.role == "assistant" for m in request.messages)
        move = moves[request.messages[1].content][said]
        if isinstance(move, Call):
            return f"[{call_text(move)}]" if said or not spoilt else '[{"tool": "pwd"}]'
        return move.text

    return ScriptedExecutor(answer)


@pytest.mark.parametrize("split", ["base", "miss_func"])
def test_references_win_and_spoilt_ones_lose(split):
    bfcl = Bfcl()
    domain = BfclDomain(bfcl, split)
    short = [t for t in bfcl.tasks(split) if len(bfcl.oracle(t)) < 10][:NUMBER]
    for spoilt, outcome in ((False, Outcome.SUCCESS), (True, Outcome.FAILURE)):
        executor = reference(bfcl, short, spoilt=spoilt)
        with Session(domain, executor) as session:
            handle, _, legal = session.open(short, np.zeros(len(short), np.int32))
            while legal.any():
                action = [next((a for a in ORDER if row[a]), 0) for row in legal]
                step = session.step(handle, action)
                legal = step.legal
        assert (step.outcome == outcome).mean() >= (1 if not spoilt else 0.8)
    domain.close()
