"""Endpoints as executors of experiments: found, priced, capped, described."""

import io
import json

import pytest
from rich.console import Console

from experiments.executors.endpoint import NO_ENDPOINT, Endpoint, is_endpoint
from experiments.executors.opened import check_executor, open_live, resolved
from experiments.executors.spending import Asks, print_plan, total_of, user_asks
from jerp.bridge.blocking import wait_for
from jerp.bridge.budget import BudgetExceededError, Price
from jerp.bridge.executor import Message, Request
from jerp.errors import ConfigError, ExecutorError, InputError
from tests.experiments.endpoint_server import MODEL, scripted_endpoint

NOBODY = "http://127.0.0.1:9/v1"


def quiet():
    return Console(file=io.StringIO(), width=100)


def prices(tmp_path, text='{"scripted-model": {"in": 2.0, "out": 10.0}}'):
    path = tmp_path / "prices.json"
    path.write_text(text)
    return path


def requests(count):
    return [Request((Message("user", str(i)),)) for i in range(count)]


def test_what_is_an_address():
    assert is_endpoint("http://h/v1") and is_endpoint("https://h/v1")
    assert not is_endpoint("smollm2") and not is_endpoint("models/http")


def test_the_only_model_need_not_be_named():
    with scripted_endpoint(lambda _: "x") as (url, asked):
        assert resolved(url, NO_ENDPOINT).model == MODEL
        assert resolved(url, Endpoint("other")).model == "other"
    assert not asked
    assert resolved("smollm2", NO_ENDPOINT) == NO_ENDPOINT


@pytest.mark.parametrize("models", [(), ("a", "b")])
def test_one_of_several_has_to_be_named(models):
    with (
        scripted_endpoint(lambda _: "x", models=models) as (url, _),
        pytest.raises(ExecutorError, match=f"expected one model, got {len(models)}"),
    ):
        resolved(url, NO_ENDPOINT)


@pytest.mark.parametrize("name", ["m\x1b[31m", "a\nb", " "])
def test_a_name_that_would_write_over_the_terminal_is_refused(name):
    with (
        scripted_endpoint(lambda _: "x", models=(name,)) as (url, _),
        pytest.raises(ExecutorError, match="names of models that can be printed"),
    ):
        resolved(url, NO_ENDPOINT)


def test_an_address_without_a_server_is_named():
    with pytest.raises(ExecutorError, match=f"{NOBODY}: expected a list of models"):
        resolved(NOBODY, NO_ENDPOINT)


def test_answers_are_charged_kept_and_not_asked_for_again(tmp_path):
    said = Endpoint(prices=prices(tmp_path))
    with scripted_endpoint(lambda messages: messages[0]["content"] * 2) as (url, asked):
        endpoint = resolved(url, said)
        for _ in range(2):
            with open_live(url, endpoint, tmp_path / "store", quiet()) as opened:
                answers = wait_for(opened.executor.complete(requests(3)))
                assert [a.text for a in answers] == ["00", "11", "22"]
                line, found = opened.spent(), opened.description()
    assert len(asked) == 3 and {body["model"] for body in asked} == {MODEL}
    assert line.startswith("0 requests") and found["usage"]["attempts"] == 0
    assert found["fingerprint"].endswith(f"#{MODEL}") and found["kind"] == url


def test_a_cap_ends_a_run_and_the_next_one_goes_on(tmp_path):
    with scripted_endpoint(lambda messages: messages[0]["content"]) as (url, asked):
        for cap, enough in ((2, False), (3, True)):
            said = Endpoint(MODEL, max_requests=cap, concurrency=1)
            with open_live(url, said, tmp_path / "store", quiet()) as opened:
                if enough:
                    answers = wait_for(opened.executor.complete(requests(4)))
                    assert [a.text for a in answers] == ["0", "1", "2", "3"]
                    continue
                with pytest.raises(BudgetExceededError, match="cap of 2 is reached"):
                    wait_for(opened.executor.complete(requests(4)))
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("executor", "endpoint", "word"),
    [
        ("smollm2", Endpoint(max_requests=3), "max_requests: expected with an address"),
        ("no/such/model", NO_ENDPOINT, "no such file or folder"),
        ("http://h/v1", Endpoint(concurrency=0), "concurrency: expected at least 1"),
        ("http://h/v1", Endpoint(max_dollars=1.0), "max_dollars: expected --prices"),
        ("http://h/v1", Endpoint(attempt_seconds=0), "attempt_seconds"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(
    executor, endpoint, word
):
    with pytest.raises(ConfigError, match=word):
        check_executor(executor, endpoint)


@pytest.mark.parametrize(
    ("field", "text", "word"),
    [
        ("prices", '{"other": {"in": 1, "out": 1}}', "no price of 'm'"),
        ("prices", "[]", "expected"),
        ("prices", None, "cannot be read"),
        ("wire", '{"log_prob": true}', "fields of log_probs, send_seed"),
        ("wire", "{", "expected a JSON object"),
        ("wire", None, "cannot be read"),
    ],
)
def test_files_that_are_none_are_named(tmp_path, field, text, word):
    path = tmp_path / "file.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=word):
        check_executor("http://h/v1", Endpoint("m", **{field: path}))


def test_what_endpoints_want_otherwise_is_read_from_a_file(tmp_path):
    path = tmp_path / "wire.json"
    fields = {"max_tokens_name": "max_completion_tokens", "send_seed": False}
    path.write_text(json.dumps(fields))
    wire = Endpoint("m", wire=path).settings.wire
    assert (wire.max_tokens_name, wire.send_seed) == ("max_completion_tokens", False)


def test_a_plan_adds_up():
    parts = [Asks("a", 10, 20, 2_000_000, 400_000), Asks("b", 1, 2, 0, 100_000)]
    assert total_of(parts) == Asks("all", 11, 22, 2_000_000, 500_000)
    console = Console(file=io.StringIO(), width=100)
    found = print_plan(parts, Price(2.0, 10.0), 7, console)
    text = console.file.getvalue()
    # 2 million read at $2, half a million written at $10.
    assert found["dollars"] == pytest.approx(9.0) and "$9.00" in text
    assert "7 answers are in the run's store" in " ".join(text.split())
    assert print_plan(parts, None, 0, console)["dollars"] is None


def test_a_user_answers_each_word_at_most():
    asks = user_asks("the user", 3, 60)
    assert (asks.episodes, asks.calls, asks.tokens_out) == (3, 60, 60 * 256)
