import numpy as np
import pytest

from experiments.bench import acting
from experiments.bench.acting import Acting, main, measure
from jerp.errors import ConfigError


@pytest.mark.slow
def test_every_way_is_measured_once_a_decision():
    seconds = measure(Acting(decisions=3, hidden_size=2))
    assert {len(values) for values in seconds.values()} == {3}
    assert all((values > 0).all() for values in seconds.values())


def test_the_table_compares_with_act(monkeypatch, capsys):
    found = {"act": np.full(3, 2e-5), "other": np.full(3, 5e-5)}
    monkeypatch.setattr(acting, "measure", lambda config: found)
    main(Acting())
    shown = capsys.readouterr().out
    assert "20.0" in shown and "50.0" in shown and "2.50" in shown


def test_nothing_to_measure_is_refused():
    with pytest.raises(ConfigError, match="expected at least 1"):
        Acting(decisions=0)
