import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from jerp.runs.pass_surface.figure_style import (
    apart,
    axis_ticks,
    chosen,
    drawable,
    save_figure,
    shortened,
    style,
)


def test_names_that_would_overlap_are_moved_apart_around_their_mean():
    assert apart([0.5], 0.1) == [0.5]
    assert apart([0.9, 0.1], 0.1) == [0.9, 0.1]
    np.testing.assert_allclose(apart([0.5, 0.52], 0.1), [0.46, 0.56])
    # The third comes too near only once the first two have been moved.
    np.testing.assert_allclose(
        apart([0.5, 0.5, 0.58], 0.1), [0.4267, 0.5267, 0.6267], atol=1e-4
    )


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0.01, 0.3))
def test_moved_names_keep_order_and_distance_and_apart_ones_their_place(places, gap):
    moved = apart(places, gap)
    order = sorted(range(len(places)), key=lambda i: places[i])
    steps = np.diff([moved[i] for i in order])
    assert (steps >= gap - 1e-9).all()
    np.testing.assert_allclose(apart(moved, gap * (1 - 1e-9)), moved, atol=1e-9)
    assert sum(moved) == pytest.approx(sum(places), abs=1e-9)


def test_chosen_places_are_spread_from_the_first_to_the_last():
    assert chosen(3, 6) == [0, 1, 2]
    assert chosen(7, 4) == [0, 2, 4, 6]
    assert chosen(1, 4) == [0]


def test_ticks_are_short_and_few():
    assert axis_ticks([0, 1, 2.5]) == ([0, 1, 2.5], ["0", "1", "2.5"])
    assert axis_ticks([1234567, 2345678.5])[1] == ["1.23e+06", "2.35e+06"]
    assert len(axis_ticks(range(100))[0]) == 7
    assert axis_ticks(range(1, 65), log=True)[0] == [1, 2, 4, 8, 16, 32, 64]


def test_a_long_name_keeps_its_beginning_and_its_end():
    assert shortened("base.csv") == "base.csv"
    assert shortened("a" * 20 + "b" * 20, 11) == "aaaa...bbbb"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("base.csv", "base.csv"),
        ("π", "π"),
        ("$a$", r"\$a\$"),
        ("a\nb\x00", r"a\nb\x00"),
        ("模型", r"\u6a21\u578b"),
        ("\U0001faa8", r"\U0001faa8"),
    ],
)
def test_any_name_can_be_drawn_and_none_is_mathematics(tmp_path, text, shown):
    assert drawable(text) == shown
    figure = Figure(figsize=(1, 1))
    figure.text(0, 0, drawable(text))
    # A character that the font lacks would be a warning, which fails here.
    assert len(save_figure(figure, tmp_path, "x")) == 2


def test_forty_lines_have_marker_and_dashes_of_their_own():
    looks = {(style(i).marker, str(style(i).linestyle)) for i in range(40)}
    assert len(looks) == 40
