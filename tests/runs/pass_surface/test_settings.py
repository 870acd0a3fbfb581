import os
from pathlib import Path

import pytest

from jerp.errors import ConfigError
from jerp.runs.pass_surface.settings import PassktSettings, check_settings, command

A, B = Path("a b.csv"), Path("runs/b.jsonl")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"min_coverage": 1.1}, "--min-coverage: expected in [0, 1], got 1.1"),
        ({"min_coverage": float("nan")}, "--min-coverage: expected in [0, 1], got nan"),
        ({"level": 1.0}, "--level: expected in (0, 1), got 1.0"),
        ({"resamples": 0}, "--resamples: expected from 1 to 1,000,000, got 0"),
        ({"resamples": 1_000_001}, "--resamples: expected from 1 to 1,000,000, got 10"),
        ({"seed": -1}, "--seed: expected in [0, 2^32), got -1"),
        (
            {"by": "outcome"},
            "--by: expected a further column, with one value a task (the surface "
            "itself is made of task, sample, spent, outcome, horizon), got outcome",
        ),
        (
            {"replicates": "task"},
            "--replicates: expected a further column, the training seed of a run (",
        ),
        (
            {"by": "seed", "replicates": "seed"},
            "--by: expected another column than --replicates, got seed for both: a "
            "part would have runs of one training seed, and nothing between seeds; "
            "leave out --by. The surface of one seed is that of a file with its rows",
        ),
        ({"ks": "0,1"}, "--ks: expected whole numbers from 1 on, got 0,1"),
        ({"ks": "1.5"}, "--ks: expected whole numbers from 1 on, got 1.5"),
        ({"ks": "inf"}, "--ks: expected whole numbers from 1 on, got inf"),
        ({"ks": "1;2"}, "--ks: expected numbers separated by commas, such as 1,2,4"),
        ({"ks": ""}, "--ks: expected numbers separated by commas"),
        ({"horizons": "-1"}, "--horizons: expected finite numbers from 0 on, got -1"),
        ({"horizons": "nan"}, "--horizons: expected finite numbers from 0 on"),
        (
            {"horizons": "1,1e300"},
            "--horizons: expected 0 or numbers from 1.2e-38 to 3.4e+38, the range of",
        ),
        ({"horizons": "1e-50"}, "--horizons: expected 0 or numbers from 1.2e-38 to"),
    ],
)
def test_a_wrong_setting_is_named_as_its_option(changes, message):
    with pytest.raises(ConfigError) as caught:
        check_settings(PassktSettings(A, **changes))
    assert str(caught.value).startswith(message)


def test_budgets_are_sorted_and_each_counted_once():
    settings = PassktSettings(A, ks="4, 1,4", horizons="2,0.5", resamples=1_000_000)
    check_settings(settings)
    assert settings.chosen_ks == (1, 4) and settings.chosen_horizons == (0.5, 2)
    assert PassktSettings(A).chosen_ks is None


def test_the_command_has_what_differs_from_the_defaults():
    assert command(PassktSettings(A)) == "jerp passkt 'a b.csv'"
    settings = PassktSettings(A, B, ks="1,2", min_coverage=0.5, out=Path("x"))
    assert command(settings) == (
        "jerp passkt 'a b.csv' runs/b.jsonl --ks 1,2 --min-coverage 0.5 --out x"
    )


def test_a_name_that_is_not_utf8_is_written_with_escapes():
    odd = PassktSettings(Path(os.fsdecode(b"r/\xe9.csv")), Path("caf\u00e9.csv"))
    assert odd.file_names == ["r/\\xe9.csv", "caf\u00e9.csv"]
    assert command(odd) == "jerp passkt 'r/\\xe9.csv' 'caf\u00e9.csv'"


def test_the_folder_is_named_after_the_files():
    assert PassktSettings(A).folder == Path("passkt-a b")
    assert PassktSettings(A, B).folder == Path("passkt-a b-b")
    assert PassktSettings(A, out=Path("x")).folder == Path("x")
