"""The program of docs/skill_runs.md runs; scripts stand in for the models."""

import re
from pathlib import Path

from jerp.bridge.scripted import ScriptedExecutor
from jerp.runs.skills.work import RefinementState, Trial
from tests.bridge.tiny_model import TinyModel
from tests.pages import run_program

PAGE = (Path(__file__).parents[3] / "docs" / "skill_runs.md").read_text("utf-8")


def test_the_workplace_of_the_page_executes_and_asks(tmp_path):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    run_program(program, "docs/skill_runs.md", names)
    # The answer does not parse, and is judged without a sandbox.
    executor = ScriptedExecutor(lambda _: " (")
    workplace = names["workplace_of"](TinyModel(None, None), executor, tmp_path)
    task = workplace.tasks[0]
    (run,) = workplace.execute([Trial(task, None, 0)])
    assert run.executor_calls == 1 and not run.outcome
    assert workplace.prompts([RefinementState(task)]).shape == (1, 2048)
