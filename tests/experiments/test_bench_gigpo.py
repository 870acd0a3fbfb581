import numpy as np
import pytest

from experiments.bench import gigpo_rows
from experiments.bench.gigpo import (
    Gigpo,
    Jerp,
    agreement,
    growth_exponents,
    measure,
)
from experiments.bench.gigpo_rows import DISCOUNT, Peer, make_rows
from jerp.errors import ConfigError, InputError, MissingExtraError
from tests.reference import gigpo as reference


class Reference:
    """In the peer's place: dicts and loops over the same rows."""

    def __init__(self, wrong=0.0):
        self.wrong = wrong

    def batch(self, rows):
        return rows

    def returns(self, rows):
        return None

    def advantages(self, rows, returns, *, mode):
        episodes = {}
        for i, name in enumerate(rows.episode):
            step = (rows.anchor[i], rows.reward[i])
            episodes.setdefault((rows.task[i], name), []).append(step)
        scale = {"mean_norm": "none", "mean_std_norm": "std"}[mode]
        total, _, _ = reference.gigpo(
            [(task, task, steps) for (task, _), steps in episodes.items()],
            discount=DISCOUNT,
            episode_scale=scale,
            step_scale=scale,
            weighting="step",
            ddof=1,
        )
        return np.concatenate(total) + self.wrong


@pytest.fixture(scope="module")
def ours():
    return Jerp()


def test_the_rows_agree_with_dicts_and_loops(ours):
    rows = make_rows(400, 0, spread=30)
    largest, noisy = agreement(ours, Reference(), rows)
    assert largest < 1e-5 and noisy == 0
    largest, _ = agreement(ours, Reference(wrong=1e-3), rows)
    assert largest > 1e-4


def test_measures_without_a_peer_and_without_tracing_again(ours):
    before = ours.traces
    config = Gigpo(rounds=1, spread=30)
    seconds = measure(config, ours, None, 400)
    assert ours.traces - before <= 1
    assert len(seconds["jerp whole"].wall) == 5
    assert min(seconds["jerp whole"].wall + seconds["jerp advantages"].processor) > 0
    assert seconds["peer returns"].wall == []


def test_growth_is_fitted_in_logarithms():
    sizes = (1_000, 10_000, 100_000)
    exponent, bound = growth_exponents({n: 3e-9 * n**1.5 for n in sizes})
    np.testing.assert_allclose(exponent, 1.5)
    assert 1.05 < bound < 1.2


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"sizes": (500,)}, "sizes: expected multiples of 400"),
        ({"growth": (0,)}, "growth: expected multiples of 400"),
        ({"rounds": 0}, "rounds: expected >= 1"),
        ({"spread": 50}, r"spread: expected in \[0, 50\)"),
    ],
)
def test_bad_settings_are_refused(keywords, message):
    with pytest.raises(ConfigError, match=message):
        Gigpo(**keywords)


def test_a_peer_needs_its_file_and_torch(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="peer: expected a checkout of verl-agent"):
        Peer(tmp_path)
    (tmp_path / "gigpo").mkdir()
    (tmp_path / "gigpo" / "core_gigpo.py").write_text("raise AssertionError")
    monkeypatch.setattr(gigpo_rows.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"jerp\[parity\]"):
        Peer(tmp_path)
