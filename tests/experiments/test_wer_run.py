"""The experiment on skills: its settings, jobs, choices, numbers and pages."""

import io
import json
from dataclasses import asdict, replace

import jax
import numpy as np
import pytest
from rich.console import Console

from experiments.jobs.job import Job
from experiments.wer import evaluation, exams, jobs, main
from experiments.wer.ablations import SHOWN, Shown
from experiments.wer.analysis import analyse
from experiments.wer.base import Standing
from experiments.wer.comparisons import acceptance_plan
from experiments.wer.config import DOMAINS, SIZES, Sizes, WerConfig
from experiments.wer.exams import Asker, Exams, Tried, choose, merged
from experiments.wer.executor import Runs
from experiments.wer.jobs import Work, jobs_of, run_jobs
from experiments.wer.methods import ACCEPTANCE, TESTED, WER, inferences
from experiments.wer.places import Place
from experiments.wer.skill_lines import lines_of, skill_of
from experiments.wer.skill_to_hand_on import hand_on
from experiments.wer.standing import base_standing
from experiments.wer.training import phase_file
from jerp.errors import ConfigError, UnknownNameError
from jerp.runs.skills.depth import Depth
from jerp.runs.skills.merge import MeasuredSkill
from jerp.runs.skills.refine import Refined
from jerp.skills.document import render_skill
from jerp.skills.node import SkillNode
from jerp.skills.tree import draw_tree
from jerp.storage.documents import defined, read_json
from jerp.storage.skill_files import find_skills, find_tree
from jerp.storage.skill_tree import SkillTreeFile
from jerp.storage.tensors import save_tree
from jerp.typing import Outcome

PLACE = Place(DOMAINS)
SMOKE = SIZES["smoke"]
RIGHT = PLACE.right_lines("travel")
WRONG = PLACE.wrong_lines("travel")


def test_settings_are_checked_and_named():
    config = WerConfig(seeds=2, ablations=("failure", "wrong"), smoke=True)
    assert config.command == (
        "jerp run wer --seeds 2 --ablations failure wrong --smoke"
    )
    assert config.folder.name == "wer-smoke"
    assert (WerConfig().num_seeds, WerConfig(full=True).num_seeds) == (3, 5)
    assert WerConfig().trained_ablations == ()
    assert WerConfig(full=True).trained_ablations == tuple(SHOWN)
    assert WerConfig(full=True, ablations=()).trained_ablations == ()
    with pytest.raises(ConfigError, match="smoke and full"):
        WerConfig(smoke=True, full=True)
    with pytest.raises(UnknownNameError, match="ablations"):
        WerConfig(ablations=("both",))
    with pytest.raises(ConfigError, match="ablations: expected each once"):
        WerConfig(ablations=("none", "none"))
    with pytest.raises(ConfigError, match="refinement: expected from 2 to 16"):
        replace(SMOKE, refinement=18)
    with pytest.raises(ConfigError, match="test: expected as many of each"):
        replace(SMOKE, test=17)
    with pytest.raises(ConfigError, match="depths"):
        replace(SMOKE, depths=1)


@pytest.mark.parametrize("sizes", [SMOKE, Sizes(), Sizes(rounds=1, num_runs=3)])
def test_methods_have_equal_runs_of_the_executor(sizes):
    """Counted from what `refine_skills` is told to do."""
    found = {one.name: one for one in inferences(sizes)}
    runs = {
        name: (min(one.rounds, sizes.rounds) + 1) * one.num_drafts * one.num_runs
        for name, one in found.items()
        if not one.every_task
    }
    assert set(runs.values()) == {(sizes.rounds + 1) * sizes.num_runs}
    assert {one.phase for one in found.values()} == {*range(sizes.phases + 1)}
    assert [one.name for one in found.values() if one.tested] == [TESTED]
    # With those of the training, all tasks of which are drafted for.
    one = found["best-of-all"]
    batch = sizes.states * sizes.num_drafts * sizes.num_runs
    training = sizes.train_tasks + sizes.phases * sizes.batches * batch
    whole = training + sizes.refinement * runs[WER]
    spent = sizes.train_tasks * one.num_drafts * one.num_runs
    assert whole <= spent < whole + sizes.train_tasks * one.num_runs


def skill(*lines):
    return skill_of(PLACE, "travel", lines)


def test_skills_of_a_domain_are_merged_in_several_lengths():
    good = MeasuredSkill("travel 0", skill(*RIGHT[:2]), 1.0)
    bad = MeasuredSkill("travel 2", skill(WRONG[0], RIGHT[1]), 0.5)
    one, two, same = (lines_of(PLACE, s) for s in merged(PLACE, [good, bad], (1, 2, 8)))
    # Of one error the lines contradict each other, and more success is for the first.
    assert one == (RIGHT[1],) and two == same == RIGHT[:2]
    assert merged(PLACE, [], (1, 2)) == [None]


def test_validation_chooses_the_first_of_the_best_and_counts_each_once():
    short, long = skill(RIGHT[0]), skill(*RIGHT[:2])
    asked = {
        short: Tried(np.array([[1, 0], [1, 1]], bool), 7),
        long: Tried(np.array([[1, 1], [1, 0]], bool), 9),
    }
    assert choose([short, long, long], asked.__getitem__) == (short, 0.75, 16)


def right_of(domain):
    return PLACE.right_lines(domain)


def execute(key, place, executor, tasks, sets, *, num_runs, task_id):
    """Right lines always succeed, none in the first run, wrong ones never."""
    assert len(sets) == len(tasks.api) == len(task_id)
    known = {-1, *(line for name in DOMAINS for line in right_of(name))}
    right = [set(row) <= known and row[0] >= 0 for row in sets.tolist()]
    alone = (sets[:, 0] < 0)[:, None] & (np.arange(num_runs) == 0)
    won = np.asarray(right)[:, None] | alone
    outcome = np.where(won, int(Outcome.SUCCESS), int(Outcome.FAILURE))
    steps = np.ones((len(sets), num_runs, 3), np.int32)
    return Runs(outcome, steps[..., None], steps, steps > 0)


def refine_skills(folder, key, workplace, policy, params, tasks, **settings):
    """Drafts of the untrained optimizer are wrong, later ones right but for one."""
    folder.mkdir(parents=True)
    with SkillTreeFile(folder / "tree.jsonl") as tree:
        tree.append(SkillNode(0, None, f"of {folder.name}", 0, "# A"))
    skills = {}
    for task in tasks:
        domain = workplace.domain_of(task)
        lines = right_of(domain) if params["phase"] else PLACE.wrong_lines(domain)
        skills[task] = render_skill(skill_of(PLACE, domain, lines[:2]))
    skills[tasks[0]] = None
    success = dict.fromkeys(tasks, float(params["phase"] > 0))
    tests = 0 if settings["acceptance"] is None else 3
    depth = Depth(skills, success, 10, 0, 5, 0.9, tests=tests, seconds=0.5)
    return Refined((), (depth,) * (settings["rounds"] + 1), None)


@pytest.fixture
def stubs(monkeypatch):
    """Nothing is trained and nothing executed; the first training is stopped once."""
    made = []

    def cloned(key, sizes):
        made.append("cloned")
        return {"executor": {"w": np.ones(2)}, "optimizer": {"phase": np.int32(0)}}, {}

    def measured(key, params, sizes):
        domain, won = np.arange(64) % 2, np.arange(128).reshape(64, 2) % 3 == 0
        none, parsed = np.zeros((64, 2), bool), np.ones(64, bool)
        return Standing(domain, none, ~none, none, domain, parsed, won)

    def train(where, key, params, tasks, *, sizes, shown):
        made.append("trained")
        (where / "shown.txt").write_text(repr(tuple(shown)))
        if made.count("trained") == 1:
            raise KeyboardInterrupt
        rows = [{"step": i, **dict.fromkeys(jobs.CURVES, 0.5)} for i in range(6)]
        rows = [row | dict.fromkeys(jobs.COSTS, 10.0) for row in rows]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (where / "metrics.jsonl").write_text(text)
        node = SkillNode(
            *(0, None, "travel 0"),
            phase=0,
            skill=None,
            faults=("order",),
            executor_calls=3,
            tokens=4,
        )
        with SkillTreeFile(where / "tree.jsonl") as tree:
            tree.append(node)
        for phase in range(1, sizes.phases + 1):
            noted = {"seconds": 2.0, "warnings": ["one"] * (phase == sizes.phases)}
            save_tree(where / phase_file(phase), {"phase": np.int32(phase)}, noted)

    monkeypatch.setattr(jobs, "cloned_base", cloned)
    monkeypatch.setattr(jobs, "measured_base", measured)
    monkeypatch.setattr(jobs, "train_optimizer", train)
    monkeypatch.setattr(exams, "execute", execute)
    monkeypatch.setattr(evaluation, "refine_skills", refine_skills)
    return made


def test_jobs_that_were_stopped_go_on_and_their_numbers_are_reported(tmp_path, stubs):
    config = WerConfig(smoke=True, seeds=2, ablations=("wrong",), out=tmp_path)
    work = Work(SMOKE, ("wrong",), 0, 2)
    assert jobs_of("train", work) == [Job("tools", "train", s) for s in (0, 1)]
    assert jobs_of("ablations", Work(SMOKE, (), 0, 2)) == []
    run_jobs(tmp_path, "base", (0, 1), work)
    with pytest.raises(KeyboardInterrupt):
        run_jobs(tmp_path, "train", (0, 1), work)
    for phase in jobs.PHASES:
        run_jobs(tmp_path, phase, (0, 1), work)
        run_jobs(tmp_path, phase, (0, 1), work)
    assert stubs == ["cloned"] * 2 + ["trained"] * 5
    told = [
        (path.parent.name, path.read_text())
        for path in sorted(tmp_path.glob("tools/seed-1/*/shown.txt"))
    ]
    assert told == [
        ("ablation-wrong", repr(tuple(Shown("paired", 0.1)))),
        ("train", repr(tuple(Shown()))),
    ]

    standing = base_standing(jax.random.key(1), config)
    assert standing["success"]["right"]["travel"]["point"] == 1.0
    # Of rows 0, 1 and 2 two have one success, and so on.
    assert standing["mixed"] == [pytest.approx(43 / 64)] * 2
    deaf, *unmixed = standing["warnings"]
    assert "got 1.00 and 0.00, 0.00 with no skill" in deaf
    assert ["expected from 20% to 60%" in text for text in unmixed] == [True] * 2

    found = analyse(jax.random.key(2), config)
    points = {name: one["all"]["point"] for name, one in found["methods"].items()}
    assert points == {
        **{"none": 0.5, "seed": 0.0, "best-of": 0.0, "untrained": 0.0},
        **{"best-of-all": 0.0, WER: 1.0, "right": 1.0},
    }
    assert found["methods"]["none"]["wer_above"]["by_seed"] == [0.5, 0.5]
    assert (
        found["methods"]["none"]["cost"] is found["methods"]["right"]["steps"] is None
    )
    # All lengths of right lines are as good, and the shortest is taken.
    assert found["methods"][WER]["steps"] == [[1, 1], [1, 1]]
    cost = found["methods"][WER]["cost"]
    # Of both domains lengths 1 and 2 differ: 8 tasks, 2 runs, 3 calls each.
    assert cost == {
        **{"calls": 30.0, "validation_calls": 2 * 2 * 8 * 2 * 3},
        **{"draft_tokens": 15.0, "seconds": 1.5, "tests": 0.0, "accepted": 0.0},
    }
    assert [found["phases"][p]["all"]["point"] for p in "0123"] == [0.0, 1.0, 1.0, 1.0]
    assert [d["cost"]["calls"] for d in found["depths"][WER]] == [10, 20, 30, 40]
    assert found["training"]["cost"] == {
        **{"calls": 63.0, "draft_tokens": 64.0, "seconds": 6.0},
    }
    # Made up to be as good, whatever it was written from and however it was accepted.
    wrong = found["ablations"]["wrong"]
    assert wrong["above_paired"]["by_seed"] == [0.0, 0.0] and wrong["all"]["point"] == 1
    assert found["acceptance"]["tested_above"]["point"] == 0.0
    assert found["acceptance"]["rules"]["tested"]["cost"]["tests"] == 9.0

    chosen = found["chosen"]["vehicle"]
    assert (chosen["method"], chosen["seed"], chosen["tasks"]) == (WER, 0, 8)
    assert chosen["effect"]["point"] == 0.5

    _check_pages(config, {"base": standing, **found})


def _check_pages(config, numbers):
    """What is written of numbers can be read, by people and by `jerp skills`."""
    results = defined(
        {
            **{"command": config.command, "version": "0", "smoke": True, "seeds": 2},
            "sizes": json.loads(json.dumps(asdict(SMOKE))),
            **numbers,
        }
    )
    text = io.StringIO()
    main._write(results, config, Console(file=text, width=80))
    assert "WER - no skill: +.500 [+.500, +.500], by seed" in text.getvalue()
    assert "note: seed 1: one" in text.getvalue()
    page = (config.folder / "report.md").read_text()
    assert "Stand-ins" in page and "+.500" in page
    assert "| pairs, 10% with the two exchanged | 1.00" in page
    assert "Of a seed's tree: at most 16 tests" in page
    assert {p.name for p in (config.folder / "figures").iterdir()} == {
        *("learning.png", "depth.png", "tree.png"),
    }
    document = find_skills(config.folder)["travel"]
    assert (document.effect, document.against, document.split) == (
        *(0.5, "no skill", "test"),
    )
    assert lines_of(PLACE, document.skill) == RIGHT[:1]
    assert find_tree(config.folder).tasks == ("of wer",)


def test_no_path_goes_with_a_skill_that_is_handed_on(tmp_path):
    model = tmp_path / "secret-place" / "my-model"
    model.mkdir(parents=True)
    (model / "config.json").touch()
    config = WerConfig(policy=str(model), out=tmp_path / "run")
    effect = {"point": 0.1, "low": None, "high": None}
    hand_on(
        *(config, "travel", render_skill(skill(*RIGHT)), effect),
        tasks=3,
        model="my-model",
        method="WER",
    )
    document = find_skills(config.folder)["travel"]
    assert document.run == "jerp run wer --policy my-model, WER"
    assert document.interval is None and document.model == "my-model"
    written = (config.folder / "skills" / "travel.md").read_text()
    assert "secret-place" not in written and str(tmp_path) not in written


def test_what_tests_may_take_is_said_before():
    """A later test has a smaller share of alpha, and takes more pairs to decide."""
    plan = acceptance_plan(SMOKE)
    assert plan["tests"] == SMOKE.refinement * SMOKE.rounds == 16
    caps = [ACCEPTANCE.cap(number) for number in range(1, 17)]
    assert (plan["first"], plan["last"]) == (caps[0], caps[-1])
    assert caps == sorted(caps) and plan["runs"] == 2 * sum(caps)


def test_of_drafts_without_a_skill_the_executor_works_alone(stubs, monkeypatch):
    monkeypatch.setattr(exams, "merged", lambda *_: [None])
    tasks = PLACE.tasks(jax.random.key(0), 16, "train")
    judge = Asker(jax.random.key(1), PLACE, {}, tasks, 2)
    depth = Depth({}, {}, 1, 0, 1, 0.0)
    cell, tried = Exams(judge, judge, (1, 2)).cell([depth])
    assert tried.mean() == 0.5
    assert cell["skills"] == {"travel": None, "vehicle": None}
    assert cell["validation"] == {"travel": 0.5, "vehicle": 0.5}


@pytest.mark.slow
def test_a_smoke_run_reports_all_parts_and_resumes_without_doing_anything(tmp_path):
    config = WerConfig(smoke=True, out=tmp_path / "run")
    text = io.StringIO()
    results = main.run(config, console=Console(file=text, width=80))
    assert "executor, right lines: travel" in text.getvalue()
    lines = text.getvalue().splitlines()
    # The path of the report alone is as long as it is.
    assert all(len(line) <= 80 for line in lines if not line.startswith("report: "))
    for name in ("report.md", "report.html", "results.json", "tree.jsonl"):
        assert (config.folder / name).stat().st_size > 1000
    assert results["base"]["parsed"][0] > 0 and results["chosen"]
    assert read_json(config.folder / "results.json") == results
    assert set(find_skills(config.folder)) == {*results["chosen"]}
    assert "travel 0" in draw_tree(find_tree(config.folder), task="travel 0")
    before = sorted(p.stat().st_mtime for p in config.folder.glob("tools/**/*"))
    assert main.run(config, console=Console(file=io.StringIO())) == results
    after = sorted(p.stat().st_mtime for p in config.folder.glob("tools/**/*"))
    assert before == after
