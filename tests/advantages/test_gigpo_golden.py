"""GiGPO against released code, and where jerp differs on purpose.

`golden/gigpo.json` says where the numbers come from. That code takes one row a step and
lets each row carry a score of its episode: `laid_out` makes episodes of its rows, and
`row_advantages` does to rows what the code does, for what no episode can express.
"""

import json
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest

from jerp.advantages.anchors import anchor_ids
from jerp.advantages.group import group_relative_advantages
from jerp.ops.returns import discounted_returns
from jerp.ops.segments import group_stats
from tests.advantages.batches import BATCH, STEPS, gigpo

CASES = {
    case["name"]: case
    for case in json.loads(
        (Path(__file__).parents[1] / "golden" / "gigpo.json").read_text("utf-8")
    )["cases"]
}
MODES = {"mean_norm": "none", "mean_std_norm": "std"}
CROSS = {"cross_True": "step", "cross_False": "trajectory"}
TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}
ROWS = BATCH * STEPS

# What episodes cannot express; the test at the end has both numbers of each.
ROWS_ALONE = ("singletons", "per_row_penalty", "copied_rows")


def laid_out(case):
    """`(batch, rows)`: arrays of episodes, and the row of each real step."""
    inputs = case["inputs"]
    names = list(zip(inputs["task"], inputs["traj"], strict=True))
    episodes = [
        [row for row, name in enumerate(names) if name == episode]
        for episode in dict.fromkeys(names)
    ]
    rows = [row for episode in episodes for row in episode]
    # Episodes that pad the batch have no steps.
    lengths = [len(e) for e in episodes] + [0] * (BATCH - len(episodes))
    mask = np.arange(STEPS) < np.array(lengths)[:, None]
    reward = np.full(mask.shape, np.nan, np.float32)
    reward[mask] = np.array(inputs["step_reward"])[rows]
    anchor = np.full(mask.shape, -1, np.int32)
    states = anchor_ids([inputs["anchor"][row] for row in rows], lengths=lengths)
    anchor[:, : states.shape[1]] = states
    task_id = np.zeros(BATCH, np.int32)
    task_id[: len(episodes)] = anchor_ids([inputs["task"][e[0]] for e in episodes])
    return (reward, mask, task_id, task_id, anchor), rows


def in_rows(x, mask, rows):
    values = np.empty(len(rows), np.float32)
    values[rows] = np.asarray(x)[mask]
    return values


def by_episodes(case, mode, cross):
    """`gigpo_advantages` with the keywords of the released code, in its rows."""
    batch, rows = laid_out(case)
    found = gigpo(
        *batch,
        discount=case["gamma"],
        episode_scale=MODES[mode],
        step_scale=MODES[mode],
        weighting=CROSS[cross],
        ddof=1,
    )
    terms = (found.episode, found.step, found.total)
    return [in_rows(term, batch[1], rows) for term in terms]


@pytest.mark.parametrize("cross", CROSS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [n for n in CASES if n not in ROWS_ALONE])
def test_advantages_of_episodes(name, mode, cross):
    case, key = CASES[name], f"{mode}|{cross}"
    episode, step, total = by_episodes(case, mode, cross)
    exact, shipped = case["outputs"]["f64"], case["outputs"]["f32"]
    np.testing.assert_allclose(episode, exact["episode_adv"][key], **TOLERANCE)
    np.testing.assert_allclose(step, exact["step_adv"][mode], **TOLERANCE)
    np.testing.assert_allclose(total, exact["total"][key], **TOLERANCE)
    noise = case["outputs"]["f32_noise_rows"].get(key, [])
    quiet = ~np.isin(np.arange(len(total)), noise)
    expected = np.array(shipped["total"][key])[quiet]
    np.testing.assert_allclose(total[quiet], expected, rtol=1e-4, atol=1e-4)


@partial(jax.jit, static_argnames="scale")
def relative(value, group_id, counted, scale):
    keywords = {"num_groups": ROWS, "ddof": 1}
    found = group_relative_advantages(value, group_id, counted, scale=scale, **keywords)
    stats = group_stats(value, group_id, counted, **keywords)
    return found.value, stats.std[group_id], stats.count[group_id]


def relative_rows(value, group, counted, mode):
    """Advantages, divisors and group sizes of rows, padded to one shape."""
    padding = ROWS - len(value)
    padded = (
        np.pad(np.float32(value), (0, padding)),
        np.pad(anchor_ids(group), (0, padding)),
        np.pad(counted, (0, padding)),
    )
    advantage, std, size = (
        np.asarray(x)[: len(value)] for x in relative(*padded, MODES[mode])
    )
    return advantage, 1 if mode == "mean_norm" else std + 1e-6, size


@jax.jit
def returns_to_go(reward, mask, discount):
    return jax.vmap(partial(discounted_returns, discount=discount))(reward, mask)


def row_advantages(case, mode, cross):
    """Copies appended, a score of its own in each row, raw scores of lone rows."""
    inputs = case["inputs"]
    (reward, mask, *_), order = laid_out(case)
    to_go = in_rows(returns_to_go(reward, mask, case["gamma"]), mask, order)
    np.testing.assert_allclose(to_go, case["outputs"]["step_return_f64"], **TOLERANCE)

    rows = [*range(len(order)), *inputs.get("copy_rows", [])]
    task, traj, anchor = (
        [inputs[n][r] for r in rows] for n in ("task", "traj", "anchor")
    )
    score = np.float32([inputs["episode_return"][r] for r in rows])
    every = np.ones(len(rows), bool)

    names = list(zip(task, traj, strict=True))
    first = np.array([names.index(name) for name in names])
    counted = every if cross == "cross_True" else first == np.arange(len(rows))
    relative_to, divisor, size = relative_rows(score, task, counted, mode)
    counted_row = np.where(counted, np.arange(len(rows)), first)
    episode = relative_to[counted_row] + (score - score[counted_row]) / divisor
    lone = score if mode == "mean_norm" else score / np.float32(1 + 1e-6)
    episode = np.where(size == 1, lone, episode)

    state = list(zip(task, anchor, strict=True))
    assert anchor_ids(state).tolist() == case["outputs"]["step_group"]
    step, _, _ = relative_rows(to_go[rows], state, every, mode)
    return episode, step, episode + step


@pytest.mark.parametrize("cross", CROSS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_advantages_of_rows(name, mode, cross):
    case, key = CASES[name], f"{mode}|{cross}"
    episode, step, total = row_advantages(case, mode, cross)
    exact = case["outputs"]["f64"]
    np.testing.assert_allclose(episode, exact["episode_adv"][key], **TOLERANCE)
    np.testing.assert_allclose(step, exact["step_adv"][mode], **TOLERANCE)
    np.testing.assert_allclose(total, exact["total"][key], **TOLERANCE)


def test_every_case_is_compared():
    assert len(CASES) == 14 and set(ROWS_ALONE) < set(CASES)


@pytest.mark.parametrize(
    ("name", "cross", "row", "theirs", "ours"),
    [
        # A group of one episode: there its raw score, here nothing to learn from.
        ("singletons", "cross_True", 0, 10.0, 0.0),
        ("singletons", "cross_False", 0, 10.0, 0.0),
        # One episode of three steps: by steps a group of three equals in both, by
        # episodes a group of one.
        ("singletons", "cross_True", 5, 0.0, 0.0),
        ("singletons", "cross_False", 5, 10.0, 0.0),
        # A penalty on the score of one row: there it is neither discounted back nor
        # shared by the episode's other rows. Here a penalty is part of the reward.
        ("per_row_penalty", "cross_True", 1, 5.76666666667, 5.83333333333),
        ("per_row_penalty", "cross_False", 1, 4.95, 5.0),
        # Rows copied to fill the batch move the mean there; here padding is masked.
        ("copied_rows", "cross_True", 0, 6.0, 5.83333333333),
        ("copied_rows", "cross_False", 0, 5.0, 5.0),
    ],
)
def test_what_episodes_do_otherwise(name, cross, row, theirs, ours):
    """The episode term without a scale. Deviations 2, 4 and 6 of the golden README."""
    case = CASES[name]
    expected = case["outputs"]["f64"]["episode_adv"][f"mean_norm|{cross}"][row]
    np.testing.assert_allclose(expected, theirs, **TOLERANCE)
    episode, _, _ = by_episodes(case, "mean_norm", cross)
    np.testing.assert_allclose(episode[row], ours, **TOLERANCE)


def test_rounding_is_no_advantage():
    """Deviation 1: as shipped, that code gives twenty rows of 9.9 each -0.48."""
    case = CASES["zero_variance_rounding_noise"]
    shipped = case["outputs"]["f32"]["total"]["mean_std_norm|cross_True"]
    np.testing.assert_allclose(shipped, -0.48203123, rtol=1e-6)
    for ours in (by_episodes, row_advantages):
        total = ours(case, "mean_std_norm", "cross_True")[2]
        np.testing.assert_array_equal(total, np.zeros(20))


def test_the_defaults_are_the_papers():
    """Deviations 2 and 3: there long episodes weigh more, and ddof is 1."""
    case = CASES["lengths_1_to_12"]
    batch, rows = laid_out(case)
    default = in_rows(gigpo(*batch, discount=case["gamma"]).episode, batch[1], rows)
    released = case["outputs"]["f64"]["episode_adv"]
    assert np.abs(default - released["mean_std_norm|cross_True"]).max() > 0.1
    # With each episode counted once, only ddof is left: sqrt(7/8) for 8 episodes.
    once = np.array(released["mean_std_norm|cross_False"])
    np.testing.assert_allclose(default * np.sqrt(7 / 8), once, rtol=1e-5)
