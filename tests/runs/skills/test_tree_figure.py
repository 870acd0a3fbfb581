"""The tree as a figure: what is where, which tasks are chosen, that it is legible."""

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jerp.errors import InputError
from jerp.runs.pass_surface.figure_style import figure_bytes
from jerp.runs.skills.tree_figure import MOST_DRAFTS, draw_skill_tree, shown_words
from jerp.runs.skills.tree_places import MOST_SHOWN, MOST_TASKS, telling_tasks
from jerp.skills.node import SkillNode
from jerp.skills.tree import SkillTree


def node(id, parent, task, phase, *outcomes, **more):
    return SkillNode(id, parent, task, phase, "# A", outcomes=outcomes, **more)


def unread(id, parent, task, phase):
    return SkillNode(id, parent, task, phase, None, faults=("order",))


SMALL = SkillTree(
    [
        node(0, None, "move", 0, 0, 1, retained=True),
        node(1, 0, "move", 1, 1, 1),
        unread(2, 0, "move", 1),
        node(3, 0, "move", 2, 4, 4),
        node(4, 1, "move", 1, 0, 0),
        node(5, None, "send $", 0),
    ]
)
"""0 was revised three times, one of these in its own phase; 3 had no answer."""


def marks(axes, kind):
    """Where the marks of a kind are, and their colours."""
    [found] = [c for c in axes.collections if c.get_label() == kind]
    return np.asarray(found.get_offsets()).tolist(), np.asarray(found.get_facecolors())


def test_every_draft_is_where_its_phase_and_parent_are():
    [axes] = draw_skill_tree(SMALL).axes
    places, colours = marks(axes, "judged")
    # Columns: phase 0, phase 1, what revises a draft of phase 1 in it, phase 2.
    # Rows: the name, then 4 (and 1 left of it), 2 and 3, with 0 halfway.
    assert sorted(places) == [[0, 2], [1, 1], [2, 1]]
    share = {0: 0.5, 1: 1.0, 2: 0.0}
    for (x, _), colour in zip(places, colours, strict=True):
        assert colour == pytest.approx(colormaps["viridis"](share[int(x)]))
    assert marks(axes, "not parsed")[0] == [[1, 2]]
    assert marks(axes, "no verdict")[0] == [[3, 3], [0, 5]]
    assert marks(axes, "kept")[0] == [[0, 2]]
    grey, white = (marks(axes, kind)[1] for kind in ("no verdict", "not parsed"))
    assert (grey[:, 0] < 0.8).all() and (white == 1).all()
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2"]
    assert axes.get_xticks().tolist() == [0, 1, 3]
    names = {text.get_text(): text.xy for text in axes.texts if hasattr(text, "xy")}
    assert {int(name): xy for name, xy in names.items()} == {
        **{0: (0, 2), 1: (1, 1), 2: (1, 2)},
        **{3: (3, 3), 4: (2, 1), 5: (0, 5)},
    }


def test_lines_lead_from_every_parent_to_its_revisions():
    [axes] = draw_skill_tree(SMALL, "move").axes
    [lines] = [c for c in axes.collections if hasattr(c, "get_segments")]
    segments = {tuple(map(tuple, s.tolist())) for s in lines.get_segments()}
    stems = {((0, 2), (0.5, 2)), ((0.5, 1), (0.5, 3))}
    ends = {((0.5, y), (x, y)) for x, y in ((1, 1), (1, 2), (3, 3))}
    own = {((1, 1), (1.5, 1)), ((1.5, 1), (1.5, 1)), ((1.5, 1), (2, 1))}
    assert segments == stems | ends | own


def test_what_is_shown_is_said():
    [axes] = draw_skill_tree(SMALL, "send $").axes
    assert axes.get_title() == "1 of 2 tasks, 1 of 6 drafts"
    assert [t.get_text() for t in axes.texts if t.get_weight() == "bold"] == [
        r"send \$"
    ]
    figure = draw_skill_tree(SMALL)
    assert figure.axes[0].get_title() == shown_words(SMALL, ("move", "send $"))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:3] == ["0%", "50%", "100%"]
    assert labels[3:5] == ["no verdict (2)", "not parsed (1)"]
    assert labels[5].startswith("kept") and labels[5].endswith("(1)")


def bush(task, first, number, changed):
    """A seed that failed and its revisions, of which some succeeded."""
    yield node(first, None, task, 0, 0)
    for i in range(1, number):
        yield node(first + i, first, task, 1, int(i <= changed))


def test_tasks_that_say_most_are_chosen_as_far_as_they_fit():
    sizes = {"a": (30, 1), "b": (40, 9), "c": (MOST_SHOWN + 1, 50), "d": (20, 5)}
    parts = [
        list(bush(task, 100 * i, *size)) for i, (task, size) in enumerate(sizes.items())
    ]
    tree = SkillTree(one for part in parts for one in part)
    assert telling_tasks(tree) == ("b", "d")  # 60 drafts, and no room for a
    assert telling_tasks(SkillTree(parts[2])) == ("c",)
    large = SkillTree(parts[2] + list(bush("e", 400, MOST_SHOWN + 2, 60)))
    assert telling_tasks(large) == ("c",)
    words = [draw_skill_tree(one).axes[0].get_title() for one in (tree, large)]
    assert "most revisions changed" in words[0] and "fewest drafts" in words[1]
    few = SkillTree(node(i, None, f"{i}", 0, *[1] * (i > 2)) for i in range(9))
    assert telling_tasks(few) == tuple("345678"[:MOST_TASKS])  # judged, then first


def test_names_of_a_large_tree_touch_nothing():
    """89 drafts in four phases, half of them kept, with ids of five digits."""
    nodes = [node(10_000, None, "move", 0, 0, 1, retained=True)]
    for phase, parents in ((1, 1), (2, 4), (3, 17)):
        for parent in [n.id for n in nodes[-parents:]]:
            for _ in range(4):
                id = 10_001 + len(nodes)
                kept = {"retained": id % 2 > 0}
                nodes.append(node(id, parent, "move", phase, 0, 1, **kept))
    figure = draw_skill_tree(SkillTree(nodes), "move")
    [axes], canvas = figure.axes, FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    points = np.concatenate(
        [
            axes.transData.transform(np.asarray(c.get_offsets()))
            for c in axes.collections
            if c.get_label() in ("judged", "kept")
        ]
    )
    reach = 5.5 * figure.dpi / 72  # of a ring
    assert len(nodes) == 89 and len(boxes) == 90 and len(points) > 120
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        away = np.maximum(np.maximum(box.min - points, points - box.max), 0)
        assert (np.hypot(*away.T) > 0.9 * reach).all()
        inside = axes.get_window_extent()
        assert box.x0 >= inside.x0 and box.x1 <= inside.x1
    # A mark is not closer to another than their rings allow; it may be its own ring.
    gaps = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    assert gaps[gaps > 0.1].min() > 2 * reach


def test_files_are_the_same_each_time():
    for suffix, head in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        data = [figure_bytes(draw_skill_tree(SMALL), suffix) for _ in range(2)]
        assert data[0] == data[1] and data[0].startswith(head)


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(InputError, match="tree: expected at least one draft to draw"):
        draw_skill_tree(SkillTree())
    with pytest.raises(InputError, match="task: expected one of the tree"):
        draw_skill_tree(SMALL, "trade")
    large = SkillTree(bush("move", 0, MOST_DRAFTS + 1, 0))
    with pytest.raises(InputError, match="at most 500 drafts for a figure, got 501"):
        draw_skill_tree(large)
