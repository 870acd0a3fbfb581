"""A small language of rules, and trials in it."""

from dataclasses import dataclass

import numpy as np

from jerp.bridge.reflection import Occasion, ShownRule, Trial
from jerp.typing import Outcome


@dataclass(frozen=True)
class Kitchen:
    """Words alone: no world has them."""

    situations: tuple[str, ...] = ("", "the pot is cold", "the pot is hot", "it burns")
    moves: tuple[str, ...] = ("", "wait", "light the stove", "serve", "look around")

    def situation(self, state, params):
        raise AssertionError("a reflector reads what was played, and plays nothing")

    def move(self, action, situation, params):
        raise AssertionError("a reflector reads what was played, and plays nothing")


COLD, HOT, BURNS = 1, 2, 3
WAIT, LIGHT, SERVE, LOOK = 1, 2, 3, 4
WON, LOST, FAILED = Outcome.SUCCESS, Outcome.FAILURE, Outcome.INFRASTRUCTURE


def trial(outcome, *steps, task="a", episode="", anchors=None):
    """Of `(situation, move)`; in one situation all states are one, unless told."""
    situation, move = np.asarray(steps, np.int32).reshape(-1, 2).T
    anchor = situation if anchors is None else np.asarray(anchors, np.int32)
    return Trial(
        success=outcome == WON,
        score=float(outcome == WON),
        outcome=int(outcome),
        text=f"a {task} {episode}",
        anchor=anchor,
        situation=situation,
        move=move,
        task_digest=task,
        episode=episode,
    )


def occasion(*trials, rules=(), references=(), full=False):
    """Rules are texts, numbered from 5."""
    shown = tuple(ShownRule(5 + i, text, 2.0) for i, text in enumerate(rules))
    return Occasion("cook", "Cook.", shown, trials, references, full)
