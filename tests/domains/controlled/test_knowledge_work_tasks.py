"""The generator: reproducible, fair, each fact stated once among what is current."""

from collections import Counter

import pytest

from jerp.domains.controlled.knowledge_work_rubric import is_current
from jerp.domains.controlled.knowledge_work_tasks import FIELDS, NUM_SECTIONS, generate
from jerp.domains.controlled.research_corpus import words
from jerp.errors import ConfigError

TASKS = generate(0, 300)


def text(task, number):
    return " ".join(task.payload["notes"][number - 1]["sentences"])


def test_there_are_300_different_tasks_in_three_difficulties():
    assert len({t.prompt for t in TASKS}) == len({t.key for t in TASKS}) == 300
    assert [t.difficulty for t in TASKS] == [i % 3 for i in range(300)]
    wanted = Counter(s for t in TASKS for s in t.payload["sections"])
    assert set(wanted) == {field.label for field in FIELDS}


def test_tasks_are_a_function_of_the_seed_and_shorter_lists_are_prefixes():
    assert generate(0, 31) == TASKS[:31]
    assert [t.payload for t in generate(1, 31)] != [t.payload for t in TASKS[:31]]


def test_a_task_is_the_same_on_every_platform():
    task = TASKS[2]
    assert task.key == "knowledge-work/0/0002"
    assert task.prompt == "Briefing on Flintley Harbour: colour, architect, sponsor."
    assert text(task, 2) == (
        "The colour is white. The architect is Greta Tell. "
        "The sponsor is Tobias Stroud."
    )
    assert task.payload["ladder"] == [[1, 2], [3]]
    assert task.payload["hidden"]["figures"] == {
        "architect": "Victor Marsh",
        "colour": "yellow",
        "sponsor": "Karin Irwin",
    }


@pytest.mark.parametrize("num_tasks", [0, -1])
def test_fewer_than_one_task_is_refused(num_tasks):
    with pytest.raises(ConfigError, match=f"num_tasks: expected >= 1, got {num_tasks}"):
        generate(0, num_tasks)


def test_each_figure_stands_in_its_source_alone_and_the_source_is_current():
    for task in TASKS:
        hidden = task.payload["hidden"]
        numbers = range(1, len(task.payload["notes"]) + 1)
        for section in task.payload["sections"]:
            figure = set(words(hidden["figures"][section]))
            found = [n for n in numbers if figure & set(words(text(task, n)))]
            assert found == [hidden["sources"][section]]
            assert is_current(task, found[0])
            assert figure.isdisjoint(words(hidden["rivals"][section]))


def test_rival_values_stand_in_notes_on_another_subject_or_superseded_ones():
    for task in TASKS:
        hidden, notes = task.payload["hidden"], task.payload["notes"]
        doubtful = [n for n in range(1, len(notes) + 1) if not is_current(task, n)]
        assert len(doubtful) == (task.difficulty > 0)
        for number in doubtful:
            note = notes[number - 1]
            assert note["superseded"] == (task.difficulty == 2)
            assert (note["about"] != task.payload["subject"]) == (task.difficulty == 1)
            stated = [v in text(task, number) for v in hidden["rivals"].values()]
            assert sum(stated) >= NUM_SECTIONS - 1


def test_the_ladder_brings_every_note_once_and_the_second_rung_is_needed_at_times():
    needed = []
    for task in TASKS:
        ladder = task.payload["ladder"]
        everything = [number for rung in ladder for number in rung]
        assert everything == list(range(1, len(task.payload["notes"]) + 1))
        needed.append(
            not set(task.payload["hidden"]["sources"].values()) <= {*ladder[0]}
        )
    assert 0.15 < sum(needed) / len(needed) < 0.35


def test_a_field_is_named_by_its_plain_sentence_alone():
    for field in FIELDS:
        assert field.label in words(field.plain)
        assert field.label not in words(field.other)
        for other in FIELDS:
            if other != field:
                assert field.label not in words(other.plain + other.other)
