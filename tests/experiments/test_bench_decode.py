from dataclasses import replace

import pytest

from experiments.bench.decode import DECODE_BASE, SMOLLM2, Decode, all_ways, measure
from jerp.errors import ConfigError

TINY = replace(SMOLLM2, vocab_size=50, hidden_size=16, intermediate_size=8)
TINY = replace(TINY, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=8)


def test_joint_and_single_projections_draw_the_same_tokens():
    config = Decode(rounds=2, chunk=2, blocks=2, capacity=128)
    makers = all_ways(config, TINY)
    assert len(makers) == 8
    fused, half = "decode fused float32, 16 rows", "prefill bfloat16"
    ways = measure(config, {n: makers[n] for n in (DECODE_BASE, fused, half)})
    plain, joint = ways[DECODE_BASE].state[1], ways[fused].state[1]
    assert plain.shape == (16, 2)
    assert (plain == joint).all()
    assert all(len(way.seconds) == 2 and min(way.seconds) > 0 for way in ways.values())
    assert [way.tokens for way in ways.values()] == [32, 32, 32]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds: expected >= 1, got 0"),
        ({"capacity": 120}, "capacity: expected a multiple of 16 from 124 up, got 120"),
        ({"capacity": 96}, "capacity: .* got 96"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        Decode(**change)
