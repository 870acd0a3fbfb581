import json
import math
import random
import zipfile
from pathlib import Path

import pytest

from jerp.errors import ConfigError, InputError, StorageError
from jerp.readers.log_options import LogOptions
from jerp.readers.logs import read_runs
from jerp.typing import Outcome
from tests.readers.log_files import (
    SAID,
    document,
    eval_log,
    inspect_header,
    inspect_sample,
    outcomes,
)

REAL = Path(__file__).parent / "real" / "base.eval"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "runs.eval"


@pytest.mark.parametrize(
    ("value", "success"),
    [
        *(("C", 1), ("I", 0), ("N", 0), (1, 1), (0.0, 0), (True, 1), (False, 0)),
        *(("yes", 1), ("No", 0), ("1", 1), ("0.0", 0), (" true ", 1)),
    ],
)
def test_scores_may_be_letters_words_and_numbers(log, value, success):
    assert outcomes(eval_log(log, [inspect_sample(value=value)]))[0] == [success]


@pytest.mark.parametrize("value", ["P", 0.5, -1, 2, "0.7"])
def test_every_other_score_asks_for_a_threshold(log, value):
    eval_log(log, [inspect_sample(value=value)])
    with pytest.raises(InputError, match=r"neither 0 nor 1; say from .*--success-at"):
        outcomes(log)
    number = 0.5 if value == "P" else float(value)
    assert outcomes(log, success_at=number)[0] == [Outcome.SUCCESS]
    assert outcomes(log, success_at=number + 0.1)[0] == [Outcome.FAILURE]


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"error": {"message": "boom"}, "scores": ...}, Outcome.INFRASTRUCTURE),
        ({"error": {"message": "boom"}}, Outcome.INFRASTRUCTURE),
        ({"invalidation": {"author": "me"}}, Outcome.INFRASTRUCTURE),
        ({"error_retries": [{"message": "boom"}]}, Outcome.SUCCESS),
        ({"limit": {"type": "token", "limit": 5}}, Outcome.SUCCESS),
        ({"output": {"choices": [{"stop_reason": "max_tokens"}]}}, Outcome.SUCCESS),
    ],
)
def test_what_happened_to_a_correct_sample(log, changes, outcome):
    assert outcomes(eval_log(log, [inspect_sample(**changes)]))[0] == [outcome]


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, Outcome.FAILURE),
        ({"limit": {"type": "token", "limit": 5}}, Outcome.TRUNCATED),
        ({"limit": {"type": "time", "limit": 5}}, Outcome.TRUNCATED),
        ({"limit": {"type": "operator", "limit": 1}}, Outcome.INFRASTRUCTURE),
        ({"output": {"choices": [{"stop_reason": "max_tokens"}]}}, Outcome.TRUNCATED),
        ({"output": {"choices": [{"stop_reason": "stop"}]}}, Outcome.FAILURE),
        ({"output": {"choices": []}}, Outcome.FAILURE),
    ],
)
def test_what_happened_to_an_incorrect_sample(log, changes, outcome):
    path = eval_log(log, [inspect_sample(value="I", **changes)])
    assert outcomes(path)[0] == [outcome]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (None, Outcome.INFRASTRUCTURE),
        ("grader_failed", Outcome.INFRASTRUCTURE),
        ("of their own", Outcome.INFRASTRUCTURE),
        ("invalid_response_format", Outcome.MALFORMED),
        ("refusal", Outcome.FAILURE),
        ("no_response", Outcome.FAILURE),
    ],
)
def test_a_sample_without_a_score_is_whose_fault_it_is(log, reason, outcome):
    scores = {"right": {"value": math.nan, "reason": reason}}
    path = eval_log(log, [inspect_sample(scores=scores)])
    assert outcomes(path)[0] == [outcome]
    assert any("1 run not scored" in note for note in read_runs(path).notes)


def test_epochs_are_samples_and_planned_runs_are_not_forgotten(log):
    samples = [inspect_sample(), inspect_sample(epoch=3), inspect_sample("b", 2)]
    header = inspect_header(["a", "b"], epochs=3, status="cancelled")
    table = read_runs(eval_log(log, samples, header), extra=["kind"])
    arrays = table.arrays()
    # In the order of the file, what is missing last.
    assert arrays.outcome.tolist() == [[1, 1, 4], [1, 4, 4]]
    assert table.extra["kind"] == ("x",) * 6
    assert "status cancelled; 3 planned runs are not in" in table.notes[-1]


def test_a_killed_run_has_but_its_journal(log):
    header = inspect_header(["a", "b"], status=...)
    table = read_runs(eval_log(log, [inspect_sample()], header, journal=True))
    assert table.outcome.tolist() == [Outcome.SUCCESS, Outcome.INFRASTRUCTURE]
    with pytest.raises(InputError, match="no run of the sample 'b' is in the log, so"):
        read_runs(log, extra=["kind"])


@pytest.mark.parametrize(
    ("ids", "epochs", "message"),
    [
        ({"a": 1}, 1, r"eval.dataset.sample_ids: expected a list, got {'a': 1}"),
        (["a"], "2", r"eval.config.epochs: expected a number of runs, got '2'"),
        (["a"], 10**400, r"eval.config.epochs: expected a number of runs, got 1000"),
    ],
)
def test_a_plan_of_another_kind_is_refused(log, ids, epochs, message):
    header = inspect_header()
    header["eval"]["dataset"]["sample_ids"] = ids
    header["eval"]["config"]["epochs"] = epochs
    with pytest.raises(InputError, match=message):
        outcomes(eval_log(log, [inspect_sample()], header))


def test_prompts_with_examples_are_no_turns(log):
    example = {**SAID, "source": "input"}
    sample = inspect_sample(messages=[example, example, SAID], turn_count=1)
    assert outcomes(eval_log(log, [sample]), unit="turns")[1] == [1]
    assert outcomes(eval_log(log, [sample]))[1] == [0]
    old = {**sample, "turn_count": None}
    assert outcomes(eval_log(log, [old]), unit="turns")[1] == [1]


def test_a_shortened_conversation_is_not_counted(log):
    eval_log(log, [inspect_sample(turn_count=7)])
    with pytest.raises(InputError, match=r"expected the 7 turns .* got 2; the conver"):
        outcomes(log)
    assert outcomes(log, unit="turns")[1] == [7]
    assert outcomes(log, unit="tokens")[1] == [12]


def test_a_grader_of_its_own_does_not_count(log):
    usage = {"m": {"output_tokens": 12}, "grader": {"output_tokens": 500}}
    sample = inspect_sample(model_usage=usage)
    assert outcomes(eval_log(log, [sample]), unit="tokens")[1] == [12]
    other = inspect_sample(model_usage={"x": {}, "y": {}})
    with pytest.raises(InputError, match=r"model of the log, 'm', got 'x', 'y'; name"):
        outcomes(eval_log(log, [other]), unit="tokens")
    named = {"gpt-4.1": {"output_tokens": 3}, "y": {}}
    eval_log(log, [inspect_sample(model_usage=named)])
    assert outcomes(log, spent="model_usage.gpt-4.1.output_tokens")[1] == [3]


def test_a_score_may_have_parts(log):
    scores = {"a.b": {"value": {"c": 1, "d": 0}}, "e": {"value": "I"}}
    eval_log(log, [inspect_sample(scores=scores)])
    assert outcomes(log, score="a.b.c")[0] == [1]
    assert outcomes(log, score="a.b.d")[0] == [0]
    assert outcomes(log, score="e")[0] == [0]
    with pytest.raises(
        InputError, match=r"got the parts 'c', 'd'; say which one.*--sco"
    ):
        outcomes(log, score="a.b")
    with pytest.raises(
        InputError, match="expected the score 'f', as --score says, got"
    ):
        outcomes(log, score="f")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": ...}, r"sample 1, id: expected a text or a number, got nothing"),
        ({"epoch": ...}, r"sample 1, epoch: expected a whole number, got nothing"),
        ({"epoch": "1"}, r"epoch: expected a whole number, got '1'"),
        ({"scores": ...}, r"\(id 'a', epoch 1\), scores: expected at least one score"),
        ({"scores": {}}, r"at least one score \(`inspect score` adds them\), got {}"),
        ({"scores": {"s": {}}}, r"scores.s.value: expected a finite number"),
        ({"scores": {"s": 5}}, r"scores.s: expected an object, got 5"),
        ({"scores": {"s": {"value": 10**400}}}, r"value: expected a finite number"),
        (
            {"scores": {"s": {"value": math.nan, "reason": [1]}}},
            r"scores.s, reason: expected a text, got \[1\]",
        ),
        ({"scores": {"s": {"value": [1, 0]}}}, r"expected a finite number.*\[1, 0\]"),
        ({"scores": {"s": {"value": "A"}}}, r"expected C, I, P, N, yes, .*got 'A'"),
        ({"scores": {"s": {"value": math.inf}}}, r"a finite number.*got inf"),
        ({"messages": ...}, r"messages: expected a list of objects, got nothing"),
        ({"messages": [{**SAID, "tool_calls": 3}]}, r"tool_calls: expected a list"),
        (
            {"limit": "token", "scores": {"s": {"value": 0}}},
            r"limit.type: expected a t",
        ),
    ],
)
def test_what_a_sample_lacks_is_refused_with_its_place(log, changes, message):
    with pytest.raises(InputError, match=message):
        outcomes(eval_log(log, [inspect_sample(**changes)]))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            "nothing",
            r"expected a field 'nothing', got 'kind', 'id', 'epoch', 'mess.*inn",
        ),
        ("messages", r"messages: expected a text or a number, got \[\{"),
    ],
)
def test_a_column_that_is_none_is_refused(log, column, message):
    eval_log(log, [inspect_sample()])
    with pytest.raises(InputError, match=message):
        read_runs(log, extra=[column])


def test_truth_values_make_groups(log):
    eval_log(log, [inspect_sample(metadata={"hard": True, "in": {"deep": 2}})])
    table = read_runs(log, extra=["hard", "in.deep"])
    assert table.extra == {"hard": ("true",), "in.deep": ("2",)}


def test_the_same_sample_twice_is_refused(log):
    document(
        log.with_suffix(".json"),
        {**inspect_header(), "samples": [inspect_sample(), inspect_sample()]},
    )
    with pytest.raises(
        InputError, match="sample 2: task 'a', sample '1' is there alre"
    ):
        read_runs(log.with_suffix(".json"))


def test_options_that_change_nothing_are_refused(log):
    eval_log(log, [inspect_sample()])
    with pytest.raises(ConfigError, match="--task id: inspect's samples name their"):
        read_runs(log, options=LogOptions(task="id"))


def test_a_cut_off_log_is_refused(log):
    log.write_bytes(REAL.read_bytes()[:30_000])
    with pytest.raises(StorageError, match=r"not a whole zip file .*; it was cut off"):
        read_runs(log)


def test_changed_bytes_are_refused_or_change_nothing(log):
    whole, data = read_runs(REAL), bytearray(REAL.read_bytes())
    place = random.Random(0)
    refused = 0
    for _ in range(20):
        at = place.randrange(len(data))
        data[at] ^= 0xFF
        log.write_bytes(data)
        data[at] ^= 0xFF
        try:
            assert read_runs(log).outcome.tolist() == whole.outcome.tolist()
        except (StorageError, InputError):
            refused += 1
    assert refused >= 10


def test_what_is_no_log_is_refused(log, tmp_path):
    log.write_text("not a zip")
    with pytest.raises(StorageError, match="not a whole zip file"):
        read_runs(log)
    eval_log(log, [], header={"status": "success"})
    with pytest.raises(InputError, match=r"runs.eval, eval: expected an object"):
        read_runs(log)
    other = document(tmp_path / "other.json", {"some": 1, "thing": 2})
    with pytest.raises(InputError, match="got a document with 'some', 'thing'; say"):
        read_runs(other)
    with pytest.raises(StorageError, match="there is no such file"):
        read_runs(tmp_path / "none.eval")
    with pytest.raises(StorageError, match="expected a file, found a folder"):
        read_runs(tmp_path, format="inspect")


def test_samples_in_chunks_are_refused(log):
    eval_log(log, [])
    with zipfile.ZipFile(log, "a") as file:
        file.writestr("samples/a_epoch_1/sample.json", json.dumps({}))
    with pytest.raises(StorageError, match="its samples are in chunks, which are not"):
        read_runs(log)
