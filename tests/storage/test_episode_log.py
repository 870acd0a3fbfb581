import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from jerp.errors import (
    ConfigError,
    InputError,
    ShapeError,
    StorageError,
    TrajectoryError,
    UnknownNameError,
)
from jerp.models.acting import Decision
from jerp.storage.episode_log import EpisodeLog
from jerp.storage.trajectories import TrajectoryFolder
from jerp.typing import USAGE_KINDS, Outcome

LAYOUT = {"features": ("doubt", "cost"), "actions": ("draft", "check", "submit")}
DRAFT, SUBMIT = Decision(0, "draft", -0.5), Decision(2, "submit", 0.0)
ALL = [True, True, True]


def odd(*fields: Any) -> Decision:
    return Decision(*fields)


def written(episode, score=0.5, **end):
    episode.step([0.25, 1], [True, True, False], DRAFT)
    episode.step([0.75, 2], ALL, SUBMIT)
    episode.end(score, **end)


@pytest.fixture
def log(tmp_path):
    with EpisodeLog(tmp_path / "logs", **LAYOUT) as log:
        yield log


def test_an_episode_is_on_the_disk_when_it_ended(log, tmp_path):
    episode = log.begin("task-17")
    episode.step(
        [0.25, 1],
        [True, True, False],
        DRAFT,
        reward=-0.125,
        usage={"tokens_out": 7},
        text={"completion": "So."},
    )
    assert TrajectoryFolder.open(tmp_path / "logs").shards() == ()
    episode.step([0.75, 2], ALL, SUBMIT)
    episode.end(0.5)
    folder = TrajectoryFolder.open(tmp_path / "logs")
    data = folder.load()
    np.testing.assert_array_equal(data.observation, [[[0.25, 1], [0.75, 2]]])
    np.testing.assert_array_equal(data.action, [[0, 2]])
    np.testing.assert_array_equal(data.legal, [[[True, True, False], ALL]])
    np.testing.assert_array_equal(data.log_prob, [[-0.5, 0]])
    np.testing.assert_array_equal(data.reward, [[-0.125, 0.5]])
    np.testing.assert_array_equal(data.terminated, [[False, True]])
    assert not data.truncated.any()
    assert data.usage[0, 0, USAGE_KINDS.index("tokens_out")] == 7
    assert (data.score[0], data.outcome[0]) == (0.5, Outcome.FAILURE)
    assert folder.meta.task_keys == {str(data.task_id[0]): "task-17"}
    assert folder.meta.action_names == LAYOUT["actions"]
    assert folder.transcripts() == [
        [{"action": "draft", "completion": "So."}, {"action": "submit"}]
    ]


def test_outcomes_and_rewards_of_the_end(log, tmp_path):
    written(log.begin("a"), 1.0, reward=0.25)
    written(
        log.begin("a"), 0.5, outcome=Outcome.TRUNCATED, final_features=np.array([9, 9])
    )
    log.begin("b").end(outcome=Outcome.INFRASTRUCTURE)
    data = TrajectoryFolder.open(tmp_path / "logs").load()
    success, cut, broken = Outcome.SUCCESS, Outcome.TRUNCATED, Outcome.INFRASTRUCTURE
    assert data.outcome.tolist() == [success, cut, broken]
    assert data.task_id.tolist() == data.group_id.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(data.reward.sum(axis=1), [0.25, 0.5, 0])
    np.testing.assert_array_equal(data.truncated[:, 1], [False, True, False])
    final = np.asarray(data.final_observation)
    np.testing.assert_array_equal(final[:2], [[0.75, 2], [9, 9]])
    assert data.mask.sum(axis=1).tolist() == [2, 2, 0]


def test_opening_again_continues_and_tasks_keep_their_numbers(tmp_path):
    for version, tasks in enumerate((["a", "b"], ["b", "c"])):
        with EpisodeLog(tmp_path, **LAYOUT, version=version) as log:
            for task in tasks:
                written(log.begin(task))
    folder = TrajectoryFolder.open(tmp_path)
    data = folder.load()
    assert folder.meta.task_keys == {"0": "a", "1": "b", "2": "c"}
    assert data.task_id.tolist() == [0, 1, 1, 2]
    assert data.version.tolist() == [0, 0, 1, 1]
    assert len(folder.shards()) == 4


def test_a_dead_writer_loses_what_had_not_ended_and_nothing_else(tmp_path):
    log = EpisodeLog(tmp_path, **LAYOUT)
    written(log.begin("a"))
    log.begin("b").step([0, 0], ALL, DRAFT)
    log._file.close()  # what the system does when a process dies
    (tmp_path / "transcripts-00000001.jsonl").write_text('{"epis')
    with EpisodeLog(tmp_path, **LAYOUT) as log:
        written(log.begin("b"))
    folder = TrajectoryFolder.open(tmp_path)
    assert [folder.meta.task_keys[str(i)] for i in folder.load().task_id] == ["a", "b"]
    assert all(not report.problem for report in folder.check())


def test_several_episodes_make_a_shard_and_closing_writes_the_rest(tmp_path):
    with EpisodeLog(tmp_path, **LAYOUT, shard_size=2) as log:
        for task in "abc":
            written(log.begin(task))
        assert len(TrajectoryFolder.open(tmp_path).shards()) == 1
    folder = TrajectoryFolder.open(tmp_path)
    assert len(folder.shards()) == 2 and len(folder.load().mask) == 3


def test_episodes_may_overlap_in_threads(log, tmp_path):
    episodes = [log.begin(f"task-{i % 3}") for i in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(written, episodes))
    data = TrajectoryFolder.open(tmp_path / "logs").load()
    assert np.bincount(data.task_id).tolist() == [4, 4, 4]


def test_every_decision_has_a_seed_of_its_own(tmp_path):
    seeds = []
    for _ in range(2):
        with EpisodeLog(tmp_path, **LAYOUT) as log:
            for _ in range(2):
                episode = log.begin("a")
                assert episode.seed == episode.seed
                seeds.append(episode.seed)
                episode.step([0, 0], ALL, SUBMIT)
                seeds.append(episode.seed)
                episode.end(1)
    assert len(set(seeds)) == 8 and all(0 <= seed < 1 << 64 for seed in seeds)


def first_seed(folder, **settings):
    with EpisodeLog(folder, **LAYOUT, **settings) as log:
        return log.begin("a").seed


def test_every_folder_explores_in_its_own_way_and_goes_on_with_it(tmp_path):
    folders = [tmp_path / name for name in "abc"]
    seeds = [first_seed(folder) for folder in folders]
    assert len({*seeds}) == 3
    # Nothing was written, so that the next session begins like the first.
    assert [first_seed(folder) for folder in folders] == seeds


def test_a_seed_makes_every_decision_repeatable(tmp_path):
    expected = hashlib.sha256(b"7/0/1/0").digest()[:8]
    for name, seed in (("a", 7), ("b", np.int64(7))):
        assert first_seed(tmp_path / name, seed=seed) == int.from_bytes(expected)
    assert first_seed(tmp_path / "c", seed=8) != int.from_bytes(expected)
    assert first_seed(tmp_path / "a") == int.from_bytes(expected)
    with pytest.raises(ConfigError, match=r"extra\.log_seed: 7 there, 8 here"):
        first_seed(tmp_path / "a", seed=8)


def test_a_log_that_keeps_no_seed_is_read_and_continued(tmp_path):
    """As logs were at first: beside an equal one it takes its own seeds too."""
    seeds = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        EpisodeLog(folder, **LAYOUT).close()
        meta = json.loads((folder / "meta.json").read_text())
        del meta["extra"]["log_seed"]
        (folder / "meta.json").write_text(json.dumps(meta))
        with EpisodeLog(folder, **LAYOUT) as log:
            seeds.append(log.begin("a").seed)
            written(log.begin("a"))
        assert TrajectoryFolder.open(folder).meta.extra == {}
        seeds.append(first_seed(folder, seed=7))
    assert len({*seeds}) == 3 and seeds[1] == seeds[3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 0.5}, "seed: expected a whole number, or None, got 0.5"),
        ({"seed": True}, "seed: expected a whole number, or None, got True"),
        ({"extra": {"log_seed": 1}}, "extra: .* 'log_seed'.* `seed`"),
        ({"extra": 5}, "extra: expected a dict, or None, got 5"),
        ({"extra": {"x": {1}}}, "extra: expected plain numbers"),
        ({"feature_version": "q"}, "feature_version: .* whole .* got 'q'"),
        ({"version": "v"}, "^version: .* whole .* got 'v'"),
        ({"version": -1}, "^version: .* got -1"),
        ({"version": 2**40}, r"^version: .*\[0, 2\*\*31\), got 1099511627776"),
        ({"features": 5}, "features: expected different texts, got 5"),
        ({"actions": None}, "actions: expected different texts, got None"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        EpisodeLog(tmp_path / "logs", **{**LAYOUT, **settings})
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("folder", ["", None, 5])
def test_a_folder_that_is_no_path_is_refused(tmp_path, monkeypatch, folder: Any):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"folder: expected a path, got {folder!r}"):
        EpisodeLog(folder, **LAYOUT)
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path):
    (tmp_path / "controller.json").write_text("{}")
    with pytest.raises(ConfigError, match="which holds 'controller"):
        EpisodeLog(tmp_path, **LAYOUT)
    assert [path.name for path in tmp_path.iterdir()] == ["controller.json"]
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".lock").touch()
    EpisodeLog(tmp_path / "killed", **LAYOUT).close()


def test_settings_reach_the_meta_and_other_ones_are_refused(tmp_path):
    settings = {**LAYOUT, "feature_version": 3, "extra": {"domain": "mine"}}
    EpisodeLog(tmp_path, **settings, seed=5).close()
    meta = TrajectoryFolder.open(tmp_path).meta
    expected = {"domain": "mine", "log_seed": 5}
    assert (meta.feature_version, meta.extra) == (3, expected)
    for change, message in (
        (
            {"actions": ("draft", "submit")},
            r'action_names\[1\]: "check" there, "submit" here',
        ),
        ({"feature_version": 4}, "feature_version: 3 there, 4 here"),
        ({"extra": None}, "extra"),
    ):
        with pytest.raises(ConfigError, match=message):
            EpisodeLog(tmp_path, **{**settings, **change})


def test_a_folder_has_one_log(log, tmp_path):
    with pytest.raises(StorageError, match="in use by process"):
        EpisodeLog(tmp_path / "logs", **LAYOUT)


def test_shards_of_another_writer_are_left_alone(tmp_path):
    with EpisodeLog(tmp_path, **LAYOUT) as log:
        written(log.begin("a"))
    folder = TrajectoryFolder.open(tmp_path)
    folder.write_shard("x", folder.load())
    with pytest.raises(StorageError, match="'x': expected a log's own"):
        EpisodeLog(tmp_path, **LAYOUT)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([np.nan, 0], ALL, DRAFT), InputError, "got nan for 'doubt'"),
        (([0], ALL, DRAFT), ShapeError, "F=2, got"),
        (([0, 0], [True], DRAFT), ShapeError, "legal"),
        (([0, 0], [False, True, True], DRAFT), InputError, "legal action, got 'draft'"),
        (([0, 0], ALL, Decision(0, "check", 0)), ConfigError, "'check' as number 0"),
        (([0, 0], ALL, Decision(3, "draft", 0)), ConfigError, "as number 3"),
        (([0, 0], ALL, Decision(0, "draft", 0.5)), InputError, "log_prob: .* got 0.5"),
        (([0, 0], ALL, Decision(0, "draft", np.nan)), InputError, "log_prob: .* nan"),
        (([0, 0], ALL, DRAFT, {"reward": np.inf}), InputError, "reward: .* inf"),
        (([0, 0], ALL, Decision(0, "draft", -1e39)), InputError, "log_prob: .* -1e"),
        (([0, 0], ALL, DRAFT, {"reward": 1e39}), InputError, "reward: .* 1e[+]39"),
        (([0, 0], ALL, DRAFT, {"usage": {"seconds": 1e39}}), InputError, "at most 1e"),
        (([0, 0], ALL, DRAFT, {"usage": {"second": 1}}), UnknownNameError, "seconds"),
        (([0, 0], ALL, DRAFT, {"usage": {"seconds": -1}}), InputError, "at least 0"),
        (([0, 0], ALL, DRAFT, {"text": {"x": {1}}}), TrajectoryError, "JSON-able"),
        (([0, 0], ALL, None), InputError, "decision: expected a jerp.Decision.* None"),
        (([0, 0], ALL, (0, "draft", -0.5)), InputError, "decision: .* got .0, 'draft'"),
        (
            ([0, 0], ALL, odd("0", "draft", 0)),
            InputError,
            "decision.action: .* '0",
        ),
        (([0, 0], ALL, odd(0.0, "draft", 0)), InputError, "decision.action: .* 0"),
        (([0, 0], ALL, odd(0, "draft", None)), InputError, "log_prob: .* None"),
        (([0, 0], ALL, odd(0, "draft", "0")), InputError, "log_prob: .* '0'"),
        (
            ([0, 0], ALL, DRAFT, {"reward": "1"}),
            InputError,
            "reward: .* number, got '1",
        ),
        (([0, 0], ALL, DRAFT, {"reward": None}), InputError, "reward: .* got None"),
        (([0, 0], ALL, DRAFT, {"reward": [1]}), InputError, r"reward: .* got \[1\]"),
        (([0, 0], ALL, DRAFT, {"reward": np.ones(1)}), InputError, "reward: .* array"),
        (([0, 0], ALL, DRAFT, {"reward": 10**400}), InputError, "reward: .* 1000"),
        (([0, 0], ALL, DRAFT, {"usage": []}), InputError, "usage: expected a dict"),
        (([0, 0], ALL, DRAFT, {"usage": {1: 1}}), UnknownNameError, "usage '1'"),
        (
            ([0, 0], ALL, DRAFT, {"usage": {"seconds": "1"}}),
            InputError,
            "seconds'.: .* '1'",
        ),
        (
            ([0, 0], ALL, DRAFT, {"usage": {"seconds": None}}),
            InputError,
            "seconds'.: .* No",
        ),
        (
            ([0, 0], ALL, DRAFT, {"text": "hello"}),
            InputError,
            "text: .* dict.* 'hello'",
        ),
    ],
)
def test_a_step_that_cannot_be_meant_is_refused_and_not_logged(
    log, arguments, error, message
):
    episode = log.begin("a")
    *data, more = arguments if len(arguments) == 4 else (*arguments, {})
    with pytest.raises(error, match=message):
        episode.step(*data, **more)
    with pytest.raises(ConfigError, match="at least one step, got none"):
        episode.end(1)


@pytest.mark.parametrize(
    ("end", "error", "message"),
    [
        ({"score": 1.5}, InputError, r"score: expected a number in \[0, 1\], got 1.5"),
        ({"score": None}, InputError, "got None"),
        ({"score": "1"}, InputError, "score: expected a number, got '1'"),
        ({"score": [1]}, InputError, r"score: expected a number, got \[1\]"),
        (
            {"score": 7, "outcome": Outcome.INFRASTRUCTURE},
            InputError,
            "score: .* got 7",
        ),
        (
            {"score": 1, "outcome": "success"},
            InputError,
            "outcome: .*SUCCESS.* 'success",
        ),
        ({"score": 1, "outcome": 99}, InputError, "outcome: .* got 99"),
        ({"score": 1, "reward": "1"}, InputError, "reward: expected a number, got '1'"),
        ({"score": 1, "reward": np.nan}, InputError, "reward: .* nan"),
        ({"score": 1, "reward": -1e39}, InputError, "reward: .* -1e[+]39"),
        ({"score": 0, "outcome": Outcome.TRUNCATED}, ConfigError, "final_features"),
    ],
)
def test_an_end_that_cannot_be_meant_is_refused_and_may_be_repaired(
    log, end, error, message
):
    episode = log.begin("a")
    episode.step([0, 0], ALL, SUBMIT)
    with pytest.raises(error, match=message):
        episode.end(**end)
    episode.end(1)
    with pytest.raises(ConfigError, match="this episode is over"):
        episode.end(1)
    with pytest.raises(ConfigError, match="this episode is over"):
        episode.step([0, 0], ALL, SUBMIT)


def test_numbers_of_other_libraries_are_numbers(log, tmp_path):
    episode = log.begin("a")
    decision = odd(np.int64(0), "draft", np.float32(-0.5))
    usage = {"tokens_out": np.array(7)}
    episode.step([0, 0], ALL, decision, reward=np.array(0.25), usage=usage)
    episode.end(np.True_, outcome=1, reward=np.float64(0.5))
    log.begin("a").end(np.nan, outcome=4)
    data = TrajectoryFolder.open(tmp_path / "logs").load()
    assert (data.action[0, 0], data.log_prob[0, 0], data.reward[0, 0]) == (
        0,
        -0.5,
        0.75,
    )
    assert np.asarray(data.usage)[0, 0].sum() == 7
    assert (data.score[0], data.outcome.tolist()) == (1, [1, 4])


def test_the_largest_rewards_of_a_last_step_and_its_end_have_a_sum(log, tmp_path):
    episode = log.begin("a")
    episode.step([0, 0], ALL, SUBMIT, reward=-1e38)
    episode.end(0, reward=-1e38)
    data = TrajectoryFolder.open(tmp_path / "logs").load()
    np.testing.assert_allclose(data.reward, [[-2e38]])


def test_a_closed_log_and_an_unnamed_task_are_refused(tmp_path):
    with pytest.raises(InputError, match="shard_size"):
        EpisodeLog(tmp_path, **LAYOUT, shard_size=0)
    with EpisodeLog(tmp_path, **LAYOUT) as log:
        with pytest.raises(ConfigError, match="task: expected a key"):
            log.begin("")
        episode = log.begin("a")
        episode.step([0, 0], ALL, SUBMIT)
    with pytest.raises(ConfigError, match="closed; open it again"):
        log.begin("a")
    with pytest.raises(ConfigError, match="closed; open it again"):
        episode.end(1)
