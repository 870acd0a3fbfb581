from dataclasses import replace

import numpy as np
import pytest

from experiments.bench import scoring
from experiments.bench.decode import SMOLLM2
from experiments.bench.scoring import PREFILL, Scoring, all_ways, main, measure
from jerp.errors import ConfigError

TINY = replace(SMOLLM2, vocab_size=50, hidden_size=16, intermediate_size=8)
TINY = replace(TINY, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=8)


def test_both_ways_give_the_same_scores():
    ways = all_ways(Scoring(prompt=9, candidates=3, length=2), TINY)
    together, single = ways["all at once"](), ways["one by one"]()
    np.testing.assert_allclose(together, np.array(single), atol=1e-4)
    assert ways[PREFILL]().shape == (1, 50)
    seconds = measure(ways, 2)
    assert all(len(x) == 2 and min(x) > 0 for x in seconds.values())


def test_the_table_compares_with_the_prefill(monkeypatch, capsys):
    found = {PREFILL: [0.2, 0.1], "all at once": [0.25, 0.125]}
    monkeypatch.setattr(scoring, "all_ways", lambda config: {})
    monkeypatch.setattr(scoring, "measure", lambda ways, rounds: found)
    main(Scoring())
    shown = capsys.readouterr().out
    assert "125" in shown and "1.25" in shown


def test_nothing_to_measure_is_refused():
    with pytest.raises(ConfigError, match="candidates: expected >= 1, got 0"):
        Scoring(candidates=0)
