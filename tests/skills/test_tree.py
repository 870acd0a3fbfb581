"""The tree of revisions: what may be added, what it answers, how it is drawn."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jerp.errors import InputError, UnknownNameError
from jerp.skills.node import SkillNode, node_from_row, node_row
from jerp.skills.tree import SkillTree, draw_tree
from jerp.typing import Outcome
from tests.reference import skills as reference


def node(id, parent=None, task="put hot", phase=0, skill="# A", **fields):
    return SkillNode(id, parent, task, phase, skill, **fields)


NODES = (
    node(0, outcomes=(1, 0), retained=True, reward=0.5, executor_calls=7),
    node(1, task="look", outcomes=(4, 4)),
    node(2, 0, phase=1, outcomes=(1, 1, 4), reward=0.9, evidence=("0/0", "0/1")),
    node(3, 0, phase=1, skill=None, faults=("order", "secret"), tokens=9, reward=0.1),
    node(4, 0, phase=1, outcomes=(1, 1, 1), reward=0.8, retained=True),
    node(5, 4, phase=2, outcomes=(3, 2, 1), reward=0.3),
    node(6, task="look"),
    node(7, 4, phase=2, outcomes=(1, 1, 1), reward=0.7),
)


@pytest.fixture
def tree():
    return SkillTree(NODES)


def ids(nodes):
    return [node.id for node in nodes]


def test_what_a_tree_answers(tree):
    assert ids(tree.nodes) == [*range(8)] and len(tree) == tree.next_id == 8
    assert tree.tasks == ("put hot", "look")
    assert ids(tree.roots()) == [0, 1, 6] and ids(tree.roots("look")) == [1, 6]
    assert ids(tree.leaves()) == [1, 2, 3, 5, 6, 7]
    assert ids(tree.leaves("put hot")) == [2, 3, 5, 7]
    assert ids(tree.children(0)) == [2, 3, 4] and tree.children(7) == ()
    assert ids(tree.path(5)) == [0, 4, 5] and ids(tree.path(1)) == [1]
    assert [tree.depth(i) for i in (0, 4, 5)] == [0, 1, 2]
    assert ids(tree.of_task("look")) == [1, 6] and tree.of_task(None) == tree.nodes
    assert tree.node(3) is NODES[3]
    assert SkillTree().next_id == 0 and SkillTree().best() is None


def test_outcomes_of_a_node():
    assert (NODES[2].successes, NODES[2].answered, NODES[2].success) == (2, 2, 1.0)
    assert (NODES[1].successes, NODES[1].answered, NODES[1].success) == (0, 0, None)
    assert NODES[5].success == pytest.approx(1 / 3)


def test_the_best_has_runs_enough_and_of_equals_the_more_then_the_older_wins(tree):
    assert tree.best().id == 4, "2 has two runs, 7 as many and is younger"
    assert tree.best("put hot", by="reward").id == 2
    assert tree.best(by="reward", min_runs=3).id == 4
    assert tree.best(min_runs=4) is None and tree.best("look") is None
    with pytest.raises(UnknownNameError, match="did you mean 'reward'"):
        tree.best(by="rewards")
    with pytest.raises(InputError, match="min_runs: expected a whole number >= 1"):
        tree.best(min_runs=0)


def test_the_share_of_a_node_is_the_term_of_the_reward():
    for node in NODES:
        if node.success is not None:
            terms = reference.reward(True, node.outcomes, 1)
            assert node.success == terms[2]


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (node(0), "id: expected a new one, got 0 again"),
        (node(9, 8), "parent: expected a node of the tree, which has 8, got 8"),
        (node(9, 9), "parent: expected a node of the tree"),
        (node(9, 3, phase=2), "parent: expected a node with a skill to revise, got 3"),
        (node(9, 1), "task: expected 'look', that of the parent, got 'put hot'"),
        (node(9, 5, phase=1), "phase: expected 2 of the parent or later, got 1"),
    ],
)
def test_what_cannot_be_added(tree, added, message):
    with pytest.raises(InputError, match=message):
        tree.add(added)
    assert tree.nodes == NODES and ids(tree.children(5)) == []


def test_there_is_no_such_node_or_task(tree):
    for ask in (tree.node, tree.children, tree.path, tree.depth):
        with pytest.raises(InputError, match="id: expected a node of the tree, got 8"):
            ask(8)
    for ask in (tree.roots, tree.leaves, tree.of_task, tree.best):
        with pytest.raises(InputError, match=r"task: expected one of the tree \(put"):
            ask("put cold")
    with pytest.raises(InputError, match="task: expected one of"):
        draw_tree(tree, "put cold")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", -1, "id: expected a whole number >= 0, got -1"),
        ("id", True, "id: expected a whole"),
        ("parent", 1.0, "parent: expected a whole"),
        ("phase", "1", "phase: expected a whole"),
        ("tokens", 2**31, "tokens: expected a whole"),
        ("executor_calls", None, "executor_calls: expected a whole"),
        ("task", "", "task: expected words"),
        ("task", "a\nb", "task: expected one line"),
        ("task", " a", "task: expected words with one blank between them, got ' a'"),
        ("task", "a\x1b[2J", "task: expected one line"),
        ("task", 3, "task: expected a text, got int"),
        ("skill", "", "skill: expected a text or None, got ''"),
        ("skill", 3, "skill: expected a text or None, got 3"),
        ("skill", None, "faults: expected why node 0 has no skill"),
        ("reasoning", None, "reasoning: expected a text, got None"),
        ("faults", "order", "faults: expected a tuple of names, got 'order'"),
        ("faults", ("order",), "faults: expected none of node 0, which has a skill"),
        ("faults", ("",), "faults: expected words"),
        ("outcomes", (5,), "outcomes: expected numbers of outcomes, 0 to 4, got 5"),
        ("outcomes", (-1,), "outcomes: expected a whole"),
        ("outcomes", (True,), "outcomes: expected a whole"),
        ("outcomes", 1, "outcomes: expected a tuple, got 1"),
        ("reward", float("nan"), "reward: expected a finite number of float32"),
        ("reward", 10**400, "reward: expected a finite"),
        ("reward", True, "reward: expected a finite"),
        ("reward", "1", "reward: expected a finite"),
        ("retained", 1, "retained: expected a bool, got 1"),
        ("evidence", ("a", 2), "evidence: expected a text, got int"),
        ("evidence", ("0/1",), "evidence: expected none of node 0, which revises"),
    ],
)
def test_fields_that_cannot_be_meant(field, value, message):
    fields = {"id": 0, "parent": None, "task": "a", "phase": 0, "skill": "# A"}
    with pytest.raises(InputError, match=message):
        SkillNode(**fields | {field: value})


@pytest.mark.parametrize("field", [{"outcomes": (1,)}, {"retained": True}])
def test_what_was_never_run_has_no_runs(field):
    [name] = field
    with pytest.raises(InputError, match=f"{name}: expected none of node 0 without"):
        node(0, skill=None, faults=("empty",), **field)


def test_fields_are_brought_into_one_form():
    found = node(
        np.int32(3),
        np.int64(2),
        outcomes=[np.int32(1), 0],
        reward=np.float32(0.5),
        retained=np.bool_(True),
        evidence=["a"],
    )
    plain = node(3, 2, outcomes=(1, 0), reward=0.5, retained=True, evidence=("a",))
    assert found == plain and json.dumps(node_row(found)) == json.dumps(node_row(plain))
    assert found.outcomes[0] is Outcome.SUCCESS
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.reward = 1.0


def test_rows_by_hand():
    assert node_row(NODES[2]) == {
        "id": 2,
        "parent": 0,
        "task": "put hot",
        "phase": 1,
        "skill": "# A",
        "outcomes": [1, 1, 4],
        "reward": 0.9,
        "evidence": ["0/0", "0/1"],
    }
    lost = {k: v for k, v in node_row(NODES[0]).items() if k != "task"}
    with pytest.raises(InputError, match="task: expected it in a row, got none"):
        node_from_row(lost)
    with pytest.raises(InputError, match="fields of a node, got 'score' too"):
        node_from_row(node_row(NODES[0]) | {"score": 1})
    for wrong in ([], 1, None):
        with pytest.raises(InputError, match="row: expected a mapping"):
            node_from_row(wrong)


REWARDS = st.floats(width=32, allow_nan=False, allow_infinity=False)
NAMES = st.lists(st.sampled_from(["a", "b c", "0/1"]), max_size=2).map(tuple)


@st.composite
def trees(draw):
    tree = SkillTree()
    for id in range(draw(st.integers(0, 8))):
        parents = [n for n in tree.nodes if n.skill is not None]
        parent = draw(st.sampled_from([None, *parents]))
        runs = st.lists(st.integers(0, 4), max_size=3).map(tuple)
        ran = {"skill": draw(st.text(min_size=1)), "outcomes": draw(runs)}
        unread = {"skill": None, "faults": ("order",)}
        tree.add(
            SkillNode(
                id,
                parent and parent.id,
                parent.task if parent else draw(st.sampled_from(["x", "y z"])),
                draw(st.integers(parent.phase if parent else 0, 5)),
                reasoning=draw(st.text()),
                reward=draw(
                    st.none()
                    | st.floats(width=32, allow_nan=False, allow_infinity=False)
                ),
                evidence=draw(NAMES) if parent else (),
                **draw(st.sampled_from([ran, unread])),
            )
        )
    return tree


@given(trees())
def test_any_tree_is_its_rows_and_its_lines(tree):
    rows = json.loads(json.dumps(tree.rows()))
    again = SkillTree.from_rows(rows)
    assert again.nodes == tree.nodes and again.rows() == tree.rows()
    lines = draw_tree(tree).splitlines()
    assert len(lines) == len(tree) + len(tree.tasks)
    for node in tree.nodes:
        assert tree.path(node.id)[0] in tree.roots(node.task)
        depths = [tree.depth(child.id) for child in tree.children(node.id)]
        assert depths == [tree.depth(node.id) + 1] * len(depths)
        [line] = [x for x in lines if f"── {node.id}  " in x]
        assert line.index("──") == 1 + 4 * tree.depth(node.id)


def test_a_drawing_by_hand(tree):
    assert (
        draw_tree(tree)
        == """\
put hot
└── 0  phase 0  1 of 2  reward 0.50  kept
    ├── 2  phase 1  2 of 2, 1 lost  reward 0.90
    ├── 3  phase 1  no skill: order, secret  reward 0.10
    └── 4  phase 1  3 of 3  reward 0.80  kept
        ├── 5  phase 2  1 of 3  reward 0.30
        └── 7  phase 2  3 of 3  reward 0.70
look
├── 1  phase 0  0 of 0, 2 lost
└── 6  phase 0  not run
"""
    )
    assert draw_tree(tree, "look").splitlines()[0] == "look"
    assert draw_tree(SkillTree()) == ""


def test_a_line_goes_on_beside_what_hangs_below():
    tree = SkillTree([node(0), node(1), node(2, 0), node(3, 2)])
    assert [line[:10] for line in draw_tree(tree).splitlines()[1:]] == [
        "├── 0  pha",
        "│   └── 2 ",
        "│       └─",
        "└── 1  pha",
    ]


def test_a_long_chain_is_drawn():
    tree = SkillTree([node(0), *(node(i, i - 1) for i in range(1, 2000))])
    assert draw_tree(tree).count("\n") == 2001 and tree.depth(1999) == 1999
