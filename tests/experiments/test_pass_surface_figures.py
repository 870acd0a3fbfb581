import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments.pass_surface.config import ARMS
from experiments.pass_surface.dot_plots import Series, dot_plot
from experiments.pass_surface.figures import (
    LEAD,
    VARIANTS,
    study_lines,
    variant_lines,
    write_figures,
)
from experiments.pass_surface.mechanism_figure import draw_mechanism, mechanism_words
from experiments.pass_surface.study_panels import (
    draw_budgets,
    draw_costs,
    draw_forgetting,
)
from experiments.pass_surface.verdict_figure import (
    draw_verdicts,
    verdict_figure_words,
)
from tests.runs.pass_surface.documents import document

LABELS = ("base", "SFT", "GRPO")


def around(point, width=0.1):
    return {"point": point, "low": point - width, "high": point + width}


def mechanism():
    """Numbers of the two arms that nothing else has, in one category."""
    arms = {}
    for i, arm in enumerate(("base", "sft", "grpo")):
        names = (
            *("distinct", "distinct_base", "known", "known_ceiling", "common"),
            *("common_ceiling", "swap_neither", "swap_search", "swap_answer"),
            "swap_both",
        )
        arms[arm] = {name: around(i + j / 100) for j, name in enumerate(names)}
        arms[arm]["perplexity"] = {"query": around(2 + i), "answer": around(3.5 + i)}
    return {"C": arms}


def cost():
    curve = {"tokens_base": 10.0, "base_pass": [0.1, 0.3, 0.5]}
    return {
        "ks": [1, 2, 4],
        "categories": {
            "C": {
                "sft": {
                    **curve,
                    "tokens_arm": 20.0,
                    "arm_pass": [0.3, 0.4, 0.6],
                    "reached": True,
                    "samples": around(2.0),
                },
                "grpo": {
                    **curve,
                    "tokens_arm": 30.0,
                    "arm_pass": [0.7, 0.7, 0.8],
                    "reached": False,
                    "samples": around(4.0),
                },
            }
        },
    }


def forgetting():
    arm = {"success": around(0.5), "difference": around(-0.2)}
    single = {"point": -0.2, "low": None, "high": None}
    return {
        "tools": {"base": {"success": around(0.7)}, "sft": {**arm, "seeds": single}}
    }


def results(**more):
    variants = {
        v: document([1, 4], [0, 5], names=("C",), labels=LABELS) for v in VARIANTS
    }
    return {"variants": variants, **more}


def points(axes, marker, filled):
    """Where the marks of a shape are, across and in whole rows."""
    found = [
        line.get_xydata()
        for line in axes.lines
        if line.get_marker() == marker
        and (line.get_markerfacecolor() != "white") == filled
    ]
    return [(x, round(y)) for line in found for x, y in line if np.isfinite(x)]


def test_a_row_has_its_points_with_intervals_and_nothing_where_there_is_none():
    axes = Figure().subplots()
    first = [around(1.0), None]
    dot_plot(
        axes,
        ["a", "b$"],
        [
            Series("x", "o", True, first),
            Series("y", "s", False, [around(2.0), around(3.0)]),
        ],
    )
    assert points(axes, "o", True) == [(1.0, 0)]
    assert points(axes, "s", False) == [(2.0, 0), (3.0, 1)]
    spans = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert [0.9, 1.1] in [list(span) for span in spans]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["a", r"b\$"]
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["x", "y"]


def test_mechanism_holds_each_arms_numbers_and_not_the_base_beside_itself():
    tokens, sequences, overlap, swap = draw_mechanism(mechanism(), ARMS).axes
    rows = [text.get_text() for text in tokens.get_yticklabels()]
    assert rows == ["C, base", "C, SFT", "C, GRPO"]
    assert points(tokens, "o", True) == [(2.0, 0), (3.0, 1), (4.0, 2)]
    assert points(tokens, "s", False) == [(3.5, 0), (4.5, 1), (5.5, 2)]
    assert points(sequences, "o", True) == [(0.0, 0), (1.0, 1), (2.0, 2)]
    assert points(sequences, "o", False) == [(1.01, 1), (2.01, 2)]
    assert points(overlap, "s", False) == [(1.05, 1), (2.05, 2)]
    assert points(swap, "<", False) == [(1.07, 1), (2.07, 2)]
    assert points(swap, "o", True) == [(1.09, 1), (2.09, 2)]
    words = mechanism_words(mechanism(), ARMS)
    assert "C, SFT: perplexity of query tokens 3.00, of answer tokens 4.50" in words
    assert (
        "base: perplexity of query tokens 2.00, of answer tokens 3.50; .0 uni" in words
    )


def test_verdicts_show_counts_intervals_and_what_they_come_to():
    found = results()["variants"][LEAD]
    verdict = found["parts"][0]["comparisons"][1]["verdict"]
    verdict["seeds"] = around(-0.3)
    verdict["verdict"] = "more efficient, boundary not shown to move"
    counts, limits = draw_verdicts(found).axes
    assert [bar.get_width() for bar in counts.patches] == [0, 0, 4, 5]
    written = [text.get_text() for text in counts.texts]
    assert written == ["", "", "4", "5"]
    rows = [text.get_text() for text in counts.get_yticklabels()]
    assert rows == ["C, SFT against base", "C, GRPO against base"]
    np.testing.assert_allclose(points(limits, "o", True), [(-0.055, 0), (0.045, 1)])
    assert points(limits, "D", False) == [(-0.3, 1)]
    assert points(limits, "^", True) == [(0.2, 0), (0.2, 1)]
    assert [text.get_text() for text in limits.texts] == [
        "not enough samples",
        "more efficient,\nboundary not shown to move",
    ]
    assert "C, SFT against base: not enough samples: about 90" in verdict_figure_words(
        found
    )


def test_budgets_are_compared_by_arm_at_the_smallest_and_largest_k():
    variants = results()["variants"]
    figure = draw_budgets(variants, VARIANTS)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"C, {arm}, k = {k}" for k in (1, 4) for arm in LABELS]
    lines = figure.axes[5].lines
    assert len(lines) == len(VARIANTS) == len({line.get_marker() for line in lines})
    for line in lines:
        np.testing.assert_allclose(line.get_ydata(), [0.24, 0.245])


def test_costs_show_where_the_base_solves_as_much():
    (axes,) = draw_costs(cost(), ARMS).axes
    curves = [line for line in axes.lines if len(line.get_xdata()) == 3]
    assert [list(line.get_xdata()) for line in curves] == [
        [10, 20, 40],
        [20, 40, 80],
        [30, 60, 120],
    ]
    ends = {line.get_marker(): line.get_xydata()[0].tolist() for line in axes.lines}
    assert ends["|"] == [20.0, 0.3] and ends[">"] == [40.0, 0.7]


def test_an_arm_that_solves_less_than_the_base_has_no_bar():
    found = cost()
    for numbers in found["categories"]["C"].values():
        numbers["samples"] = {"point": None, "low": None, "high": None}
    (axes,) = draw_costs(found, ARMS).axes
    assert [len(line.get_xdata()) for line in axes.lines] == [3, 3, 3]


def test_forgetting_has_no_difference_of_the_base_and_no_limits_of_one_seed():
    success, difference = draw_forgetting(forgetting(), ARMS).axes
    assert points(success, "o", True) == [(0.7, 0), (0.5, 1)]
    assert points(difference, "o", True) == [(-0.2, 1)]
    assert points(difference, "D", False) == [(-0.2, 1)]


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({}, ["verdicts", "budgets", "evidence"]),
        (
            {"mechanism": mechanism(), "cost": cost(), "forgetting": forgetting()},
            [
                *("verdicts", "budgets", "evidence"),
                *("mechanism", "cost", "forgetting"),
            ],
        ),
    ],
)
def test_what_the_results_have_is_shown_and_said(more, names):
    lines = study_lines(results(**more))
    assert list(lines) == names
    for name, line in lines.items():
        assert line.startswith("![") and line.endswith(f"](figures/{name}.png)")
        assert line.count("](") == 1


def test_every_figure_that_is_shown_is_written(tmp_path):
    found = results(cost=cost())
    names = {path.name for path in write_figures(found, tmp_path)}
    part = found["variants"][LEAD]["parts"][0]
    shown = [*variant_lines(found, part), *study_lines(found).values()]
    assert len(shown) == 8
    for line in shown:
        name = line.rpartition("](figures/")[2].removesuffix(".png)")
        assert {f"{name}.png", f"{name}.svg"} <= names
    assert "C, GRPO: one run of 30.0 tokens solves .70, more than 4 runs" in shown[-1]


def test_questions_without_look_ups_are_no_part_of_what_t_does():
    variants = {v: document([1], [0, 5], names=("A",), labels=LABELS) for v in VARIANTS}
    assert list(study_lines({"variants": variants})) == ["verdicts"]
