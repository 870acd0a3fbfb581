"""A frozen model learns from notes about its failed trials; scripts stand in for it."""

import jax
import numpy as np
import pytest

from jerp.bridge.reflexion import play_reflexion
from jerp.bridge.request_records import (
    request_seed,
)
from jerp.bridge.scripted import ScriptedExecutor
from jerp.errors import InputError
from jerp.typing import Outcome
from tests.bridge.prompted_house import (
    HOUSE,
    PLAIN,
    SAID,
    STEPS,
    TASKS,
    TEXT,
    Oracle,
    listed,
    oracle_actions,
)


@pytest.fixture(scope="module")
def shown():
    return oracle_actions()


def reflexion(script, failures=None, **options):
    executor = ScriptedExecutor(script, failures=failures)
    options = {"num_trials": 3, "num_steps": 2, "batch_size": 2, **options}
    found = play_reflexion(
        jax.random.key(3), HOUSE, TASKS, executor, TEXT, PLAIN, **options
    )
    return found, executor


def is_note(request):
    return "What went wrong" in request.messages[1].content


def test_a_failed_trial_teaches_the_next_one(shown):
    """The oracle helps who has a note; episode 1 is given none that can be used."""
    oracle = Oracle(shown)

    def script(request):
        told = request.messages[1].content
        if is_note(request):
            return "Do better." if SAID[0].split(".")[0] in told else "Hm"
        return oracle(request) if "Notes" in told else " fly"

    found, executor = reflexion(script, num_steps=STEPS, num_trials=2)
    assert found.success.tolist() == [[False, False], [True, False]]
    assert found.notes == (("Do better.",), ())
    assert found.rejected == {"text_unfinished": 1}
    asked = [r for r in executor.requests if is_note(r)]
    assert (
        len(asked) == 2
        and "\n| (That was not understood" in asked[0].messages[1].content
    )
    for request, said in zip(asked, SAID, strict=True):
        assert request.messages[1].content.startswith(f"| {said.partition('.')[0]}.")


def test_who_succeeded_is_not_asked_again_and_notes_are_few(shown):
    count = iter(range(100))
    oracle = Oracle(shown)

    def script(request):
        if is_note(request):
            return f"Do better {next(count)}."
        return oracle(request) if SAID[1] in listed(request)[1] else " fly"

    found, executor = reflexion(script, num_steps=STEPS, num_trials=4, max_notes=2)
    assert found.success[:, 1].all() and not found.success[:, 0].any()
    assert [t.trajectory.mask[1].any() for t in found.trials] == [True] + [False] * 3
    assert found.notes == (("Do better 1.", "Do better 2."), ())
    assert sum(map(is_note, executor.requests)) == 3
    for trial in found.trials[1:]:
        np.testing.assert_array_equal(
            trial.trajectory.anchor[0], found.trials[0].trajectory.anchor[0]
        )


def test_failures_of_the_executor_teach_nothing():
    # Two steps of two episodes, of which the second fails at once; then the notes.
    failures = {1: "error", 3: "timeout"}
    found, _ = reflexion(lambda r: " fly", failures, num_trials=2)
    assert found.trials[0].trajectory.outcome[1] == Outcome.INFRASTRUCTURE
    assert found.notes == ((), ()) and found.rejected == {"infrastructure": 1}
    assert found.trials[1].trajectory.mask.all()
    with pytest.raises(InputError, match="num_trials"):
        reflexion({}, num_trials=0)


def test_a_failed_trial_without_a_note_is_not_played_again_word_for_word():
    def draws(request):
        if is_note(request):
            return "Hm"
        options = listed(request)[0]
        return f" {options[request_seed(request) % len(options)]}"

    found, executor = reflexion(draws, num_steps=4, batch_size=4)
    told = [trial.transcripts for trial in found.trials]
    assert found.rejected == {"text_unfinished": 8}
    assert len({text for texts in told for text in texts}) == 12
    for noted, numbers in ((False, range(6)), (True, range(2, 6))):
        asked = {r.sample_index for r in executor.requests if is_note(r) == noted}
        assert asked == {*numbers}
