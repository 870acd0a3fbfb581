"""Verdicts of `jerp passkt` on made files: the published counts, and seeds."""

import jax
import numpy as np
import pytest

from jerp.cli import main
from jerp.estimators.verdict import BoundaryVerdict
from jerp.readers.outcomes import SampleArrays
from jerp.runs.pass_surface import run as module
from jerp.runs.pass_surface.agents import shuffled_runs
from jerp.runs.pass_surface.analysis import analyse
from jerp.runs.pass_surface.inputs import read_inputs
from jerp.runs.pass_surface.needed import needed
from jerp.runs.pass_surface.settings import PassktSettings
from jerp.runs.pass_surface.verdict_words import verdict_words
from jerp.storage.documents import read_json
from jerp.typing import Outcome
from tests.runs.pass_surface.files import (
    HALF,
    LOST,
    NESTED,
    OPEN,
    SOLVED,
    A,
    B,
    write_csv,
    written,
)

# Tasks of 100 by who solves them: base, SFT, RL. Of SFT in B only the size is known.
PUBLISHED = {
    "A": {"bsr": 81, "bs": 3, "r": 3},
    "B": {"bsr": 81, "bs": 1, "r": 2, "sr": 3},
    "C": {"bsr": 70, "br": 6, "b": 1, "sr": 2, "r": 3, "s": 1},
}


@pytest.fixture
def published(tmp_path, without_bands, monkeypatch):
    """Compares arms by files of outcomes, two samples a task."""
    monkeypatch.chdir(tmp_path)
    for name in ("write_figures", "write_report"):
        monkeypatch.setattr(module, name, lambda results, folder: [])
    tasks = []
    for name, counts in PUBLISHED.items():
        kinds = [who for who, number in counts.items() for _ in range(number)]
        kinds += [""] * (100 - len(kinds))
        tasks += [(f"{name}-{i:03}", name, who) for i, who in enumerate(kinds)]
    for arm, letter in (("base", "b"), ("sft", "s"), ("rl", "r")):
        rows = [
            (
                task,
                sample,
                1,
                "success" if letter in who and sample else "failure",
                name,
            )
            for task, name, who in tasks
            for sample in range(2)
        ]
        write_csv(tmp_path / f"{arm}.csv", rows, (*NESTED, "category"))

    def compared(first, second):
        words = ["passkt", f"{first}.csv", f"{second}.csv", "--by", "category"]
        assert main([*words, "--ks", "2", "--resamples", "20"]) == 0
        return read_json(tmp_path / f"passkt-{first}-{second}" / "results.json")

    return compared


def row_of(results, part):
    return results["parts"]["ABC".index(part)]["comparisons"][0]["boundary"][-1]


def test_the_published_counts_through_the_command(published, capsys):
    """arXiv:2604.14877: sizes of B, gains and losses; none is significant but 9:1."""
    tuned, trained = published("base", "rl"), published("base", "sft")
    between = published("sft", "rl")
    sizes = {
        agent: [
            row_of(found, part)["both"] + row_of(found, part)[side] for part in "ABC"
        ]
        for agent, found, side in (
            ("base", tuned, "losses"),
            ("rl", tuned, "gains"),
            ("sft", trained, "gains"),
        )
    }
    assert sizes == {"base": [84, 82, 77], "rl": [84, 86, 81], "sft": [84, 85, 73]}
    for found, part, gains, losses, p_value in (
        (tuned, "A", 3, 3, 1.0),
        (tuned, "B", 5, 1, 14 / 64),
        (tuned, "C", 5, 1, 14 / 64),
        (trained, "C", 3, 7, 352 / 1024),
        (between, "C", 9, 1, 22 / 1024),
    ):
        row = row_of(found, part)
        assert (row["gains"], row["losses"]) == (gains, losses)
        assert row["p_value"] == pytest.approx(p_value)
    verdicts = [part["comparisons"][0]["verdict"] for part in tuned["parts"]]
    assert [v["verdict"] for v in verdicts] == ["not enough samples"] * 3
    assert [v["p_up_holm"] for v in verdicts] == [42 / 64, 21 / 64, 21 / 64]
    last = between["parts"][2]["comparisons"][0]["verdict"]
    assert (last["verdict"], last["p_up_holm"]) == ("expanded", 33 / 1024)
    shown = capsys.readouterr().out
    assert (
        "C, rl.csv against base.csv: not enough samples: about 344 questions needed to "
        "show the expansion"
    ) in shown
    assert (
        "A, rl.csv against base.csv: not enough samples: no number of questions is "
        "enough where as many are gained as lost"
    ) in shown
    assert (
        "C, rl.csv against sft.csv: expanded: 9 gained, 1 lost of 100 tasks; no "
        "interval between training seeds"
    ) in shown


def verdict_of(path, runs, *, shared):
    """The comparison of agents with these runs under each of some seeds."""
    files = []
    for name, each in zip("ab", zip(*runs, strict=True), strict=True):
        rows = [
            (task if shared else f"{seed}-{task}", i, *run, seed)
            for seed, tasks in enumerate(each)
            for task, four in tasks.items()
            for i, run in enumerate(four)
        ]
        files.append(write_csv(path / f"{name}.csv", rows, (*NESTED, "seed")))
    settings = PassktSettings(*files, ks="4", replicates="seed", resamples=20)
    results = analyse(settings, read_inputs(settings))
    return results, results["parts"][0]["comparisons"][0]


def test_seeds_with_questions_of_their_own(tmp_path, without_bands):
    results, found = verdict_of(tmp_path, [(A, B), (A, B), (B, A)], shared=False)
    assert results["replicate"] == ["0"] * 10 + ["1"] * 10 + ["2"] * 10
    verdict, seeds = found["verdict"], found["seeds"]
    # 5:1 twice and 1:5 once; means of .4, .4 and -.4.
    assert (verdict["gains"], verdict["losses"], verdict["num_tasks"]) == (11, 7, 30)
    assert verdict["seeds"]["values"] == pytest.approx([0.4, 0.4, -0.4])
    spread = 4.302653 * np.std([0.4, 0.4, -0.4], ddof=1) / np.sqrt(3)
    assert verdict["seeds"]["point"] == pytest.approx(0.4 / 3)
    assert verdict["seeds"]["low"] == pytest.approx(0.4 / 3 - spread, rel=1e-5)
    assert (seeds["names"], seeds["num_tasks"]) == (["0", "1", "2"], [10, 10, 10])
    assert seeds["difference"]["point"][0][-1] == pytest.approx(0.4 / 3)
    assert verdict["needed"]["num_seeds"] == 3
    _, agreed = verdict_of(tmp_path, [(A, B)] * 3, shared=False)
    assert agreed["verdict"]["words"] == (
        "expanded: 15 gained, 3 lost of 30 tasks; +.40 [+.40, +.40] between 3 seeds"
    )


def test_seeds_that_share_tasks_have_one_vote_a_task(tmp_path, without_bands):
    results, found = verdict_of(tmp_path, [(A, B), (A, B), (B, A)], shared=True)
    assert results["tasks"][10] == "gain0 (seed 1)"
    verdict = found["verdict"]
    # Two of three seeds outvote the third in every task.
    assert (verdict["gains"], verdict["losses"], verdict["num_tasks"]) == (5, 1, 10)
    assert verdict["p_up"] == pytest.approx(7 / 64)
    assert verdict["needed"]["num_seeds"] == 1
    # The names of gained rows are those of rows.
    assert "gain0 (seed 1)" in found["boundary"][-1]["gained"]


def test_one_seed_asks_nothing_of_seeds(tmp_path, without_bands):
    _, found = verdict_of(tmp_path, [(A, B)], shared=False)
    assert found["seeds"] is None and found["verdict"]["seeds"] is None


def test_efficiency_on_tasks_that_both_solve(tmp_path, without_bands):
    slow = {f"t{i}": A["both1"] for i in range(10)}
    fast = {f"t{i}": A["both0"] for i in range(10)}
    _, found = verdict_of(tmp_path, [(slow, fast)], shared=False)
    assert found["verdict"]["efficiency"] == {
        "num_tasks": 10,
        "point": 0.75,
        "low": 0.75,
        "high": 0.75,
    }
    assert found["verdict"]["words"] == (
        "more efficient, boundary not shown to move: Pass@(1, T) +.75 [+.75, +.75] on "
        "10 tasks that both solve; 0 gained, 0 lost of 10 tasks"
    )


def test_few_tasks_show_no_efficiency(tmp_path, without_bands):
    """An interval of resamples of nine equal tasks has no width."""
    slow = {f"t{i}": A["both1"] for i in range(9)}
    fast = {f"t{i}": A["both0"] for i in range(9)}
    _, found = verdict_of(tmp_path, [(slow, fast)], shared=False)
    assert found["verdict"]["efficiency"]["low"] == 0.75
    assert found["verdict"]["verdict"] == "not enough samples"


def test_a_shared_agent_has_one_seed_a_task(tmp_path, without_bands):
    """One agent's luck at a task is no gain of every seed of the other."""
    frozen = {f"t{i}": OPEN for i in range(6)}
    solves = [{**frozen, **{f"t{i}": HALF for i in tasks}} for tasks in ((0, 1), (2,))]
    runs = [(frozen, one) for one in solves]
    _, found = verdict_of(tmp_path, runs, shared=True)
    verdict = found["verdict"]
    # Seeds in turn: of t0, t2, t4 the first counts, of t1, t3, t5 the second.
    assert verdict["shared_runs"] and verdict["num_tasks"] == 6
    assert (verdict["gains"], verdict["losses"]) == (1, 0)
    assert verdict["seeds"]["values"] == pytest.approx([2 / 6, 1 / 6])
    mirrored = [(one, frozen) for one in solves]
    _, found = verdict_of(tmp_path, mirrored, shared=True)
    assert (found["verdict"]["gains"], found["verdict"]["losses"]) == (0, 1)
    own = [(frozen, solves[0]), ({**frozen, "t5": HALF}, solves[1])]
    _, found = verdict_of(tmp_path, own, shared=True)
    assert not found["verdict"]["shared_runs"]
    assert (found["verdict"]["gains"], found["verdict"]["losses"]) == (3, 1)


def test_whoever_has_more_runs_solves_no_more(tmp_path, without_bands):
    """Solved is solved in k answered runs of either agent, dealt out where it has more.

    One run of two solves: k = 1 of them in about half of the tasks, both in all.
    """
    few, many = ({f"t{i}": runs for i in range(9)} for runs in (OPEN, OPEN + SOLVED))
    files = [written(tmp_path / f"{n}.csv", r) for n, r in (("a", few), ("b", many))]
    for k in (1, 4):
        settings = PassktSettings(*files, ks=str(k), resamples=20)
        inputs = read_inputs(settings)
        found = analyse(settings, inputs)["parts"][0]["comparisons"][0]
        counted = shuffled_runs(inputs.agents[1].runs).outcome[:, :k]
        gains = int((counted == Outcome.SUCCESS).any(axis=1).sum())
        assert found["verdict"]["gains"] == found["boundary"][-1]["gains"] == gains
        assert k == 4 or 0 < gains < 9
    more = {task: (LOST, *runs[4:]) for task, runs in many.items()}
    settings = PassktSettings(
        files[0],
        written(tmp_path / "c.csv", more),
        ks="4",
        resamples=20,
        min_coverage=0.5,
    )
    found = analyse(settings, read_inputs(settings))["parts"][0]["comparisons"][0]
    assert found["verdict"]["gains"] == 9


def test_one_task_has_a_verdict_and_a_part_without_any_has_one(tmp_path, without_bands):
    lost = (LOST,) * 4
    files = [
        written(tmp_path / f"{name}.csv", {"kept": runs["loss"], "gone": lost}, str)
        for name, runs in (("a", A), ("b", B))
    ]
    settings = PassktSettings(*files, ks="4", by="kind", resamples=20)
    results = analyse(settings, read_inputs(settings))
    one, none = (part["comparisons"][0]["verdict"] for part in results["parts"])
    assert (one["verdict"], one["p_down"]) == ("not enough samples", 0.5)
    assert one["efficiency"]["point"] is None and one["num_tests"] == 1
    assert none["words"] == "not enough samples: no task counts"
    assert none["p_up"] is None and none["num_tasks"] == 0
    assert results["parts"][1]["agents"][0]["left_out"]["coverage"] == ["gone"]


SEEDS = {"values": [0.1, 0.2], "point": 0.15, "low": -0.485, "high": 0.785}
FOUND = {
    "gains": 9,
    "losses": 1,
    "num_tasks": 100,
    "num_tests": 1,
    "p_up_holm": 0.01,
    "p_down_holm": 1.0,
    "seeds": None,
    "efficiency": {"num_tasks": 50, "point": 0.1, "low": 0.05, "high": 0.15},
}
NOT_ENOUGH = BoundaryVerdict.NOT_ENOUGH_SAMPLES


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"seeds": SEEDS},
            "the training seeds disagree about the expansion (+.15 [-.48, ",
        ),
        ({"gains": 2, "losses": 2}, "no number of questions is enough where as many"),
        (
            {"gains": 22, "losses": 21, "p_up_holm": 0.5},
            "more than 20,000 questions needed to show the expansion",
        ),
        (
            {"gains": 3, "losses": 7, "p_up_holm": 0.9, "p_down_holm": 0.2},
            "about 416 questions needed to show the regression; no number shows an exp",
        ),
        (
            {"gains": 4, "p_up_holm": 0.2, "seeds": SEEDS},
            "questions needed for each of 2 seeds that differ by their questions alone "
            "to show the expansion",
        ),
    ],
)
def test_what_lacks_is_said(changes, words):
    found = {**FOUND, **changes}
    found["needed"] = needed(jax.random.key(0), NOT_ENOUGH, found, new_questions=True)
    assert words in verdict_words(NOT_ENOUGH, found)
    assert (
        needed(jax.random.key(0), BoundaryVerdict.EXPANDED, found, new_questions=True)
        is None
    )


def test_a_log_that_is_sorted_by_outcome_gains_nothing(tmp_path, without_bands):
    """64 runs a task, the successes first, beside 16 of the same rate."""
    draws = np.asarray(jax.random.bernoulli(jax.random.key(3), 0.1, (2, 40, 64)))
    rates = {}
    for name, won, number in (("many", draws[0], 64), ("few", draws[1], 16)):
        rows = [
            (f"t{task:02}", run, 1, "success" if success else "failure")
            for task, line in enumerate(won[:, :number])
            for run, success in enumerate(sorted(line, reverse=True))
        ]
        write_csv(tmp_path / f"{name}.csv", rows, NESTED)
        rates[name] = (won[:, :number]).any(axis=1).mean()
    settings = PassktSettings(tmp_path / "few.csv", tmp_path / "many.csv")
    inputs = read_inputs(settings)
    assert inputs.ks[-1] == 16
    few, many = (
        agent.solved(16, inputs.horizons, inputs.protocol)[:, -1].mean()
        for agent in inputs.agents
    )
    assert few == rates["few"]
    # 1 - .9^16 = .81; in the order of the file it is .98, as of all 64.
    assert rates["many"] > 0.95 and abs(many - (1 - 0.9**16)) < 0.15


def test_runs_are_dealt_alike_to_agents_with_as_many():
    spent = np.ones((3, 50), np.float32)
    runs = SampleArrays(spent, np.arange(150).reshape(3, 50), spent > 0, None)
    dealt = shuffled_runs(runs)
    np.testing.assert_array_equal(np.sort(dealt.outcome), runs.outcome)
    assert (dealt.outcome != runs.outcome).mean() > 0.8
    again = shuffled_runs(runs._replace(outcome=runs.outcome + 1))
    np.testing.assert_array_equal(again.outcome, dealt.outcome + 1)
    by_horizon = runs._replace(spent=spent[None].repeat(2, 0))
    by_horizon = by_horizon._replace(
        outcome=runs.outcome[None].repeat(2, 0), mask=runs.mask[None].repeat(2, 0)
    )
    np.testing.assert_array_equal(shuffled_runs(by_horizon).outcome[1], dealt.outcome)
