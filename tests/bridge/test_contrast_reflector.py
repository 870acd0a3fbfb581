"""Rules that no model writes: what is said, what is not, and what becomes of others."""

from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from jerp.bridge.contrast_reflector import ContrastReflector
from jerp.bridge.misled import Misled
from jerp.bridge.reflection import Occasion, Operation, Reflection, ShownRule, Trial
from jerp.envs.house import house_small
from jerp.envs.house_rules import TASK_TYPES, HouseRules
from jerp.envs.house_things import HouseTask
from jerp.envs.rule_language import Situated, read_sentence
from jerp.errors import ConfigError
from jerp.rollout.demonstrations import demonstrations
from jerp.rules.edits import EditOp
from jerp.runs.policy.description import described
from jerp.typing import Outcome
from tests.bridge.trials import (
    BURNS,
    COLD,
    FAILED,
    HOT,
    LIGHT,
    LOOK,
    LOST,
    SERVE,
    WAIT,
    WON,
    Kitchen,
    occasion,
    trial,
)
from tests.envs.homes import some_tasks

RIGHT = "When the pot is cold, light the stove."
WRONG = "When the pot is cold, wait."
ALONE = ContrastReflector(Kitchen(), min_tasks=1)

LIT = trial(WON, (COLD, WAIT), (COLD, LIGHT), (HOT, SERVE))
WAITED = trial(LOST, (COLD, WAIT), (COLD, WAIT))
MIXED = (LIT, LIT, LIT, WAITED, WAITED, WAITED)


def reflect(*trials, reflector=ALONE, **others):
    [found] = reflector.reflect([occasion(*trials, **others)])
    return found


def test_what_successes_do_and_failures_do_not_becomes_a_rule():
    found = reflect(*MIXED)
    assert found == Reflection((Operation(EditOp.ADD, (), RIGHT),))
    assert reflect(*MIXED) == found


@pytest.mark.parametrize(
    ("trials", "status", "counts"),
    [
        ((), "skipped", {}),
        ((trial(FAILED, (COLD, WAIT)),) * 4, "infrastructure", {"infrastructure": 1}),
        ((WAITED,) * 8, "ok", {}),
        ((LIT,) * 8, "ok", {}),
    ],
)
def test_nothing_to_learn_from(trials, status, counts):
    assert reflect(*trials, references=(), rules=[WRONG]) == Reflection(
        (), counts, status
    )


def test_a_failed_executor_is_neither_success_nor_failure():
    failed = trial(FAILED, (COLD, WAIT))
    assert reflect(*[LIT] * 3, *[failed] * 5).operations == ()
    assert reflect(*MIXED, *[failed] * 5) == reflect(*MIXED)


def test_where_successes_disagree_nothing_is_said():
    """In each instance what is wanted was found in one place, but not in the same."""
    found, missed = trial(WON, (COLD, LIGHT)), trial(LOST, (COLD, WAIT))
    group = *[found] * 3, *[missed] * 5
    same = (trial(WON, (COLD, LIGHT), task="b"), trial(WON, (COLD, LIGHT), task="c"))
    other = (trial(WON, (COLD, LOOK), task="b"), trial(WON, (COLD, SERVE), task="c"))
    reflector = ContrastReflector(Kitchen())
    assert reflect(*group, references=same, reflector=reflector).operations
    assert not reflect(*group, references=other, reflector=reflector).operations
    # One instance alone may be where something lay that day.
    assert not reflect(*group, reflector=reflector).operations


def test_a_group_alone_brings_no_rule_where_several_instances_have_to_agree():
    for tasks, needs in ((1, False), (2, True)):
        reflector = ContrastReflector(Kitchen(), min_tasks=tasks)
        assert reflector.needs_references == needs
        assert (not reflect(*MIXED, reflector=reflector).operations) == needs


def test_earlier_successes_teach_a_group_that_only_failed():
    earlier = tuple(trial(WON, (COLD, LIGHT), task=name) for name in "bcd")
    found = reflect(*[WAITED] * 4, references=earlier, rules=[WRONG])
    assert found.operations == (Operation(EditOp.EDIT, (5,), RIGHT),)


@pytest.mark.parametrize(
    ("rules", "operations"),
    [
        ([RIGHT], [(EditOp.UPVOTE, (5,), "")]),
        ([WRONG], [(EditOp.EDIT, (5,), RIGHT)]),
        ([WRONG, RIGHT], [(EditOp.DOWNVOTE, (5,), ""), (EditOp.UPVOTE, (6,), "")]),
        (["Be quick."], [(EditOp.ADD, (), RIGHT)]),
        (["When the pot is hot, serve."], [(EditOp.ADD, (), RIGHT)]),
        (
            [RIGHT.upper(), " ".join(RIGHT.split()).rstrip(".")],
            [(EditOp.MERGE, (5, 6), RIGHT)],
        ),
    ],
)
def test_what_becomes_of_rules(rules, operations):
    found = reflect(*MIXED, rules=rules).operations
    assert [(o.op, o.targets, o.text) for o in found] == operations


def test_a_rule_that_failures_follow_loses_a_vote():
    """Though successes do not agree on what to do instead."""
    won = [trial(WON, (COLD, move)) for move in (LIGHT, LOOK, SERVE)]
    found = reflect(*won, *[WAITED] * 3, rules=[WRONG, "When it burns, wait."])
    assert found.operations == (Operation(EditOp.DOWNVOTE, (5,)),)


def test_what_holds_in_one_instance_alone_votes_no_other_rule_down():
    lit, looked = trial(WON, (COLD, LIGHT)), trial(LOST, (COLD, LOOK))
    group, reflector = (*[lit] * 3, *[looked] * 3), ContrastReflector(Kitchen())
    assert not reflect(*group, rules=[WRONG], reflector=reflector).operations
    votes = reflect(*group, rules=[RIGHT], reflector=reflector).operations
    assert votes == (Operation(EditOp.UPVOTE, (5,)),)


def many():
    """Three situations, each with a right move and a wrong one."""
    right = ((COLD, LIGHT), (HOT, SERVE), (BURNS, LOOK))
    wrong = tuple((situation, WAIT) for situation, _ in right)
    return *[trial(WON, *right)] * 3, *[trial(LOST, *wrong)] * 3


def test_at_most_so_many_operations_and_room_before_what_is_new():
    rules = [WRONG, RIGHT]
    found = reflect(*many(), rules=rules)
    assert [o.op.name for o in found.operations].count("ADD") == 2
    full = reflect(*many(), rules=rules, full=True)
    assert [o.op.name for o in full.operations] == ["DOWNVOTE", "UPVOTE", "ADD", "ADD"]
    fewer = ContrastReflector(Kitchen(), min_tasks=1, max_operations=1)
    cut = reflect(*many(), rules=rules, full=True, reflector=fewer)
    assert cut.operations == full.operations[:1]
    assert cut.rejected == {"too_many": 3}


@pytest.mark.parametrize(
    "changes",
    [
        {"min_support": 4.0},
        {"min_share": 0.8},
        {"min_margin": 0.8},
        {"min_z": 2.5},
        {"min_tasks": 2},
    ],
)
def test_each_bound_can_keep_a_rule_from_being_written(changes):
    lit = trial(WON, (COLD, LIGHT))
    waited = trial(WON, (COLD, WAIT))
    group = (lit, lit, lit, waited, *[WAITED] * 5)
    assert reflect(*group).operations[0].text == RIGHT
    reflector = ContrastReflector(Kitchen(), **{"min_tasks": 1} | changes)
    assert reflect(*group, reflector=reflector).operations == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"min_share": 0.5}, "min_share: expected in"),
        ({"min_margin": 0.0}, "min_margin: expected in"),
        ({"min_tasks": 0}, "min_tasks"),
        ({"max_operations": 0}, "max_operations"),
    ],
)
def test_settings_that_mean_nothing(changes, message):
    with pytest.raises(ValueError, match=message):
        ContrastReflector(Kitchen(), **changes)


def adds(reflector, names):
    """The text of a rule that is added, after groups of these names."""
    groups = [
        occasion(*(replace(t, episode=name) for t in MIXED)) for name in map(str, names)
    ]
    before = reflector.num_misled
    found = reflector.reflect(groups)
    # It is no fault of a reflection.
    assert not any(r.rejected for r in found)
    return [r.operations[0].text for r in found], reflector.num_misled - before


def test_a_share_of_what_is_added_is_plausible_but_wrong():
    misled = Misled(ALONE, Kitchen(), share=0.25, seed=1)
    texts, count = adds(misled, range(200))
    assert misled.name == "contrast, 25% misled"
    assert {*texts} == {RIGHT, WRONG}
    assert texts.count(WRONG) == count and 30 <= count <= 70
    assert adds(misled, range(100, 200))[0] == texts[100:]
    fresh = Misled(ALONE, Kitchen(), share=0.25, seed=1)
    assert described("reflector", fresh) == described("reflector", misled)
    assert adds(Misled(ALONE, Kitchen(), share=0.25, seed=2), range(200))[0] != texts
    assert adds(Misled(ALONE, Kitchen(), share=0.0), range(50)) == ([RIGHT] * 50, 0)


def test_only_what_is_added_misleads():
    always = Misled(ALONE, Kitchen(), share=1.0)
    kept = reflect(*MIXED, rules=[RIGHT], reflector=always)
    assert kept == reflect(*MIXED, rules=[RIGHT])
    assert always.num_misled == 0 and not always.needs_references
    with pytest.raises(ConfigError, match="share"):
        Misled(ALONE, Kitchen(), share=1.5)


def test_a_wrong_rule_that_is_there_misleads_nobody_again():
    class Adds:
        name = "adds"

        def reflect(self, occasions):
            return [Reflection(tuple(added))] * len(occasions)

    other = "When the pot is cold, look around."
    for rules, texts, number in (
        ([], [WRONG, other], 1),
        ([WRONG], [RIGHT, other], 0),
        ([RIGHT], [WRONG, other], 1),
    ):
        added = [Operation(EditOp.ADD, (), text) for text in (RIGHT, other)]
        always = Misled(Adds(), Kitchen(), share=1.0)
        found = reflect(*MIXED, rules=rules, reflector=always)
        assert [o.text for o in found.operations] == texts
        assert always.num_misled == number


HOUSE = house_small()
LANGUAGE = HouseRules(HOUSE.size)
GROUPS = 120


def told(noise, key):
    """Groups of eight noisy oracles, by task: the task's type and the trials."""
    tasks = some_tasks(GROUPS)
    env = Situated(HOUSE, LANGUAGE)
    data = PLAY(jax.random.key(key), env, tasks, noise=noise)
    fields, rows = data.observation, data.task_id
    moves = env.moves(data.action, fields, jax.tree.map(lambda x: x[rows], tasks))
    data, moves = jax.device_get((data, moves))
    trials = [
        Trial(
            success=bool(data.outcome[row] == Outcome.SUCCESS),
            score=float(data.score[row]),
            outcome=int(data.outcome[row]),
            anchor=data.anchor[row, :length],
            situation=data.observation[row, :length, -1],
            move=moves[row, :length],
            task_digest=str(data.task_id[row]),
        )
        for row, length in enumerate(data.mask.sum(axis=1))
    ]
    kinds = np.asarray(tasks.task)
    return [(int(kinds[i]), tuple(trials[i :: len(kinds)])) for i in range(len(kinds))]


PLAY = jax.jit(
    partial(demonstrations, num_steps=HOUSE.horizon, batch_size=GROUPS * 8),
    static_argnums=1,
)


def learn(groups, reflector):
    """The texts of each type, after all groups in order; votes are not followed."""
    pools, earlier = ({kind: [] for kind in HouseTask} for _ in range(2))
    for kind, trials in groups:
        group = Occasion(
            task_key=TASK_TYPES[kind],
            task="",
            rules=tuple(ShownRule(i, text, 2.0) for i, text in enumerate(pools[kind])),
            trials=trials,
            references=tuple(earlier[kind][-8:]),
        )
        [found] = reflector.reflect([group])
        for operation in found.operations:
            if operation.op == EditOp.EDIT:
                pools[kind][operation.targets[0]] = operation.text
            elif operation.op == EditOp.ADD:
                pools[kind].append(operation.text)
        earlier[kind] += [t for t in trials if t.success]
    return pools


@pytest.fixture(scope="module")
def rules():
    return learn(told(noise=0.6, key=6), ContrastReflector(LANGUAGE))


def test_rules_of_the_house_agree_with_the_oracle(rules):
    does = np.zeros((len(HouseTask), len(LANGUAGE.situations), len(LANGUAGE.moves)))
    for kind, trials in told(noise=0.0, key=2):
        for t in trials:
            np.add.at(does, (kind, t.situation, t.move), 1)
    shares = []
    for kind, texts in rules.items():
        for situation, move in (read_sentence(LANGUAGE, text) for text in texts):
            done = does[kind, situation]
            shares.append(done[move] / max(done.sum(), 1))
    assert len(shares) >= 12
    assert np.mean(np.asarray(shares) > 0.5) >= 0.9


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (HouseTask.LOOK, "desk"),
        (HouseTask.CLEAN, "sink"),
        (HouseTask.HEAT, "microwave"),
        (HouseTask.COOL, "fridge"),
    ],
)
def test_what_a_type_of_task_has_of_its_own_is_found(rules, kind, place):
    unready = "When you hold what is wanted unready somewhere else"
    assert f"{unready}, go to a {place}." in rules[kind]


def test_where_things_lay_is_no_rule(rules):
    assert not any("not in sight" in text for texts in rules.values() for text in texts)
