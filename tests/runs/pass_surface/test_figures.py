import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from jerp.runs.pass_surface.figure_style import save_figure
from jerp.runs.pass_surface.figures import write_figures
from jerp.runs.pass_surface.figures_curves import draw_curves, draw_difference
from jerp.runs.pass_surface.figures_maps import draw_heatmaps
from jerp.runs.pass_surface.figures_questions import (
    KINDS,
    draw_questions,
    question_cells,
)
from tests.runs.pass_surface.documents import crossing, document

PAIR = ("base", "grpo")


def drawn(draw, results):
    """The panels of a figure of the first part, by title."""
    figure = draw(results, results["parts"][0])
    return {axes.get_title(): axes for axes in figure.axes}


def curves(axes):
    """The points of the lines that have markers and dashes, as drawn."""
    lines = [line for line in axes.lines if line.get_linewidth() == 1.4]
    return [np.asarray(line.get_xydata()) for line in lines]


@pytest.mark.parametrize(
    ("case", "names"),
    [
        (document([1, 2], [0, 5]), ["curves", "heatmap"]),
        (document([1], [2], width=None), ["curves", "heatmap"]),
        (
            document([1, 2, 3], [0.1, 1, 100], labels=PAIR, gone=2),
            ["curves", "heatmap", "difference", "questions"],
        ),
        (
            document([1, 2], [1], labels=("a", "b", "c", "d"), correct=[[0]] * 4),
            ["curves", "heatmap", "difference", "questions"],
        ),
        (
            document([1], [1, 2], names=("a/b", "*")),
            [f"{n}-{k}" for n in ("1-a-b", "2") for k in ("curves", "heatmap")],
        ),
    ],
)
def test_every_part_has_its_figures_under_names_of_their_own(tmp_path, case, names):
    paths = write_figures(case, tmp_path)
    assert [p.name for p in paths] == [
        f"{n}.{e}" for n in names for e in ("png", "svg")
    ]
    for png, svg in zip(paths[::2], paths[1::2], strict=True):
        assert png.read_bytes()[:4] == b"\x89PNG"
        assert ElementTree.parse(svg).getroot().tag.endswith("svg")


def test_a_figure_is_the_same_file_each_time_and_needs_no_font(tmp_path):
    case = document([1, 2], [1, 3], labels=PAIR)
    texts = []
    for name in ("a", "b"):
        figure = draw_questions(case, case["parts"][0])
        texts.append(save_figure(figure, tmp_path, name)[1].read_text())
    assert texts[0] == texts[1]
    assert "<text" not in texts[0] and "<dc:date" not in texts[0]
    outside = {
        value
        for element in ElementTree.fromstring(texts[0]).iter()
        for key, value in element.attrib.items()
        if key.endswith("href") and not value.startswith(("#", "data:"))
    }
    assert outside == set()


def test_curves_hold_the_surface_over_k_at_each_t_and_over_t_at_chosen_k():
    ks, horizons = [1, 2, 4, 8, 16], [0, 1, 5]
    case = document(ks, horizons, labels=PAIR)
    panels = drawn(draw_curves, case)
    assert list(panels) == [
        *(f"T = {t} steps" for t in horizons),
        *(f"k = {k}" for k in (1, 2, 8, 16)),
    ]
    for place, line in enumerate(curves(panels["T = 1 steps"])):
        y = [place / 10 + k / 100 + 0.001 for k in ks]
        np.testing.assert_allclose(line, np.stack([ks, y], 1))
    for place, line in enumerate(curves(panels["k = 8"])):
        y = [place / 10 + 0.08 + t / 1000 for t in horizons]
        np.testing.assert_allclose(line, np.stack([horizons, y], 1))
    limits = panels["k = 8"].collections[0].get_paths()[0].get_extents()
    np.testing.assert_allclose([limits.y0, limits.y1], [-0.02, 0.185])
    rings = [x for x in panels["k = 8"].lines if x.get_markersize() == 9]
    np.testing.assert_allclose(
        [x.get_xydata()[0] for x in rings], [[5, 0.085], [5, 0.185]]
    )


def test_more_budgets_than_panels_are_shown_evenly_with_the_first_and_the_last():
    panels = list(drawn(draw_curves, document(range(1, 31), range(20))))
    assert panels[:6] == [f"T = {t} steps" for t in (0, 4, 8, 11, 15, 19)]
    assert panels[6:] == [f"k = {k}" for k in (1, 11, 20, 30)]


@pytest.mark.parametrize(
    ("ks", "horizons", "titles"),
    [
        ([1, 2], [0], ["T = 0 steps"]),
        ([4], [1, 2], ["k = 4"]),
        ([4], [2], ["T = 2 steps"]),
    ],
)
def test_a_budget_with_one_value_is_no_axis(ks, horizons, titles):
    assert list(drawn(draw_curves, document(ks, horizons))) == titles


def test_where_nothing_depends_on_t_one_panel_stands_for_all():
    case = document([1, 2], [0, 5], labels=PAIR)
    part = case["parts"][0]
    bands = [agent["surface"] for agent in part["agents"]]
    for values in (bands[0][name] for name in bands[0]):
        values[:] = [[row[0]] * 2 for row in values]
    assert len(drawn(draw_curves, case)) == 4
    for values in (bands[1][name] for name in bands[1]):
        values[:] = [[row[0]] * 2 for row in values]
    panels = drawn(draw_curves, case)
    assert list(panels) == ["T = 0 to 5 steps, all alike"]
    (axes,) = panels.values()
    np.testing.assert_allclose(curves(axes)[1], [[1, 0.11], [2, 0.12]])


def test_lines_are_told_apart_without_colour():
    labels = [f"agent {i}" for i in range(8)]
    case = document([1, 2], [1], labels=labels, correct=[[0]] * 8)
    (axes,) = drawn(draw_curves, case).values()
    lines = [line for line in axes.lines if line.get_linewidth() == 1.4]
    looks = {(line.get_marker(), str(line._dash_pattern)) for line in lines}
    assert len(looks) == len(lines) == 8
    assert [text.get_text() for text in axes.texts] == labels


def test_a_difference_has_its_second_agents_look_and_only_certain_crossings():
    case = document([1, 2, 4], [1, 3], labels=("base", "sft", "grpo"))
    rows = case["parts"][0]["comparisons"][1]["boundary"]
    rows[0]["crossing_k"] = crossing(2.5, 1.5, 3.5, 0.94)
    rows[1]["crossing_k"] = crossing(3.0, 2.0, 4.0, 0.95)
    panels, surfaces = drawn(draw_difference, case), drawn(draw_curves, case)
    for name in ("T = 1 steps", "T = 3 steps"):
        looks = [
            [line.get_marker() for line in p.lines if line.get_linewidth() == 1.4]
            for p in (panels[name], surfaces[name])
        ]
        assert looks[0] == looks[1][1:]
    crosses = {
        name: [x.get_xydata().tolist() for x in axes.lines if x.get_marker() == "x"]
        for name, axes in panels.items()
    }
    assert crosses["T = 3 steps"] == [[[3.0, 0.0]]] and crosses["T = 1 steps"] == []
    assert panels["T = 3 steps"].get_ylabel() == ""
    assert panels["T = 1 steps"].get_ylabel() == "Pass@(k, T) - that of base"


def test_pairs_with_one_second_agent_are_named_and_drawn_apart():
    case = document([1, 2], [1], labels=("a", "b", "c"), pairs=[(0, 2), (1, 2)])
    (axes,) = drawn(draw_difference, case).values()
    assert [text.get_text() for text in axes.texts] == ["c - a", "c - b"]
    lines = [line for line in axes.lines if line.get_linewidth() == 1.4]
    assert len({line.get_marker() for line in lines}) == 2


def test_what_is_undefined_is_not_drawn():
    case = document([1, 2], [1, 3], labels=PAIR, correct=[[], []], gone=2)
    for agent in case["parts"][0]["agents"]:
        agent["surface"] = dict.fromkeys(("point", "low", "high"), [[None] * 2] * 2)
        agent["saturation_horizon"] = [None] * 2
    panels = drawn(draw_curves, case)
    assert all(
        np.isnan(line[:, 1]).all() for p in panels.values() for line in curves(p)
    )
    assert not any(axes.texts for axes in panels.values())
    texts = [text.get_text() for text in drawn(draw_heatmaps, case)["base"].texts]
    assert texts == ["-"] * 4
    kinds, rates = question_cells(
        case, case["parts"][0], case["parts"][0]["comparisons"][0]
    )
    assert kinds == ["left out"] * 2 and np.isnan(rates).all()


def test_a_heat_map_writes_its_numbers_and_marks_differences_without_colour():
    case = document([1, 2], [0, 100], labels=PAIR)
    panels = drawn(draw_heatmaps, case)
    written = [text.get_text() for text in panels["base"].texts]
    assert written == [".01", ".11", ".02", ".12"]
    # -.09, +.01 / -.08, +.02, all with a band of .1: hatched are those below 0.
    difference = panels["grpo - base"]
    assert [x.get_text() for x in difference.texts] == ["-.09", "+.01", "-.08", "+.02"]
    assert corners(difference) == {(-0.5, -0.5), (-0.5, 0.5)}
    assert difference.collections[0].get_segments() == []
    narrow = document([1, 2], [0, 100], labels=PAIR, width=0.015)
    difference = drawn(draw_heatmaps, narrow)["grpo - base"]
    # All but the cell of +.01, which is below on the right, leave 0 out.
    outline = {tuple(map(tuple, s)) for s in difference.collections[0].get_segments()}
    assert outline == {
        ((-0.5, -0.5), (0.5, -0.5)),
        ((0.5, 0.5), (1.5, 0.5)),
        ((-0.5, 1.5), (0.5, 1.5)),
        ((0.5, 1.5), (1.5, 1.5)),
        ((-0.5, -0.5), (-0.5, 0.5)),
        ((-0.5, 0.5), (-0.5, 1.5)),
        ((0.5, -0.5), (0.5, 0.5)),
        ((1.5, 0.5), (1.5, 1.5)),
    }


def corners(axes):
    """Lower left corners of the cells that are hatched."""
    (patch,) = [patch for patch in axes.patches if patch.get_hatch()]
    return {tuple(line.min(axis=0)) for line in patch.get_path().to_polygons()}


def test_a_large_heat_map_has_a_scale_in_place_of_numbers():
    case = document(range(1, 14), [1, 2])
    figure = draw_heatmaps(case, case["parts"][0])
    assert len(figure.axes) == 2 and not figure.axes[0].texts


CORRECT = ([4, 0, 1, 0, 1, 0, 2], [1, 0, 0, 3, 4, 1, 2])


def test_questions_are_sorted_by_solve_rate():
    case = document([1, 4], [1, 3], labels=PAIR, correct=CORRECT, gone=1)
    part = case["parts"][0]
    kinds, rates = question_cells(case, part, part["comparisons"][0])
    assert kinds == [
        *("both", "both", "both", "lost", "gained", "gained", "neither", "left out")
    ]
    np.testing.assert_array_equal(rates[:-1, 0], [1, 0.5, 0.25, 0.25, 0, 0, 0])
    np.testing.assert_array_equal(rates[:-1, 1], [0.25, 0.5, 1, 0, 0.75, 0.25, 0])
    assert np.isnan(rates[-1]).all()


def test_a_map_of_questions_marks_every_cell():
    case = document([1, 4], [1, 3], labels=PAIR, correct=CORRECT, gone=4)
    (axes,) = draw_questions(case, case["parts"][0]).axes
    marks = {line.get_label(): line for line in axes.lines}
    places = {name: marks[name].get_xdata().tolist() for name in KINDS}
    assert places == {
        "both": [0, 1, 2],
        "lost": [3],
        "gained": [4, 5],
        "neither": [6],
        "left out": [7, 8, 9, 0],
    }
    assert (
        len({(marks[n].get_marker(), marks[n].get_markerfacecolor()) for n in KINDS})
        == 5
    )
    frontier = axes.lines[-1].get_xydata().tolist()
    assert frontier == [[-0.5, 0.5], [3.5, 0.5], [3.5, -0.5], [9.5, -0.5]]
    (image,) = axes.images
    assert image.get_array().shape == (2, 10)
    assert image.get_array().mask.sum() == 9
    counts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert counts[:5] == ["both 3", "lost 1", "gained 2", "neither 1", "left out 4"]


def test_cells_of_each_kind_differ_in_lightness():
    case = document([1, 4], [1, 3], labels=PAIR, correct=[[4, 1, 0, 0] * 600] * 2)
    (axes,) = draw_questions(case, case["parts"][0]).axes
    # So many that marks would be specks: only the frontier is a line.
    assert len(axes.lines) == 1
    (image,) = axes.images
    colours = image.cmap(np.arange(5))[:, :3]
    lightness = sorted(colours @ [0.2126, 0.7152, 0.0722])
    assert np.diff(lightness).min() > 0.1


def test_no_figure_needs_pyplot():
    case = document([1], [1])
    assert type(draw_curves(case, case["parts"][0])) is Figure
