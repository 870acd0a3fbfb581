import json
import math
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

from jerp.errors import ConfigError, InputError
from jerp.estimators.bands import simultaneous_band
from jerp.estimators.boundary import unsolved_upper_bound
from jerp.estimators.crossing import crossing_k
from jerp.estimators.marginal import marginal_horizon, marginal_k, saturation_horizon
from jerp.estimators.surface import pass_at_k_t
from jerp.runs.pass_surface import comparison, one_agent, verdicts
from jerp.runs.pass_surface import run as module
from jerp.runs.pass_surface.analysis import analyse
from jerp.runs.pass_surface.inputs import read_inputs
from jerp.runs.pass_surface.report import render
from jerp.runs.pass_surface.run import run
from jerp.runs.pass_surface.settings import PassktSettings
from jerp.storage.documents import read_json
from tests.html_pages import Page
from tests.runs.pass_surface.files import (
    EARLY,
    HALF,
    LOST,
    NEVER,
    OPEN,
    SLOW,
    A,
    B,
    write_csv,
    written,
)

ALL = np.ones(len(A), bool)
RESAMPLES = 50

# Shapes and budgets are the same in most tests, so that little is compiled.


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return written(folder / "a.csv", A), written(folder / "b.csv", B)


def results_of(*files, **settings):
    settings = PassktSettings(*files, **{"resamples": RESAMPLES, **settings})
    return analyse(settings, read_inputs(settings))


@pytest.fixture(scope="module")
def compared(files, tmp_path_factory):
    """The folder that comparing the two files wrote."""
    out = tmp_path_factory.mktemp("out") / "results"
    results, folder = run(PassktSettings(*files, resamples=RESAMPLES, out=out))
    assert folder == out and read_json(out / "results.json") == results
    return out


def same(lists, array):
    np.testing.assert_array_equal(np.array(lists, float), np.asarray(array, float))


def near(lists, array):
    found = np.array(lists, float)
    np.testing.assert_allclose(found, np.asarray(array, float), rtol=1e-5, atol=1e-6)


def test_the_numbers_are_those_of_the_estimators(files, compared):
    results = read_json(compared / "results.json")
    assert (results["ks"], results["horizons"]) == ([1, 2, 4], [1, 3])
    part = results["parts"][0]
    surfaces = []
    part_key = jax.random.fold_in(jax.random.key(0), 0)
    for row, agent in enumerate(read_inputs(PassktSettings(*files)).agents):
        key = jax.random.fold_in(part_key, row)
        surface = pass_at_k_t(
            agent.runs.spent,
            agent.runs.outcome,
            mask=agent.runs.mask,
            ks=(1, 2, 4),
            horizons=(1, 3),
            announced=None,
        )
        surfaces.append(surface.estimate)
        bands = {
            "surface": surface.estimate,
            "marginal_k": marginal_k(surface.estimate, (1, 2, 4)),
        }
        found = part["agents"][row]
        for stream, (name, values) in enumerate(bands.items()):
            band = simultaneous_band(
                jax.random.fold_in(key, stream),
                values,
                mask=ALL,
                num_resamples=RESAMPLES,
            )
            for limit in ("point", "low", "high"):
                near(found[name][limit], getattr(band, limit))
        near(found["bounds"]["low"], np.mean(surface.low, axis=0))
        mean = np.array(found["surface"]["point"])[:, None]
        near(found["marginal_horizon"]["point"], marginal_horizon(mean)[:, 0])
        same(
            found["saturation_horizon"],
            saturation_horizon(mean, (1, 3), tolerance=0.01),
        )
        same(results["agents"][row]["num_correct"], surface.num_correct)
    key = jax.random.fold_in(part_key, 2)
    difference = simultaneous_band(
        jax.random.fold_in(key, 0),
        surfaces[1] - surfaces[0],
        mask=ALL,
        num_resamples=RESAMPLES,
    )
    for limit in ("point", "low", "high"):
        same(part["comparisons"][0]["difference"][limit], getattr(difference, limit))
    crossing = crossing_k(
        jax.random.fold_in(key, 1),
        surfaces[0][:, :, 0],
        surfaces[1][:, :, 0],
        (1, 2, 4),
        mask=ALL,
        num_resamples=RESAMPLES,
    )
    found = part["comparisons"][0]["boundary"][0]["crossing_k"]
    same([found["direction"], found["count"]], [crossing.direction, crossing.count])
    same([found["share"]], [crossing.share])


def test_gains_and_losses_are_those_counted_by_hand(compared):
    results = read_json(compared / "results.json")
    early, late = results["parts"][0]["comparisons"][0]["boundary"]
    counts = ("both", "gains", "losses", "neither")
    assert [late[name] for name in counts] == [2, 5, 1, 2]
    assert late["gained"] == [f"gain{i}" for i in range(5)] and late["lost"] == ["loss"]
    assert late["p_value"] == pytest.approx(14 / 64)  # 2 (C(6, 0) + C(6, 1)) / 2^6
    assert late["p_holm"] == pytest.approx(28 / 64)
    assert [early[name] for name in counts] == [1, 1, 2, 6]
    assert early["gained"] == ["gain4"] and early["lost"] == ["loss", "both1"]
    assert early["p_value"] == early["p_holm"] == 1
    # By T = 3 A solves 1 + 2 x 1/4 of ten tasks with one run, B 6 and a quarter.
    difference = results["parts"][0]["comparisons"][0]["difference"]["point"]
    assert difference[0][1] == pytest.approx((6.25 - 1.5) / 10)
    assert difference[2][1] == pytest.approx((7 - 3) / 10)


@pytest.fixture(scope="module")
def three(files):
    """The settings of two files, and inputs in which the first comes again."""
    settings = PassktSettings(*files, resamples=RESAMPLES)
    inputs = read_inputs(settings)
    again = replace(inputs.agents[0], label="again")
    return settings, replace(inputs, agents=(*inputs.agents, again))


def test_every_later_agent_is_held_against_the_first(three):
    results = analyse(*three)
    labels = [agent["label"] for agent in results["agents"]]
    assert labels == ["a.csv", "b.csv", "again"]
    found = results["parts"][0]["comparisons"]
    assert [(c["first"], c["second"]) for c in found] == [(0, 1), (0, 2)]
    assert [(c["first_label"], c["second_label"]) for c in found] == [
        ("a.csv", "b.csv"),
        ("a.csv", "again"),
    ]
    last = [c["boundary"][1] for c in found]
    assert [(row["gains"], row["losses"]) for row in last] == [(5, 1), (0, 0)]
    assert np.ptp(found[1]["difference"]["point"]) == 0
    assert "Difference, again - a.csv, paired by task" in text_of(results)


def test_pairs_are_compared_as_named(three):
    settings, inputs = three
    (found,) = analyse(settings, replace(inputs, pairs=((1, 2),)))["parts"]
    (backward,) = found["comparisons"]
    assert (backward["first_label"], backward["second_label"]) == ("b.csv", "again")
    row = backward["boundary"][1]
    assert (row["gains"], row["losses"], row["gained"]) == (1, 5, ["loss"])
    assert analyse(settings, replace(inputs, pairs=()))["parts"][0]["comparisons"] == []


def test_unsolved_tasks_come_with_how_well_they_may_still_do(compared):
    agent = read_json(compared / "results.json")["parts"][0]["agents"][1]
    assert agent["unsolved"]["num_tasks"] == [8, 3]
    bound = 1 - 0.05 ** (1 / 4)
    assert agent["unsolved"]["bound"] == pytest.approx([bound, bound])
    assert bound == pytest.approx(float(unsolved_upper_bound(4)))


def test_curves_that_cross_say_where(tmp_path):
    # At T = 3 and k = 1 A has 1/2 and B 1/4, at k = 4 A has 1/2 and B all.
    a = written(tmp_path / "a.csv", {f"t{i}": (SLOW, OPEN)[i % 2] for i in range(10)})
    b = written(tmp_path / "b.csv", {f"t{i}": HALF for i in range(10)})
    row = results_of(a, b)["parts"][0]["comparisons"][0]["boundary"][1]
    found = row["crossing_k"]
    # The differences are -1/4, 0, 1/2 at k = 1, 2, 4.
    assert found["point"] == pytest.approx(2) and found["direction"] == 1
    assert found["low"] <= 2 <= found["high"] and 0.5 < found["share"] <= 1


@pytest.mark.parametrize(("name", "value"), [("level", 0.5), ("seed", 1)])
def test_what_decides_a_band_changes_it(files, compared, name, value):
    before = read_json(compared / "results.json")["parts"][0]
    results = results_of(*files, **{name: value})
    after = results["parts"][0]
    assert results["settings"][name] == value
    for old, new in (
        (before["agents"][0]["surface"], after["agents"][0]["surface"]),
        (before["comparisons"][0]["difference"], after["comparisons"][0]["difference"]),
    ):
        assert old["point"] == new["point"] and old["low"] != new["low"]


def test_every_interval_has_the_resamples_asked_for(files, monkeypatch):
    asked = []

    def counted(real):
        def call(*args, num_resamples, **keywords):
            asked.append(num_resamples)
            return real(*args, num_resamples=RESAMPLES, **keywords)

        return call

    for where, name in (
        (one_agent, "simultaneous_band"),
        (comparison, "simultaneous_band"),
        (comparison, "crossing_k"),
        (verdicts, "paired_difference"),
    ):
        monkeypatch.setattr(where, name, counted(getattr(where, name)))
    results = results_of(*files, resamples=51)
    assert asked == [51] * 10 and results["settings"]["resamples"] == 51


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        ({"announced": "yes"}, "announced", True),
        ({"announced": "no"}, "announced", False),
        ({}, "announced", None),
        ({"unit": "tokens"}, "unit", "tokens"),
        ({"min_coverage": 0.5}, "min_coverage", 0.5),
    ],
)
def test_what_is_recorded_is_in_results_and_caption(files, setting, name, value):
    results = results_of(files[0], **setting)
    assert results["settings"][name] == value
    words = {
        True: "T in steps, announced;",
        False: "not announced;",
        None: "announced: unknown;",
        "tokens": "T in tokens,",
        0.5: "coverage of at least 0.5 at every T",
    }
    assert words[value] in text_of(results)


def test_tasks_that_the_infrastructure_took_are_left_out_by_name(tmp_path):
    runs = {**A, "both0": (EARLY, EARLY, EARLY, LOST)}
    path = written(tmp_path / "a.csv", runs)
    results = results_of(path)
    (part,) = results["parts"]
    assert (part["num_tasks"], part["num_kept"]) == (10, 9)
    assert part["agents"][0]["left_out"] == {"coverage": ["both0"], "samples": []}
    assert 6 not in part["tasks"] and part["agents"][0]["bounds"]["num_tasks"] == 10
    notes = "\n".join(results["notes"])
    assert (
        "a.csv: 1 of 10 tasks left out for a coverage under 0.9 (--min-coverage): "
        "'both0'"
    ) in notes
    kept = results_of(path, min_coverage=0.75)
    assert kept["parts"][0]["num_kept"] == 10 and kept["ks"] == [1, 2, 3]


def test_bounds_are_noted_where_they_differ_from_the_estimate(tmp_path):
    path = written(tmp_path / "a.csv", {**A, "both1": (EARLY, NEVER, NEVER, LOST)})
    results = results_of(path, min_coverage=0.5)
    agent = results["parts"][0]["agents"][0]
    # The task passes with one run of three; of four, one or two may have succeeded.
    for j in range(2):
        solved = 1 + 1 / 4
        assert agent["surface"]["point"][0][j] == pytest.approx((solved + 1 / 3) / 10)
        assert agent["bounds"]["low"][0][j] == pytest.approx((solved + 1 / 4) / 10)
        assert agent["bounds"]["high"][0][j] == pytest.approx((solved + 2 / 4) / 10)
    # pass@2 of one in four is 1/2, of two in four 5/6: the widest pair.
    assert agent["coverage"] == [39 / 40] * 2 and agent["num_infrastructure"] == [1, 1]
    note = "leave Pass@(2, 1 steps) between 0.200 and 0.233; the estimate is 0.217"
    assert note in results["notes"][-1]


def test_tasks_with_too_few_samples_for_a_chosen_k_are_left_out(tmp_path):
    path = written(tmp_path / "a.csv", {**A, "loss": (EARLY, NEVER)})
    results = results_of(path, ks="1,2,4")
    assert results["parts"][0]["agents"][0]["left_out"]["samples"] == ["loss"]
    assert results["parts"][0]["agents"][0]["samples"] == {"least": 2, "most": 4}
    assert "fewer than 4 valid samples: 'loss'" in results["notes"][-1]


def test_a_column_gives_parts_that_share_their_settings(tmp_path, files):
    def kind(task):
        return "ends in 0 | 1" if task[-1] in "01" else "others"

    paths = [
        written(tmp_path / f"{name}.csv", runs, kind)
        for name, runs in (("a", A), ("b", B))
    ]
    settings = PassktSettings(
        *paths, by="kind", resamples=RESAMPLES, out=tmp_path / "o"
    )
    results, folder = run(settings)
    assert [(p["name"], p["num_kept"]) for p in results["parts"]] == [
        ("ends in 0 | 1", 6),
        ("others", 4),
    ]
    counts = [p["comparisons"][0]["boundary"][1] for p in results["parts"]]
    assert [(c["gains"], c["losses"]) for c in counts] == [(2, 0), (3, 1)]
    whole = results_of(*files)["parts"][0]["agents"][0]["surface"]["point"][0][0]
    means = [p["agents"][0]["surface"]["point"][0][0] for p in results["parts"]]
    assert (6 * means[0] + 4 * means[1]) / 10 == pytest.approx(whole)
    report = (folder / "report.md").read_text()
    assert "## kind = others" in report
    assert all((folder / name).stat().st_size > 0 for name in results["figures"])
    pictures = [name for name in results["figures"] if name.endswith(".png")]
    assert all(f"]({name})" in report for name in pictures) and len(pictures) == 8
    assert pictures[0] == "1-ends-in-0-1-curves.png"


def test_one_task_one_k_and_one_horizon_have_a_point_without_limits(tmp_path):
    path = written(tmp_path / "one.csv", {"t": (EARLY, NEVER)})
    settings = PassktSettings(path, ks="1", horizons="2", out=tmp_path / "out")
    results, folder = run(settings)
    agent = results["parts"][0]["agents"][0]
    assert agent["surface"] == {"point": [[0.5]], "low": [[None]], "high": [[None]]}
    assert agent["marginal_horizon"]["point"] == [[]]
    assert agent["marginal_k"] == {"ks": [], "point": [], "low": [], "high": []}
    assert "| 1 | .50 |" in (folder / "report.md").read_text()


def test_one_k_has_no_crossing(files, without_bands):
    results = results_of(files[0], files[0], ks="4")
    rows = results["parts"][0]["comparisons"][0]["boundary"]
    assert [row["crossing_k"] for row in rows] == [None, None]
    labels = [agent["label"] for agent in results["agents"]]
    assert labels == [f"{files[0]} (1)", f"{files[0]} (2)"]


def test_a_part_without_a_task_left_is_undefined_and_none_at_all_is_refused(tmp_path):
    broken = (EARLY, EARLY, NEVER, LOST)
    path = written(tmp_path / "a.csv", {**A, "gain0": broken}, str)
    results = results_of(path, by="kind")
    gone = results["parts"][0]
    assert [part["num_kept"] for part in results["parts"]] == [0] + [1] * 9
    assert gone["agents"][0]["surface"]["point"] == [[None] * 2] * 3
    assert gone["agents"][0]["saturation_horizon"] == [None] * 3
    assert gone["agents"][0]["bounds"]["num_tasks"] == 1
    cells = [line.split() for line in text_of(results).splitlines()]
    assert ["1", "-", "-"] in cells
    path = written(tmp_path / "b.csv", dict.fromkeys(A, broken))
    with pytest.raises(InputError, match=r"no task is left .*-coverage\): 'gain0'"):
        results_of(path, ks="1,2,4")


def test_reruns_are_estimated_by_their_own_protocol(tmp_path):
    rows = [
        (task, i, horizon, horizon, outcome)
        for task in range(10)
        for horizon, outcomes in ((1, [1, 1, 0, 0]), (3, [0, 0, 0, 1]))
        for i, outcome in enumerate(outcomes)
    ]
    header = ("task", "sample", "horizon", "spent", "outcome")
    results = results_of(write_csv(tmp_path / "r.csv", rows, header))
    assert results["settings"]["protocol"] == "rerun"
    found = results["parts"][0]["agents"][0]["surface"]["point"]
    np.testing.assert_allclose(found, [[0.5, 0.25], [5 / 6, 0.5], [1, 1]], rtol=1e-6)


def test_results_are_json_without_nan(compared):
    text = (compared / "results.json").read_text()

    def refuse(word):
        raise AssertionError(word)

    document = json.loads(text, parse_constant=refuse)
    assert document["format"] == "jerp passkt" and document["version"] == 2
    numbers = document["parts"][0]["agents"][0]["surface"]["low"]
    assert all(math.isfinite(x) for row in numbers for x in row)


def keys_of(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def test_every_field_of_the_results_is_documented(compared):
    page = (Path(__file__).parents[3] / "docs" / "passkt.md").read_text()
    keys = set(keys_of(read_json(compared / "results.json")))
    assert len(keys) > 50
    assert sorted(key for key in keys if f"`{key}`" not in page) == []


def text_of(results):
    console = Console(width=2000, highlight=False)
    with console.capture() as capture:
        console.print(render(results))
    return capture.get()


def test_tables_say_what_they_rest_on(files, compared):
    results = read_json(compared / "results.json")
    report = (compared / "report.md").read_text()
    under = (
        "10 of 10 tasks x 4 samples; protocol nested, T in steps, announced: unknown; "
        "tasks with a coverage of at least 0.9 at every T; 95% simultaneous bands, "
        "50 resamples of tasks, seed 0."
    )
    made = f"Made by `jerp passkt {files[0]} {files[1]} --resamples 50 --out"
    assert report.count(under) == report.count("\n### ") == 10
    assert report.count(made) == 11, "the verdicts' table as well"
    assert text_of(results).count(under) == 1
    row = "| 3 | 2 | 5 | 1 | 2 | .219 | .438 |"
    assert row in report and ".219" in text_of(results)
    for kind in ("curves", "heatmap", "difference", "questions"):
        assert f"]({kind}.png)" in report and (compared / f"{kind}.png").exists()


def test_the_page_is_whole_in_itself(compared):
    text = (compared / "report.html").read_text()
    page = Page(text)
    assert page.references and all(
        value.startswith(("data:image/png;base64,", "text-align:"))
        for value in page.references
    )
    assert not page.tags & {"script", "link", "iframe", "object", "svg"}
    assert "@import" not in text and "url(" not in text


def test_every_picture_has_words_and_every_table_a_header(compared):
    page = Page((compared / "report.html").read_text())
    assert len(page.pictures) == 4
    assert any("lost 1, gained 5, neither 2" in words for words in page.pictures)
    assert len(page.tables) == 11
    for header, *rows in page.tables:
        assert set(header) == {"th"} and rows
        assert {len(row) for row in rows} == {len(header)}


def test_results_of_the_same_files_are_replaced_whole(files, compared, monkeypatch):
    monkeypatch.setattr(module, "write_figures", lambda results, folder: [])
    monkeypatch.setattr(module, "write_report", lambda results, folder: None)
    settings = PassktSettings(files[0], resamples=RESAMPLES, seed=1, out=compared)
    with pytest.raises(ConfigError, match=r"holds the results of .*b\.csv; name anoth"):
        run(settings)
    run(replace(settings, file2=files[1]))
    assert read_json(compared / "results.json")["settings"]["seed"] == 1
    assert [path.name for path in compared.iterdir()] == ["results.json"]


def test_a_folder_that_cannot_be_looked_at_is_refused(files, tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(tmp_path), "iterdir", refuse)
    with pytest.raises(ConfigError, match=r"^--out: .*looked at \(Permission denied\)"):
        run(PassktSettings(*files, out=tmp_path))


def test_a_folder_with_anything_else_is_refused_before_reading(tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    settings = PassktSettings(tmp_path / "missing.csv", out=out)
    with pytest.raises(ConfigError, match=r"holds 'notes.txt', which jerp passkt did"):
        run(settings)
    (out / "results.json").write_text('{"format": "another"}')
    with pytest.raises(ConfigError, match=r"holds 'notes.txt'"):
        run(settings)
    (out / "notes.txt").unlink()
    with pytest.raises(ConfigError, match=r"holds 'results.json', which jerp passkt"):
        run(settings)
    with pytest.raises(ConfigError, match=r"results\.json is a file; name"):
        run(replace(settings, out=out / "results.json"))
    monkeypatch.chdir(out)
    with pytest.raises(ConfigError, match="is, or holds, the current folder"):
        run(settings)
    assert (out / "results.json").read_text() == '{"format": "another"}'
