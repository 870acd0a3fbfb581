from jerp.runs.pass_surface.figure_words import alternative, escaped, figure_lines
from tests.runs.pass_surface.documents import document


def test_words_have_the_numbers_of_the_figure():
    case = document([1, 4], [1, 3], names=("x",), labels=("base", "grpo"))
    part = case["parts"][0]
    assert alternative(case, part, "curves") == (
        "Lines with bands: Pass@(k, T) over k and over T. At k = 4, T = 3: base .04 "
        "(band -.06 to .14), grpo .14 (band .04 to .24) (3 tasks, kind = x)."
    )
    assert "grpo - base -.06 (band -.16 to +.04)" in alternative(
        case, part, "difference"
    )
    assert "base from .01 to .04, grpo from .11 to .14" in alternative(
        case, part, "heatmap"
    )
    assert alternative(case, part, "questions").startswith(
        "Map with a cell a task, which says who solves it at least once at T = 3. grpo "
        "- base: both 2, lost 0, gained 0, neither 1, left out 0 (3 tasks"
    )
    assert [
        line.rpartition("](")[2] for line in figure_lines(case, part, "figures/")
    ] == [
        f"figures/1-x-{kind}.png)"
        for kind in ("curves", "heatmap", "difference", "questions")
    ]


def test_names_are_no_markup():
    assert escaped("a]b\n*c*") == r"a\]b \*c\*"
    case = document([1], [1], labels=("[x](http://y)!<b>",))
    (line, _) = figure_lines(case, case["parts"][0])
    assert r"\[x\](http://y)\!\<b\>" in line
