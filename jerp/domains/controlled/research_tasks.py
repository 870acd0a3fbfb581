"""Tasks of the research domain: a world's questions with their BM25 ladders.

Ladders are made here, once for the whole corpus; a task carries the few passages that
can come into its hand, so that an episode needs neither the corpus nor its index.
"""

from __future__ import annotations

from typing import Any

from jerp.domains.controlled.research_corpus import (
    NUM_DIFFICULTIES,
    Question,
    Ranking,
    World,
    make_world,
    words,
)
from jerp.errors import ConfigError
from jerp.records import Task

__all__ = ["BLOCK", "generate"]

BLOCK = 300
"""Tasks that share one corpus."""
FAMILIES = 160
"""Families of things made for each difficulty of a block; 100 are asked about, the
others distract or were not fair to ask about."""


def generate(seed: int, num_tasks: int, *, ladder: int) -> tuple[Task, ...]:
    """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
    if num_tasks < 1:
        raise ConfigError(f"num_tasks: expected >= 1, got {num_tasks}")
    blocks = range(-(-num_tasks // BLOCK))
    tasks = [task for block in blocks for task in _block(seed, block, ladder)]
    return tuple(tasks[:num_tasks])


def _block(seed: int, block: int, ladder: int) -> list[Task]:
    world = make_world(seed, block, per_difficulty=FAMILIES)
    ranking = Ranking(world.passages)
    fair: list[list[Task]] = [[] for _ in range(NUM_DIFFICULTIES)]
    for question in world.questions:
        chosen = fair[question.difficulty]
        payload = _payload(world, ranking, question, ladder)
        if payload is not None:
            turn = BLOCK * block + NUM_DIFFICULTIES * len(chosen) + question.difficulty
            chosen.append(
                Task(
                    key=f"research/{seed}/{turn:04d}",
                    domain="research",
                    difficulty=question.difficulty,
                    prompt=question.text,
                    payload=payload,
                )
            )
    turns = zip(*(tasks[: BLOCK // NUM_DIFFICULTIES] for tasks in fair), strict=True)
    return [task for turn in turns for task in turn]


def _payload(
    world: World, ranking: Ranking, question: Question, ladder: int
) -> dict[str, Any] | None:
    """What a task needs, or None where its ladder is not fair to the question.

    Fair: the answering passage is on the ladder, first at difficulty 0 and beside a
    passage with a rival value above that; and no word of the answer occurs in another
    passage that can come into hand.
    """
    rungs = ranking.top(question.text, ladder)
    topic = ranking.top(question.topic, 1)
    pool = list(dict.fromkeys(rungs + topic))
    stated = [
        v for i in rungs for k, v in world.passages[i].values if k == question.kind
    ]
    rivals = sorted(
        {v for i in pool for k, v in world.passages[i].values if k == question.kind}
        - {question.answer}
    )
    others = " ".join(
        s for i in pool if i != question.source for s in world.passages[i].sentences
    )
    reach, needed = (1, 1) if question.difficulty == 0 else (ladder, 2)
    alone = set(words(question.answer)).isdisjoint(words(others))
    if question.source not in rungs[:reach] or len(stated) < needed or not alone:
        return None
    return {
        "topic": question.topic,
        "kind": question.kind,
        "passages": [list(world.passages[i].sentences) for i in pool],
        "ladder": [pool.index(i) + 1 for i in rungs],
        "topic_ladder": [pool.index(i) + 1 for i in topic],
        "hidden": {
            "answer": question.answer,
            "rivals": rivals,
            "source": pool.index(question.source) + 1,
        },
    }
