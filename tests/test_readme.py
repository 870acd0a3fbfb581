"""README's example prints what README says, and its table names what exists."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import numpy as np

import jerp
from jerp import cli
from jerp.storage.trajectories import TrajectoryFolder
from tests.pages import run_program

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_is_shown():
    program, shown = re.search(
        r"```python\n(.+?)```\n+```\n(.+?)```", README, re.DOTALL
    ).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run_program(program, "README.md", {})
    assert printed.getvalue() == shown


def test_a_controller_goes_around_an_agent_as_shown(tmp_path, monkeypatch):
    section = README.partition("## Around your own agent\n")[2].partition("\n## ")[0]
    explore, train, deploy, shown = re.findall(
        r"```(?:python|bash)?\n(.+?)```\n", section, re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "README"}
    # The page's two programs with the command between them.
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run_program(explore, "README.md", names)
        with contextlib.redirect_stdout(io.StringIO()):
            assert cli.main(shlex.split(train)[1:]) == 0
        run_program(deploy, "README.md", names)
    assert printed.getvalue() == shown
    # Four drafts of ten are right, also where the first action is to submit.
    data = TrajectoryFolder.open("logs").load()
    is_submitted = np.asarray(data.action)[:, 0] == 2
    assert is_submitted.sum() > 20
    assert 0.2 < np.asarray(data.score)[is_submitted].mean() < 0.6


def test_every_function_of_the_table_exists():
    table = re.search(r"\| method \|.+?\n\n", README, re.DOTALL).group()
    rows = [line.split("|")[2] for line in table.splitlines()[2:] if line]
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) > 20
    assert not [name for name in names if not hasattr(jerp, name)]
    assert all(re.findall(r"`(\w+)`", row) for row in rows)
