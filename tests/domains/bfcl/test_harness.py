"""BFCL under the seven actions: its own references win, by its own checker."""

import numpy as np
import pytest

from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.domains.benchmark import Call
from jerp.domains.bfcl import Bfcl, BfclDomain
from jerp.domains.conformance import spoilt
from jerp.domains.tool_use.conversation import call_text
from jerp.harness.actions import Action
from jerp.typing import Outcome
from tests.domains.installed import needs

needs("bfcl_eval", "pip install --no-deps bfcl-eval==2026.3.23")
needs("mpmath", "pip install mpmath")

ORDER = (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.SUBMIT)
NUMBER = 12


def stand_in(bfcl, tasks, change):
    """Says, one after another, what the references say, in words."""
    moves = {bfcl.start(task).opening: change(bfcl.oracle(task)) for task in tasks}

    def answer(request):
        said = sum(m.role == "assistant" for m in request.messages)
        move = moves[request.messages[1].content][said]
        return f"[{call_text(move)}]" if isinstance(move, Call) else move.text

    return ScriptedExecutor(answer)


def whole(moves):
    return moves


def without_last_call(moves):
    return spoilt(moves)["dropped"]


@pytest.mark.parametrize("split", ["base", "miss_func"])
@pytest.mark.parametrize(
    ("change", "outcome"),
    [(whole, Outcome.SUCCESS), (without_last_call, Outcome.FAILURE)],
)
def test_references_win_and_spoilt_ones_lose(split, change, outcome):
    bfcl = Bfcl()
    domain = BfclDomain(bfcl, split)
    short = [t for t in bfcl.tasks(split) if len(bfcl.oracle(t)) < 10][:NUMBER]
    with Session(domain, stand_in(bfcl, short, change)) as session:
        handle, _, legal = session.open(short, np.zeros(len(short), np.int32))
        while legal.any():
            action = [next((a for a in ORDER if row[a]), 0) for row in legal]
            step = session.step(handle, action)
            legal = step.legal
    assert (step.outcome == outcome).all()
    domain.close()
