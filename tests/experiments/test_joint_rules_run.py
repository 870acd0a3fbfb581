"""Real jobs of a joint run, small; and what is refused before any is started."""

import io
from contextlib import suppress
from dataclasses import replace

import jax
import numpy as np
import pytest
from rich.console import Console

from experiments.joint_rules import jobs, main
from experiments.joint_rules.base import cloned_base
from experiments.joint_rules.config import ARMS, SIZES, JerpConfig
from experiments.joint_rules.final import evaluate_base, tried_on
from experiments.joint_rules.jobs import PHASES, Work, jobs_of, run_jobs
from experiments.joint_rules.places import place_named
from experiments.joint_rules.training import _reflector, arm_algorithm, check_start
from jerp import cli
from jerp.envs.house_things import HouseTask
from jerp.envs.rule_language import sentence
from jerp.errors import ConfigError, InputError, StorageError
from jerp.storage.locks import lock_folder
from jerp.storage.metrics import read_metrics
from jerp.storage.rule_documents import PoolDocument, PoolRule
from jerp.storage.rule_files import read_pool, write_pool
from jerp.storage.rule_leaks import read_digests
from jerp.storage.tensors import load_tree

PLACE = place_named("house")
SMALL = replace(SIZES["smoke"], epochs=1, arms=("grpo", "jerp"))
TEXTS = tuple(sentence(PLACE.env.language, s, 13) for s in (1, 2))
START = PoolDocument(
    {kind: tuple(PoolRule(text, 5) for text in TEXTS) for kind in PLACE.types}
)


def interrupted(folder, work, after):
    """Stops when the policy of so many iterations would be looked at."""

    def along(where, place, looks, by, stage):
        if stage.iterations == after:
            raise KeyboardInterrupt
        real(where, place, looks, by, stage)

    real = jobs._along
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "_along", along)
        with suppress(KeyboardInterrupt):
            run_jobs(folder, "arms", (0, 1), work)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A run that was stopped in both arms, and then did all of it."""
    folder = tmp_path_factory.mktemp("joint") / "run"
    rules = folder.with_name("rules.json")
    write_pool(rules, START)
    config = JerpConfig(out=folder, seeds=1, rules=rules)

    def in_process(config, work, phase, progress):
        if phase == "arms":
            for after in (0, 2, 4):
                interrupted(folder, work, after)
        run_jobs(folder, phase, (0, 1), work)

    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SIZES, "default", SMALL)
        patch.setattr(main, "_in_processes", in_process)
        results = main.run(config, console=Console(file=text, width=80))
        yield config, results, text.getvalue()


def test_a_run_that_was_stopped_equals_one_that_was_not(done, tmp_path):
    config, _, _ = done
    seed = config.folder / "house" / "seed-0"
    work = Work(SMALL, seed=0, num_seeds=1, rules=str(config.rules))
    (tmp_path / "house" / "seed-0").mkdir(parents=True)
    (tmp_path / "house" / "seed-0" / "base").symlink_to(seed / "base")
    run_jobs(tmp_path, "arms", (0, 1), work)
    for arm in SMALL.arms:
        for name in ("evaluation", "along-0", "along-2", "along-4"):
            one, other = (
                load_tree(where / arm / f"{name}.safetensors")[0]
                for where in (seed, tmp_path / "house" / "seed-0")
            )
            jax.tree.map(np.testing.assert_array_equal, one, other)
        rows = [
            read_metrics(where / arm / "metrics.jsonl")
            for where in (seed, tmp_path / "house" / "seed-0")
        ]
        assert rows[0] == rows[1] and len(rows[0]) == 4


def test_an_arm_with_rules_begins_with_those_of_the_file(done):
    config, results, _ = done
    assert results["start_pool"]["pick"] == list(TEXTS)
    arms = results["worlds"]["house"]["arms"]
    assert arms["jerp"]["rules"]["active"] >= 12 and "rules" not in arms["grpo"]
    seed = config.folder / "house" / "seed-0"
    assert read_pool(seed / "grpo" / "pool.json").pools["pick"] == ()
    texts = [rule.text for rule in read_pool(seed / "jerp" / "pool.json").pools["pick"]]
    assert set(TEXTS) <= set(texts)
    # Without rules of its own an arm plays alike, with them and without.
    grpo = load_tree(seed / "grpo" / "evaluation.safetensors")[0]
    for split in ("seen", "unseen"):
        told, alone = (grpo[split][name]["score"] for name in ("with", "without"))
        np.testing.assert_array_equal(told, alone)
    removal = arms["jerp"]["rules"]["removal"]
    assert removal["rules"] > 0 and removal["retiring_changes"]["point"] is not None
    assert "- pick\n  - " + TEXTS[0] in (config.folder / "report.md").read_text()


def test_sampler_and_trainer_compute_the_same_policy(done):
    arms = done[1]["worlds"]["house"]["arms"]
    assert all(arms[arm]["sampler_gap"] < 1e-4 for arm in SMALL.arms)
    assert arms["jerp"]["compilations"] > 0


def test_no_rule_was_learned_from_a_task_that_is_evaluated(done):
    config, results, _ = done
    for split in results["worlds"]["house"]["arms"]["jerp"]["splits"].values():
        assert split["leaked_rules"] == 0
    seed = config.folder / "house" / "seed-0"
    base, jerp = (
        read_digests(seed / arm / "evaluated.txt") for arm in ("base", "jerp")
    )
    assert len(base) == 2 * SMALL.held_out and base < jerp
    assert len(jerp) == 4 * SMALL.held_out


def test_rules_show_reads_a_job_and_names_the_pools_of_a_run(done, capsys):
    config, _, _ = done
    seed = config.folder / "house" / "seed-0"
    assert cli.main(["rules", "show", str(seed / "jerp")]) == 0
    shown = capsys.readouterr().out
    assert "rules learned from them: 0" in shown
    assert f"evaluated tasks: {4 * SMALL.held_out}" in shown
    assert cli.main(["rules", "show", str(config.folder)]) == 2
    told = capsys.readouterr().err
    assert str(seed / "grpo") in told and str(seed / "jerp") in told


def test_another_start_pool_in_the_same_folder_is_refused(done, tmp_path):
    write_pool(tmp_path / "other.json", PoolDocument({}))
    with pytest.raises(ConfigError, match="rules"):
        main.run(replace(done[0], rules=tmp_path / "other.json"))


@pytest.mark.parametrize(
    ("pool", "word"),
    [
        ({"pick": ("Look around.",)}, "'pick': expected a rule in the words of the ho"),
        ({"picks": TEXTS}, "'picks': expected rules of the house's types"),
        (
            {
                "pick": [
                    sentence(PLACE.env.language, *pair)
                    for pair in np.ndindex(14, 14)
                    if min(pair)
                ][:19]
            },
            "at most 18 rules, .+ beside the 2 wrong ones of an arm, got 19; take out",
        ),
    ],
)
def test_rules_that_no_arm_can_begin_with_are_refused(tmp_path, pool, word):
    """Before any process is started; see also the commands below."""
    path = tmp_path / "rules.json"
    rules = {key: tuple(PoolRule(t, 1) for t in texts) for key, texts in pool.items()}
    write_pool(path, PoolDocument(rules))
    with pytest.raises(InputError, match=f"{path}: .*{word}"):
        check_start(path, read_pool(path), PLACE, ARMS.values())


def test_as_many_rules_as_a_pool_keeps_are_taken_and_one_more_is_not(tmp_path):
    pairs = [pair for pair in np.ndindex(14, 14) if min(pair)][:21]
    rules = [PoolRule(sentence(PLACE.env.language, *pair), 1) for pair in pairs]
    check_start(tmp_path, PoolDocument({"pick": rules[:20]}), PLACE, [ARMS["jerp"]])
    with pytest.raises(InputError, match=r"at most 20 rules, .+ keeps, got 21"):
        check_start(tmp_path, PoolDocument({"pick": rules}), PLACE, [ARMS["jerp"]])


@pytest.mark.parametrize("score", [0, -1])
def test_rules_that_vanish_at_once_are_refused(tmp_path, score):
    document = PoolDocument({"pick": (PoolRule(TEXTS[0], score),)})
    with pytest.raises(InputError, match=f"a score above 0, .+ got {score} of 'When"):
        check_start(tmp_path, document, PLACE)


def test_a_smoke_run_begins_with_rules_that_every_arm_can_begin_with(tmp_path):
    config = JerpConfig(smoke=True)
    start = main._start_pool(config)
    assert start is not None and len(start.pools) == 2
    check_start(tmp_path, start, PLACE, ARMS.values())
    for other in (JerpConfig(), JerpConfig(smoke=True, by="instance")):
        assert main._start_pool(other) is None


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (None, "no such file"),
        ('{"version": 1,\n', "line 2"),
        ('{"format": "rules", "version": 99}', "version"),
    ],
)
def test_a_bad_file_of_rules_ends_a_run_before_it_begins(
    tmp_path, capsys, monkeypatch, content, word
):
    def started(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(main, "run_phase", started)
    path, out = tmp_path / "rules.json", tmp_path / "run"
    if content is not None:
        path.write_text(content)
    words = ["run", "jerp", "--smoke", "--rules", str(path), "--out", str(out)]
    assert cli.main(words) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"jerp: {path}: ") and word in told
    assert told.count("\n") == 1 and not out.exists()


def test_a_job_that_another_process_does_is_left_to_it(tmp_path):
    work = Work(SMALL, seed=0, num_seeds=1)
    where = jobs_of("base", work)[0].folder(tmp_path)
    where.mkdir(parents=True)
    with lock_folder(where), pytest.raises(StorageError, match="in use by process"):
        run_jobs(tmp_path, "base", (0, 1), work)


def test_arms_differ_in_what_they_say():
    """Without references a reflector sees one task at a time: one has to do."""
    found = {arm: _reflector(PLACE, ARMS[arm], "type") for arm in ARMS}
    assert found["jerp"].min_tasks == 3 and found["jerp-alone"].min_tasks == 1
    assert _reflector(PLACE, ARMS["jerp"], "instance").min_tasks == 1
    assert found["jerp-misled"].share == 0.1
    config, hyper = arm_algorithm(ARMS["grpo"], 16)
    assert config.aggregation == "token_mean" and config.num_groups == 16
    assert arm_algorithm(ARMS["jerp"], 16)[0] == config
    for other in ("rloo", "gigpo"):
        assert arm_algorithm(ARMS[other], 16)[0] != config
    assert float(hyper.kl_weight) == pytest.approx(0.001)


@pytest.mark.slow
def test_the_base_does_what_a_rule_says_right_or_wrong():
    """In the types whose own rules no demonstration was told, too."""
    sizes = replace(
        SIZES["default"], demonstrations=6000, epochs=8, oracle_tasks=4096, held_out=96
    )
    params, _ = cloned_base(jax.random.key(0), PLACE, sizes)
    key = jax.random.key(1)
    splits = tried_on(key, PLACE, sizes)
    found = evaluate_base(key, PLACE, splits, params, sizes)["unseen"]
    # Of picking alone, nothing that is right elsewhere is wrong.
    for kinds in (PLACE.held, (HouseTask.LOOK, HouseTask.CLEAN)):
        rows = np.isin(found["kind"], kinds)
        rate = {
            told: found[told]["success"][rows].mean()
            for told in ("without", "right", "wrong")
        }
        assert rate["right"] > rate["without"] + 0.2
        assert rate["wrong"] < rate["without"] / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "worlds"), [("instance", ("house",)), ("type", ("house", "shop"))]
)
def test_a_smoke_run_of_every_arm_everywhere(tmp_path, monkeypatch, by, worlds):
    """By instance, and with all arms in all worlds of `--full`."""
    arms = ("grpo", "jerp") if by == "instance" else tuple(ARMS)
    sizes = replace(SIZES["smoke"], arms=arms, worlds=worlds, train_tasks=16)
    monkeypatch.setitem(SIZES, "smoke", sizes)
    monkeypatch.setattr(
        main,
        "_in_processes",
        lambda config, work, phase, _: run_jobs(config.folder, phase, (0, 1), work),
    )
    config = JerpConfig(smoke=True, by=by, out=tmp_path / "run")
    text = io.StringIO()
    results = main.run(config, console=Console(file=text, width=80))
    assert set(results["worlds"]) == set(worlds)
    for found in results["worlds"].values():
        assert set(found["arms"]) == set(arms)
        for arm in found["arms"].values():
            assert arm.get("sampler_gap", 0) < 1e-4
    report = (config.folder / "report.md").read_text()
    assert ("Success on training tasks" in report) == (by == "instance")
    if by == "instance":
        pool = read_pool(config.folder / "house" / "seed-0" / "jerp" / "pool.json")
        assert len(pool.pools) == sizes.train_tasks
    assert main.run(config, console=Console(file=io.StringIO())) == results


@pytest.mark.slow
def test_a_smoke_run_of_the_command_is_found_done(tmp_path):
    config = JerpConfig(smoke=True, out=tmp_path / "run")
    results = main.run(config, console=Console(file=io.StringIO()))
    assert set(results["worlds"]["house"]["arms"]) == set(SIZES["smoke"].arms)
    assert PHASES == ("base", "arms")
    assert main.run(config, console=Console(file=io.StringIO())) == results
