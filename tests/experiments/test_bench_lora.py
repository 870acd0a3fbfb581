import jax
import pytest

from experiments.bench.lora import FULL, LORA, Lora, all_ways, held, training_way
from jerp.errors import ConfigError
from tests.experiments.test_bench_decode import TINY


def test_both_ways_lower_the_loss_and_adapters_hold_less():
    setups = all_ways(Lora(length=8, rank=2), TINY)
    sizes, first, last = {}, {}, {}
    for name, (step, arguments) in setups.items():
        sizes[name] = held(step, arguments)
        way = training_way(step, arguments, 16)()
        losses = []
        for _ in range(4):
            assert way.run() > 0
            losses.append(float(way.state[2]))
        first[name], last[name] = losses[0], losses[-1]
        assert last[name] < first[name]
    assert first[FULL] == pytest.approx(first[LORA], rel=1e-5)
    frozen = setups[LORA][1][2]
    weights = sum(leaf.nbytes for leaf in jax.tree.leaves(frozen))
    # Frozen weights are there once, trained ones three times with AdamW's moments.
    assert weights < sizes[LORA] < sizes[FULL] and sizes[FULL] > 3 * weights


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds: expected >= 1, got 0"),
        ({"rank": 0}, "rank: expected >= 1, got 0"),
        ({"length": 1}, "length: expected >= 2, got 1"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        Lora(**change)
