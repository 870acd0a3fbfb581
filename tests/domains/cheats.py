"""Ways to be paid for nothing; every domain's verifier must see through them.

`play` runs one episode on the host without a session: `choose` picks the action,
`answer` stands for the executor.
"""

import random

import numpy as np

from jerp.bridge.executor import Completion
from jerp.harness.actions import Action

LIMIT = 0.15

TEMPLATES = {
    "coding": (
        "",
        " 0",
        " 1",
        " True",
        " False",
        " n",
        " n + 5",
        " m % 2 == 0",
        " s",
        " s[:3]",
        " []",
        " xs",
        " sum(xs)",
        " max(xs) + 3",
        " [x for x in xs if x > 4]",
        " ''",
        " len(ws)",
        " (n if 'n' in vars() else 0)",
    ),
    "long-memory": ("Tuesday", "mint", "512", "silver", "Pixel", "Lowe", "Monday [24]"),
    "knowledge-work": (
        " 340 crowns\n- deadline: 4 May\n- manager: Anna Holm",
        " 12 May",
        " red",
        " oak [1]",
        " Anna Holm",
        "yes",
    ),
    "multi-tool": (
        " 12",
        " 12)",
        " 24 * 0.5)",
        " 0.25 + 0.05)",
        " 0.5 + 4 * 0.2)",
        " 1 kg + 1 kg)",
        " the weight",
    ),
    "planning": (
        "saw, sand, glue, paint",
        "wash, peel, boil, mash",
        "dig, rake, sow, water",
        "write, edit, print, bind",
        "pitch, fetch, cook, rest",
        "sort, soak, rinse, iron",
        "all in time",
    ),
    "research": ("1999", "yes", "the town", "unknown [1]", "12 [1]", "blue [2]"),
}

_WORDS = """
a an and are as at be by for from had has in is it not of on or that the this to
was were which with red green blue north south 7 12 100 1850 1987 return def x n
s xs sum max len + * % == [ ] ( ) True False if else not
"""
VOCABULARY = _WORDS.split()


def thorough(domain, workspace, rng):
    """Reads, retrieves all it can, runs the tools before a draft, drafts, submits."""
    legal = domain.legal(workspace)
    order = [Action.OBSERVE, Action.RETRIEVE, Action.DRAFT, Action.SUBMIT]
    if domain.name == "multi-tool" and workspace.draft is None:
        order.insert(2, Action.CALL_TOOL)
    return next(action for action in order if legal[action])


def at_random(domain, workspace, rng):
    """Any legal action."""
    return rng.choice(np.flatnonzero(domain.legal(workspace)).tolist())


def play(domain, task, answer, choose, *, sample_index=0, seed="0"):
    """The workspace at the end of one episode."""
    rng = random.Random(f"{task.key}/{sample_index}/{seed}")
    workspace = domain.begin(task, sample_index)
    while not (workspace.terminated or workspace.truncated):
        action = choose(domain, workspace, rng)
        request = domain.request(workspace, action)
        completion = None
        if request is not None:
            text = answer(workspace, request, rng)
            completion = Completion(text, "ok" if text.strip() else "empty")
        workspace = domain.advance(workspace, action, completion)
    return workspace


def empty(workspace, request, rng):
    return ""


def echo(workspace, request, rng):
    return workspace.task.prompt


def echo_request(workspace, request, rng):
    return "\n".join(message.content for message in request.messages)


def paste(workspace, request, rng):
    return "\n".join(workspace.passages)


def paste_first(workspace, request, rng):
    return " " + workspace.passages[0].split(": ")[-1]


def random_words(workspace, request, rng):
    return " " + " ".join(rng.choice(VOCABULARY) for _ in range(rng.randint(1, 8)))


def constant(text):
    return lambda workspace, request, rng: text


CHEATS = {
    "empty": (empty, thorough),
    "echo": (echo, thorough),
    "echo of the request": (echo_request, thorough),
    "retrieved": (paste, thorough),
    "first retrieved": (paste_first, thorough),
    "random": (random_words, at_random),
}


def mean_score(domain, tasks, answer, choose):
    """Mean score of one episode a task; an unfinished one scores 0."""
    verdicts = [play(domain, task, answer, choose).verdict for task in tasks]
    return sum(0.0 if v is None else v.score for v in verdicts) / len(tasks)
