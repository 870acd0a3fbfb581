import numpy as np
import pytest

from jerp.errors import ConfigError, InputError
from jerp.runs.pass_surface.inputs import read_inputs
from jerp.runs.pass_surface.settings import PassktSettings
from tests.runs.pass_surface.files import NESTED, runs_of, write_csv

RERUN = ("task", "sample", "horizon", "spent", "outcome")
KIND = (*NESTED, "kind")
S, F, X = "success", "failure", "infrastructure"


@pytest.fixture
def inputs(tmp_path):
    """Reads the inputs of rows of one file or of two."""

    def read(rows, rows2=None, header=NESTED, header2=None, **settings):
        files = [write_csv(tmp_path / "a.csv", rows, header)]
        if rows2 is not None:
            files.append(write_csv(tmp_path / "b.csv", rows2, header2 or header))
        return read_inputs(PassktSettings(*files, **settings))

    return read


def eight(task, *, invalid=0, spent=1):
    runs = [(spent, S), (spent, F)] * 4
    return runs_of(task, *runs[invalid:], *[(None, X)] * invalid)


def test_budgets_are_powers_of_two_and_all_values_spent(inputs):
    found = inputs(eight("a") + eight("b", spent=0.1))
    assert found.ks == (1, 2, 4, 8)
    assert found.horizons == (0.1, 1.0)
    assert found.protocol == "nested" and found.tasks == ("a", "b")
    assert found.notes == ()


def test_the_fewest_valid_samples_are_the_last_k_and_noted(inputs):
    found = inputs(eight("a") + runs_of("b", *[(1, F)] * 6))
    assert found.ks == (1, 2, 4, 6)
    assert len(found.notes) == 1
    assert found.notes[0].startswith(
        "k ends at 6, the valid samples of task 'b'; other tasks have up to 8"
    )


@pytest.mark.parametrize(("least", "ks"), [(0.9, (1, 2, 4, 8)), (0.5, (1, 2, 4, 5))])
def test_a_refused_task_does_not_cut_k(inputs, least, ks):
    found = inputs(eight("a") + eight("b", invalid=3), min_coverage=least)
    assert found.ks == ks


def test_many_values_spent_become_six_quantiles_with_the_largest(inputs):
    rows = [row for t in range(100) for row in runs_of(t, (t + 1, S), (t + 1, F))]
    found = inputs(rows)
    assert found.horizons == (17, 34, 50, 67, 84, 100)
    assert found.notes[0].startswith("horizons: 6 quantiles of the 100 distinct values")


def test_ties_do_not_leave_fewer_than_six_horizons(inputs):
    # Five of six quantiles are 1; the values between 1 and 9 fill up.
    rows = [row for t in range(50) for row in runs_of(t, (1, S), (1, F))]
    rows += [row for v in range(2, 10) for row in runs_of(f"v{v}", (v, S))]
    found = inputs(rows)
    assert len(found.horizons) == 6
    assert (found.horizons[0], found.horizons[-1]) == (1, 9)
    assert set(found.horizons) <= set(range(1, 10))
    assert found.notes[0].startswith(
        "horizons: 2 quantiles, and 4 more, of the 9 distinct values of spent; "
    )


def test_values_that_differ_in_no_written_digit_are_one_horizon(inputs):
    rows = runs_of("a", (0.1 + 0.2, S), (0.3, S), (1, F))
    assert inputs(rows).horizons == (0.3, 1)
    assert inputs(rows, horizons="0.3").horizons == (0.3,)


def test_horizons_that_float32_would_merge_are_refused(inputs):
    near = runs_of("a", (20000000, S), (20000001, S))
    with pytest.raises(InputError, match=r"a\.csv: expected horizons apart, got 20000"):
        inputs(near)
    with pytest.raises(ConfigError, match=r"^--horizons: .*got 2 and 2\.00000000001"):
        inputs(near, horizons="2,2.00000000001")
    rows = rerun("a", (20000000, 1, S), (20000001, 1, S))
    with pytest.raises(InputError, match=r"got 20000000 and 20000001: .* larger unit"):
        inputs(rows, header=RERUN)
    assert inputs(near, horizons="10000000").horizons == (10000000,)


@pytest.mark.parametrize("horizons", ["20000000", "auto"])
def test_runs_that_float32_would_move_across_a_horizon_are_refused(inputs, horizons):
    # With auto the run is nobody's horizon, being infrastructure.
    outcome = F if horizons != "auto" else X
    rows = runs_of("a", (20000000, S), (20000001, outcome))
    message = r"a\.csv: spent 20000001 cannot be told from the horizon 20000000: .*unit"
    with pytest.raises(InputError, match=message):
        inputs(rows, horizons=horizons)


def test_a_rerun_is_compared_with_its_own_horizon_alone(inputs):
    rows = rerun("a", (20000000, 5, S), (40000000, 20000001, S))
    assert inputs(rows, header=RERUN).horizons == (20000000, 40000000)
    with pytest.raises(InputError, match="spent 20000001 cannot be told from the hor"):
        inputs(rerun("a", (20000000, 20000001, S)), header=RERUN)


def test_chosen_budgets_are_taken_in_order(inputs):
    found = inputs(eight("a"), ks="4,1,1", horizons="3,0.5")
    assert found.ks == (1, 4) and found.horizons == (0.5, 3)
    assert found.notes == (
        "T = 3: no run spent more than 1 steps, so nothing can differ from T = 1",
    )


def test_runs_truncated_early_are_noted(inputs):
    rows = runs_of("a", (2, "truncated"), (5, "truncated"), (5, S))
    (note,) = inputs(rows, unit="tokens").notes
    assert note.startswith("a.csv: 1 run truncated before T = 5 tokens")
    assert inputs(rows, horizons="2").notes == ()


def test_two_files_are_joined_by_task(inputs):
    found = inputs(
        runs_of("x", (1, S)) + runs_of("b", (2, F)) + runs_of("a", (3, S)),
        runs_of("a", (4, F)) + runs_of("y", (9, S)) + runs_of("b", (5, S)),
    )
    assert found.tasks == ("b", "a")
    first, second = found.agents
    assert (first.label, second.label) == ("a.csv", "b.csv")
    assert first.runs.spent.tolist() == [[2], [3]]
    assert second.runs.spent.tolist() == [[5], [4]]
    assert (first.alone, second.alone) == (("x",), ("y",))
    assert found.horizons == (2, 3, 4, 5)
    assert found.notes == (
        "1 task of a.csv left out, not in the other file: 'x'",
        "1 task of b.csv left out, not in the other file: 'y'",
        "all numbers are of the 2 tasks that both files have",
    )


def test_two_files_of_the_same_runs_are_noted(inputs):
    a, b = eight("a"), eight("b", invalid=1)
    (note,) = inputs(a + b, b + a, min_coverage=0.5, ks="1").notes
    assert note.startswith("both files hold the same runs: every difference is 0; see")
    for other in (
        runs_of("b", *[(1, S), (2, F)] * 4),
        runs_of("b", *[(1, S), (1, F)] * 3, (1, S), (1, S)),
        runs_of("b", *[(1, S), (1, F)] * 5),
    ):
        assert not any("same" in x for x in inputs(a + other, a + b, ks="1").notes)
    alone = inputs(a, a + b, ks="1").notes
    assert alone and not any("same" in x for x in alone)


def test_files_of_the_same_name_are_told_apart_by_path(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        write_csv(tmp_path / name / "r.csv", eight("t"))
    files = [tmp_path / name / "r.csv" for name in "ab"]
    found = read_inputs(PassktSettings(*files))
    assert [agent.label for agent in found.agents] == list(map(str, files))


def test_a_column_cuts_the_tasks_into_parts(inputs):
    rows = [
        *runs_of("a", (1, S), extra="x"),
        *runs_of("b", (1, S), extra="y"),
        *runs_of("c", (1, S), extra="x"),
    ]
    found = inputs(rows, rows[::-1], header=KIND, by="kind")
    assert [name for name, _ in found.parts] == ["x", "y"]
    np.testing.assert_array_equal(found.parts[0][1], [True, False, True])
    np.testing.assert_array_equal(found.parts[1][1], [False, True, False])
    other = [*rows[:2], *runs_of("c", (1, S), extra="y")]
    with pytest.raises(InputError, match="got 'x' and 'y' for task 'c'"):
        inputs(rows, other, header=KIND, by="kind")
    assert inputs(rows, header=KIND).parts[0][0] is None


SEED = (*NESTED, "seed")


def test_seeds_with_questions_of_their_own_are_tasks_as_ever(inputs):
    rows = [*runs_of("a", (1, S), extra=("s0",)), *runs_of("b", (1, F), extra=("s1",))]
    found = inputs(rows, rows[::-1], header=SEED, replicates="seed")
    assert found.tasks == ("a", "b") and found.cluster is None
    assert found.replicate.tolist() == ["s0", "s1"]
    assert inputs(rows, header=SEED).replicate is None


def test_a_task_under_two_seeds_is_two_rows_of_one_cluster(inputs):
    first = [
        *runs_of("a", (1, S), (2, S), extra=(0,)),
        *runs_of("a", (3, F), extra=(1,)),
        *runs_of("b", (4, S), extra=(1,)),
    ]
    # The second agent lacks a under seed 1, and has it under seed 2.
    second = [
        *runs_of("b", (5, F), extra=(1,)),
        *runs_of("a", (6, S), extra=(2,)),
        *runs_of("a", (7, F), extra=(0,)),
    ]
    found = inputs(first, header=SEED, replicates="seed")
    assert found.tasks == ("a (seed 0)", "a (seed 1)", "b")
    assert found.cluster.tolist() == [0, 0, 1]
    assert found.replicate.tolist() == ["0", "1", "1"]
    assert found.agents[0].runs.spent[:, 0].tolist() == [1, 3, 4]
    both = inputs(first, second, header=SEED, replicates="seed")
    assert both.tasks == ("a (seed 0)", "b") and both.cluster is None
    assert both.agents[1].runs.spent.tolist() == [[7], [5]]
    assert [agent.alone for agent in both.agents] == [("a (seed 1)",), ("a (seed 2)",)]
    with pytest.raises(InputError, match="sample '0' is there already, in line 2"):
        inputs(first, header=SEED)
    again = [*first, *runs_of("a", (3, F), extra=(1,))]
    with pytest.raises(InputError, match="apart under each seed"):
        inputs(again, header=SEED, replicates="seed")
    odd = [*first, *runs_of("a (seed 1)", (1, S), extra=(1,))]
    with pytest.raises(
        InputError, match=r"task 'a \(seed 1\)' under seed 1 would have"
    ):
        inputs(odd, header=SEED, replicates="seed")


def test_seeds_and_parts_are_columns_side_by_side(inputs):
    rows = [
        *runs_of("a", (1, S), extra=("x", 0)),
        *runs_of("a", (1, S), extra=("x", 1)),
        *runs_of("b", (1, S), extra=("y", 1)),
    ]
    found = inputs(rows, header=(*KIND, "seed"), by="kind", replicates="seed")
    assert [(name, m.tolist()) for name, m in found.parts] == [
        ("x", [True, True, False]),
        ("y", [False, False, True]),
    ]
    same = inputs(rows, header=(*KIND, "seed"), by="seed", replicates="seed")
    assert [name for name, _ in same.parts] == ["0", "1"]


def rerun(task, *runs):
    return [(task, i, *run) for i, run in enumerate(runs)]


def test_a_column_of_horizons_makes_it_a_rerun(inputs):
    rows = rerun("a", (2, 2, F), (4, 1, S), (8, 8, S))
    found = inputs(rows, header=RERUN)
    assert found.protocol == "rerun" and found.horizons == (2, 4, 8)
    assert found.agents[0].runs.spent.shape == (3, 1, 1)
    some = inputs(rows, header=RERUN, horizons="8,2", protocol="rerun")
    assert some.horizons == (2, 8)
    assert some.agents[0].runs.outcome.tolist() == [[[0]], [[1]]]


def test_reruns_are_compared_at_common_horizons(inputs):
    first, second = rerun("a", (2, 2, F), (4, 1, S)), rerun("a", (4, 4, S), (8, 8, S))
    found = inputs(first, second, header=RERUN)
    assert found.horizons == (4,)
    assert [a.runs.outcome.tolist() for a in found.agents] == [[[[1]]], [[[1]]]]
    assert found.notes == ("T = 2, 8: in one file only, left out",)


@pytest.mark.parametrize(
    ("case", "error", "message"),
    [
        ({"protocol": "rerun"}, ConfigError, "lacks the column horizon"),
        ({"ks": "1,16"}, ConfigError, "at most 8, .* in a.csv, got 16"),
        ({"by": "kind"}, InputError, "expected a column 'kind'"),
        ({"replicates": "seed"}, InputError, "expected a column 'seed'"),
        ({"rows2": eight("z")}, InputError, r"no task is in both .*has 'a'.* has 'z'"),
        (
            {"rows2": rerun("a", (2, 2, F)), "header2": RERUN},
            InputError,
            "two protocols cannot be compared",
        ),
        (
            {"rows": rerun("a", (2, 2, F)), "header": RERUN, "protocol": "nested"},
            ConfigError,
            "has the column horizon",
        ),
        (
            {"rows": rerun("a", (2, 2, F)), "header": RERUN, "horizons": "2,3"},
            ConfigError,
            "values of the column horizon, 2, got 3",
        ),
        (
            {
                "rows": rerun("a", (2, 2, F)),
                "rows2": rerun("a", (3, 3, F)),
                "header": RERUN,
            },
            InputError,
            "no horizon is in both files: a.csv has 2; b.csv has 3",
        ),
        ({"rows": runs_of("a", (None, X))}, InputError, "nothing to estimate"),
        ({"rows": runs_of("a", (1, X))}, InputError, "nothing to estimate"),
    ],
)
def test_what_does_not_fit_is_refused(inputs, case, error, message):
    case = {"rows": eight("a"), **case}
    with pytest.raises(error, match=message):
        inputs(**case)
