"""Rounds of refinement against the script, with and without a test; what they cost."""

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest

from jerp.errors import ConfigError, StorageError, UnknownNameError
from jerp.estimators.sequential import SequentialVerdict
from jerp.runs.skills.acceptance import Acceptance, Challenge, decide
from jerp.runs.skills.refine import refine_skills
from jerp.runs.skills.work import SkillRun, Trial
from jerp.skills.document import render_skill
from jerp.storage.metrics import read_metrics
from jerp.storage.skill_runs import SkillRunFile
from jerp.typing import Outcome
from tests.runs.skills.small_skills import (
    PARAMS,
    POLICY,
    TASKS,
    Scripted,
    most_often,
)

QUIET = pytest.mark.filterwarnings("ignore:.*are taken back")
WON, LOST, NOBODY = Outcome.SUCCESS, Outcome.FAILURE, Outcome.INFRASTRUCTURE
DRAFTS, RUNS, ROUNDS = 2, 3, 3
KEY = jax.random.key(4)


def refine(folder, rounds=ROUNDS, **changes):
    """`refine_skills` with small settings, some of them changed."""
    given = {"key": KEY, "workplace": Scripted(), "params": PARAMS}
    key, workplace, params = (changes.pop(n, value) for n, value in given.items())
    settings = {"num_drafts": DRAFTS, "num_runs": RUNS, "block": 8}
    return refine_skills(
        *(folder, key, workplace, POLICY, params, TASKS),
        rounds=rounds,
        **{**settings, "execute_at_once": 4, **changes},
    )


def written(folder):
    """What a refinement says in files, but for how long it took."""
    rows = read_metrics(folder / "metrics.jsonl")
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in rows]
    names = ("tree.jsonl", "runs.jsonl", "refinement.json")
    return rows, [(folder / name).read_bytes() for name in names]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder, workplace = tmp_path_factory.mktemp("whole"), Scripted()
    return refine(folder, workplace=workplace), folder, workplace


def test_each_round_goes_on_from_the_best_draft(whole):
    """Replayed from drafts and script; what is shown is what it did last, verbatim."""
    refined, _, workplace = whole
    nodes, shown = refined.tree.nodes, iter(workplace.shown)
    assert len(nodes) == (ROUNDS + 1) * DRAFTS * len(TASKS)
    current = dict.fromkeys(TASKS)
    asked = []
    for depth, found in enumerate(refined.depths):
        samples = range(depth * RUNS, (depth + 1) * RUNS)
        for task in TASKS:
            state, parent = next(shown), current[task]
            assert state.skill == (parent and parent.skill)
            if parent is None:
                assert state == type(state)(task)
                continue
            own = range(parent.phase * RUNS, (parent.phase + 1) * RUNS)
            trials = [Trial(task, parent.skill, sample) for sample in own]
            runs = [(t.name, workplace.run(t)) for t in trials]
            for evidence, won in ((state.success, True), (state.failure, False)):
                first = [
                    (name, run.evidence)
                    for name, run in runs
                    if run.outcome != NOBODY and (run.outcome == WON) == won
                ]
                assert (evidence and (evidence.run, evidence.content)) == (
                    first[0] if first else None
                )
        trials = []
        for place, task in enumerate(TASKS):
            here = nodes[depth * 6 + place : (depth + 1) * 6 : len(TASKS)]
            assert [n.task for n in here] == [task] * DRAFTS
            for node in here:
                assert node.parent == (current[task] and current[task].id)
                if node.skill:
                    mine = [Trial(task, node.skill, s) for s in samples]
                    outcomes = tuple(workplace.run(t).outcome for t in mine)
                    assert node.outcomes == outcomes
                    trials += mine
            able = [node for node in here if node.skill]
            if able:
                best = max(node.success or 0.0 for node in able)
                current[task] = next(n for n in able if (n.success or 0.0) == best)
            if current[task] is None:
                alone = [Trial(task, None, s) for s in samples]
                trials += alone
                wins = [workplace.run(t).outcome == WON for t in alone]
                known = [workplace.run(t).outcome != NOBODY for t in alone]
                assert found.success[task] == sum(wins) / sum(known)
            else:
                assert found.success[task] == current[task].success
            assert found.skills[task] == (current[task] and current[task].skill)
        asked += trials
        runs = [workplace.run(trial) for trial in {*trials}]
        assert found.executor_calls == sum(run.executor_calls for run in runs)
        assert found.executor_tokens == sum(run.tokens for run in runs)
        assert found.seconds > 0 and found.tests == 0
    assert {*asked} == {*workplace.asked} and most_often(workplace) == 1
    last = {m.task: render_skill(m.skill) for m in refined.skills}
    assert last == {t: node.skill for t, node in current.items() if node}
    assert any(d.skills[t] is None for d in refined.depths for t in TASKS)


@QUIET
def test_a_refinement_that_was_stopped_goes_on(whole, tmp_path):
    """In a round, and after one: nothing is executed again, and all is as it was."""
    refined, folder, first = whole
    workplace = Scripted()
    for dies_after in (2, len(first.asked) - 2):
        with pytest.raises(KeyboardInterrupt):
            dying = replace(workplace, dies_after=dies_after)
            refine(tmp_path, workplace=dying, execute_at_once=1)
    refine(tmp_path, 1, workplace=workplace)
    rest = refine(tmp_path, workplace=workplace)
    assert most_often(workplace) == 1 and {*workplace.asked} == {*first.asked}
    assert written(tmp_path) == written(folder)
    seconds = [row["seconds"] for row in read_metrics(tmp_path / "metrics.jsonl")]
    assert [depth.seconds for depth in rest.depths] == seconds
    assert rest.skills == refined.skills
    for one, other in zip(rest.depths, refined.depths, strict=True):
        assert one._replace(seconds=0) == other._replace(seconds=0)
    best = refine(tmp_path, choose="best", workplace=workplace)
    for measured in best.skills:
        shares = [n.success or 0.0 for n in best.tree.of_task(measured.task)]
        assert measured.success == max(shares)
    with pytest.raises(StorageError, match="another refinement: num_runs: 3 there, 4"):
        refine(tmp_path, num_runs=4)
    with pytest.raises(StorageError, match="another executor"):
        refine(tmp_path, workplace=Scripted(luck=3))


@dataclass(frozen=True)
class Longer(Scripted):
    """A skill succeeds where it has two steps or more, and somebody answers."""

    def run(self, trial):
        if trial.sample % 10 == 9:
            return SkillRun(NOBODY, None, 1)
        steps = 0 if trial.skill is None else trial.skill.count("Do ")
        return SkillRun(WON if steps > 1 else LOST, None, 1)


ACCEPTANCE = Acceptance(p_gain=0.8, p_loss=0.0, max_pairs=60)


@QUIET
def test_a_revision_replaces_its_parent_only_where_a_test_says_so(tmp_path):
    """One step never wins, more steps always do; ties are no reason."""
    workplace = Longer()
    settings = {"workplace": workplace, "num_drafts": 1, "acceptance": ACCEPTANCE}
    settings |= {"key": jax.random.key(6)}
    refined = refine(tmp_path, **settings)
    before, tests, accepted = dict(refined.depths[0].skills), 0, 0
    for number, depth in enumerate(refined.depths[1:], 1):
        nodes = [n for n in refined.tree.nodes if n.phase == number]
        for node in nodes:
            parent, now = before[node.task], depth.skills[node.task]
            if node.skill is None or parent is None or node.skill == parent:
                assert now == (parent or node.skill)
                continue
            tests += 1
            better = parent.count("Do ") == 1 < node.skill.count("Do ")
            assert now == (node.skill if better else parent)
            accepted += better
        before = depth.skills
    assert tests == sum(depth.tests for depth in refined.depths) > accepted > 0
    assert accepted == sum(depth.accepted for depth in refined.depths)
    # Runs of a depth, and then of its tests: none is shown as evidence.
    stride = RUNS + ACCEPTANCE.max_pairs
    names = [e for node in refined.tree.nodes for e in node.evidence]
    assert names and all(int(n.split("/")[1]) % stride < RUNS for n in names)
    asked = len(workplace.asked)
    again = refine(tmp_path, **settings)
    assert len(workplace.asked) == asked
    assert again.depths == refined.depths


def decided(tmp_path, script, acceptance, challenges):
    """What becomes of challenges whose skills are named, and how many runs it took."""

    class Told(Scripted):
        def run(self, trial):
            return SkillRun(script(trial.skill, trial.sample), None, 1)

    workplace = Told()
    with SkillRunFile(tmp_path / "runs.jsonl", workplace="told") as runs:
        found = decide(
            *(workplace, runs, challenges, acceptance),
            first_number=1,
            first_sample=100,
            at_once=64,
        )
    return found, workplace.asked


def test_a_test_by_hand(tmp_path):
    """E(g, 0) = (2^(g + 1) - 1) / (g + 1): 31.9 at 7 gains, 56.8 at 8.

    The first test needs 1 / alpha_1 = 32.9 and the second four times that: 10 gains.
    """

    def script(skill, sample):
        if skill == "lost" and sample < 103:
            return NOBODY
        return LOST if skill == "worse" else WON

    pairs = [("a", "better", "worse"), ("b", "better", "worse"), ("c", "lost", "worse")]
    pairs += [("d", "same", "better")]
    challenges = [Challenge(*pair) for pair in pairs]
    found, asked = decided(tmp_path, script, ACCEPTANCE, challenges)
    assert [t.number for t in found] == [1, 2, 3, 4]
    assert [t.cap for t in found] == [ACCEPTANCE.cap(number) for number in (1, 2, 3, 4)]
    first, second, lost, same = found
    assert (first.gains, first.losses, first.pairs) == (8, 0, 8)
    assert (second.gains, second.pairs, second.lost) == (10, 10, 0)
    assert lost.lost == 3 and lost.gains == lost.pairs
    accepted = SequentialVerdict.ACCEPTED
    assert [t.verdict for t in found[:3]] == [accepted] * 3
    # Nothing but ties: it ends where the pairs that are left could not be enough.
    assert same.verdict == SequentialVerdict.REJECTED and same.gains == 0
    assert same.pairs < same.cap and len(same.runs) == 2 * same.pairs
    assert len(asked) == sum(len(test.runs) for test in found)
    assert min(t.sample for t in asked) == 100 and len({*asked}) == len(asked)


def test_a_test_that_would_take_too_many_pairs_is_not_begun(tmp_path):
    short = Acceptance(p_gain=0.8, p_loss=0.0, max_pairs=9)
    assert short.cap(2) is None
    challenges = [Challenge("a", "x", "y"), Challenge("b", "x", "y")]
    found, asked = decided(tmp_path, lambda *_: WON, short, challenges)
    assert found[1].verdict == SequentialVerdict.UNDECIDED and not found[1].runs
    assert all(trial.task == "a" for trial in asked)


@pytest.mark.slow
def test_revisions_that_are_no_better_are_seldom_accepted(tmp_path):
    """Both win half of their runs, 400 trees of three tests: at most alpha of them."""
    rng = np.random.default_rng(0)
    acceptance = Acceptance(alpha=0.1, p_gain=0.8, p_loss=0.0, max_pairs=40)
    wrong = 0
    for tree in range(400):
        luck = rng.integers(0, 2, (2, 3, 60))

        class Coins(Scripted):
            def run(self, trial, luck=luck):
                coin = luck["xy".index(trial.skill), int(trial.task), trial.sample]
                return SkillRun(Outcome(int(coin)), None, 1)

        challenges = [Challenge(str(i), "x", "y") for i in range(3)]
        with SkillRunFile(tmp_path / f"{tree}.jsonl", workplace="coins") as runs:
            found = decide(
                *(Coins(), runs, challenges, acceptance),
                first_number=1,
                first_sample=0,
                at_once=64,
            )
        wrong += any(t.verdict == SequentialVerdict.ACCEPTED for t in found)
    assert wrong / 400 <= 0.1 + 2 * (0.1 * 0.9 / 400) ** 0.5


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"rounds": -1}, ConfigError, "rounds: expected at least 0"),
        ({"num_drafts": 0}, ConfigError, "num_drafts: expected at least 1"),
        ({"choose": "first"}, UnknownNameError, "choose"),
        ({"evidence": "all"}, UnknownNameError, "evidence"),
    ],
)
def test_bad_arguments(tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        refine(tmp_path, **changes)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 0.0}, "alpha: expected in"),
        ({"p_gain": 0.1, "p_loss": 0.1}, "p_gain, p_loss: expected more gains"),
        ({"p_gain": 0.8, "p_loss": 0.3}, "p_gain, p_loss: .*together at most 1"),
        ({"max_pairs": 10**6}, "max_pairs: expected at most 20000"),
    ],
)
def test_bad_acceptance(changes, message):
    with pytest.raises(ConfigError, match=message):
        Acceptance(**changes)


def test_another_block_is_another_refinement(whole, tmp_path):
    del whole
    refine(tmp_path, 0)
    with pytest.raises(StorageError, match="block: 8 there, 4 here"):
        refine(tmp_path, 0, block=4)
    other = jax.tree.map(lambda x: x + 1, PARAMS)
    with pytest.raises(StorageError, match="params: "):
        refine(tmp_path, 0, params=other)
