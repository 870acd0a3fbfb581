"""Which failures are tried again, and when."""

import httpx2
import openai
import pytest

from jerp.bridge.retry import RETRIED, Failure, RetryPolicy, classify, retry_after
from jerp.errors import ConfigError

NOW = 1_000_000_000.0  # 2001-09-09 01:46:40 GMT
REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")


def by_status(status, body=None, headers=None):
    response = httpx2.Response(status, headers=headers or {}, request=REQUEST)
    error = openai.APIStatusError("said", response=response, body=body)
    return classify(error, lambda: NOW)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Sun, 09 Sep 2001 01:47:10 GMT"}, 30.0),
        ({"retry-after": "Sun, 09 Sep 2001 01:46:10 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers, seconds):
    assert retry_after(httpx2.Headers(headers), NOW) == seconds


@pytest.mark.parametrize(
    ("status", "kind", "is_overload"),
    [
        (429, "rate_limit", True),
        (503, "server", True),
        *((status, "server", False) for status in (408, 409, 425, 500, 502, 504, 529)),
        *((status, "fatal", False) for status in (401, 402, 403, 404)),
        *((status, "rejected", False) for status in (400, 413, 422)),
    ],
)
def test_kinds_by_status(status, kind, is_overload):
    failure = by_status(status)
    assert (failure.kind, failure.is_overload) == (kind, is_overload)
    assert (kind in RETRIED) == (kind in ("rate_limit", "server"))
    assert not failure.may_be_billed


def test_the_code_of_an_error_decides_where_the_status_does_not():
    spent = by_status(429, {"error": {"message": "m", "code": "insufficient_quota"}})
    assert (spent.kind, spent.message) == ("fatal", "HTTP 429: m")
    assert by_status(400, {"code": "content_filter"}).kind == "refused"
    page = by_status(502, "<html>\n  <b>Bad   gateway</b>" + "x" * 1000)
    assert page.message.startswith("HTTP 502: <html> <b>Bad gateway</b>xx")
    assert len(page.message) < 400


def test_an_attempt_that_reached_the_server_may_be_billed():
    timeout = classify(openai.APITimeoutError(REQUEST), lambda: NOW)
    assert (timeout.kind, timeout.may_be_billed) == ("timeout", True)
    assert timeout.is_overload
    for cause, billed in ((httpx2.ReadError("r"), True), (httpx2.ConnectError("c"), 0)):
        error = openai.APIConnectionError(request=REQUEST)
        error.__cause__ = cause
        failure = classify(error, lambda: NOW)
        assert (failure.kind, failure.may_be_billed) == ("connection", billed)


def test_what_is_no_failure_of_an_endpoint_is_raised():
    with pytest.raises(KeyError):
        classify(KeyError("ours"), lambda: NOW)


def test_backoff_doubles_up_to_a_cap_with_full_jitter():
    policy = RetryPolicy(base_seconds=0.5, cap_seconds=3.0)
    failure = Failure("server", "")
    most = [policy.delay(n, failure, lambda: 1.0) for n in range(1, 6)]
    assert most == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert policy.delay(3, failure, lambda: 0.25) == 0.5
    assert policy.delay(9, failure, lambda: 0.0) == 0.0


def test_nobody_comes_back_before_the_server_said():
    policy = RetryPolicy(base_seconds=0.5, cap_seconds=3.0)
    failure = Failure("rate_limit", "", retry_after=20.0)
    assert policy.delay(1, failure, lambda: 0.0) == 20.0
    assert policy.delay(7, failure, lambda: 0.5) == 20.25


@pytest.mark.parametrize(
    "name", ["max_attempts", "base_seconds", "attempt_seconds", "request_seconds"]
)
def test_a_policy_out_of_range_is_refused_by_name(name):
    with pytest.raises(ConfigError, match=f"{name}: expected"):
        RetryPolicy(**{name: -1})
