"""inspect_ai 0.3.285 on the scripted endpoint: two .eval logs, and a .json log.

Run it in an empty folder, see README.md beside it.
"""

import linecache
import os
import shutil
from pathlib import Path

from endpoint import BOX, CATEGORY, QUESTION, serve
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool


@tool
def look():
    async def execute(box: str):
        """Says what is in a box.

        Args:
            box: Name of the box.
        """
        found = [item for item, place in BOX.items() if place == box]
        return f"The {box} box holds: {', '.join(found)}."

    return execute


@scorer(metrics=[accuracy()])
def found():
    async def score(state, target):
        _, said, box = state.output.completion.partition("ANSWER: ")
        if not said and state.output.stop_reason == "stop":
            return Score.unscored(reason="invalid_response_format")
        return Score(value="C" if box == target.text else "I", answer=box)

    return score


@scorer(metrics=[accuracy()])
def near():
    """1 for the box, .5 for its neighbour, else 0."""
    boxes = list(BOX.values())

    async def score(state, target):
        box = state.output.completion.partition("ANSWER: ")[2]
        if box not in boxes:
            return Score(value=0.0)
        distance = abs(boxes.index(box) - boxes.index(target.text))
        return Score(value=max(0.0, 1 - distance / 2))

    return score


def study(scorers):
    return Task(
        name="boxes",
        dataset=[
            Sample(
                id=item,
                input=QUESTION.format(item=item),
                target=box,
                metadata={"category": CATEGORY[item]},
            )
            for item, box in BOX.items()
        ],
        solver=[use_tools(look()), generate()],
        scorer=scorers,
        message_limit=10,
    )


def main():
    # Everything is imported once; then tracebacks go without other people's code, which
    # imports would look for.
    evaluate(
        study([found()]), "mockllm/model", limit=1, log_dir="first", display="none"
    )
    linecache.getlines = lambda filename, module_globals=None: []
    os.environ["SCRIPTED_BASE_URL"] = serve()
    os.environ["SCRIPTED_API_KEY"] = "none"
    for name, model, scorers, kind in (
        ("base.eval", "scripted-base", [found()], "eval"),
        ("trained.eval", "scripted-trained", [found()], "eval"),
        ("graded.json", "scripted-base", [found(), near()], "json"),
    ):
        (log,) = evaluate(
            study(scorers),
            model=f"openai-api/scripted/{model}",
            epochs=1 if kind == "json" else 4,
            limit=2 if kind == "json" else None,
            max_samples=1,
            max_connections=1,
            fail_on_error=False,
            log_format=kind,
            log_dir="logs",
            log_realtime=False,
            display="none",
        )
        shutil.copy(Path(log.location.removeprefix("file://")), name)
        print(name, log.status)


if __name__ == "__main__":
    main()
