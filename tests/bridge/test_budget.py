"""The account: what is charged, and where it ends."""

import json

import pytest

from jerp.bridge.budget import (
    BudgetExceededError,
    Caps,
    Ledger,
    Price,
    load_prices,
)
from jerp.errors import ConfigError, InputError

PRICE = Price(2.0, 10.0)


def ledger(clock=lambda: 0.0, price=PRICE, **caps):
    return Ledger(Caps(**caps), price, clock)


def usage(one):
    return one.usage(concurrency=0, in_flight=0)


def test_a_price_by_hand():
    # 3000 x 2 + 500 x 10 = 11,000 dollars per million tokens
    assert PRICE.dollars(3000, 500) == pytest.approx(0.011)
    assert ledger(price=None).dollars(3000, 500) == 0.0


def test_answers_are_charged_by_count_and_lost_attempts_with_the_most():
    one = ledger()
    for _ in range(3):
        assert one.admit(0.5, True)
    assert one.settle(0.5, (3000, 500), billed=True) == pytest.approx(0.011)
    assert one.settle(0.5, None, billed=False) == 0.0
    assert one.settle(0.5, None, billed=True) == 0.5
    found = usage(one)
    assert (found.attempts, found.tokens_in, found.tokens_out) == (3, 3000, 500)
    assert found.dollars == pytest.approx(0.511)
    assert found.dollars_unconfirmed == 0.5


def test_what_is_under_way_counts_against_the_cap_until_it_is_known():
    one = ledger(dollars=1.0)
    assert one.admit(0.6, True)
    assert not one.admit(0.6, True)  # together they might cost 1.2
    one.settle(0.6, (0, 10_000), billed=True)  # it was 0.1
    assert one.admit(0.6, True)
    with pytest.raises(BudgetExceededError, match=r"caps\.dollars: the cap of 1\.0"):
        one.admit(0.6, False)
    assert usage(one).attempts == 2


def test_caps_on_requests_and_seconds():
    one = ledger(requests=2)
    assert one.admit(0, True) and one.admit(0, True)
    with pytest.raises(BudgetExceededError, match=r"caps\.requests: .* \(2 spent\)"):
        one.admit(0, True)
    now = [50.0]
    one = ledger(clock=lambda: now[0], seconds=5.0)
    assert one.admit(0, True) and one.seconds_left == 5.0
    now[0] = 55.0
    with pytest.raises(BudgetExceededError, match=r"caps\.seconds"):
        one.admit(0, True)


def test_a_cap_in_dollars_needs_a_price():
    with pytest.raises(ConfigError, match="expected a price of the model"):
        ledger(price=None, dollars=1.0)


@pytest.mark.parametrize("name", ["dollars", "requests", "seconds"])
def test_a_cap_below_zero_is_refused(name):
    with pytest.raises(ConfigError, match=f"{name}: expected >= 0"):
        Caps(**{name: -1})


def test_a_price_table(tmp_path):
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"m": {"in": 2, "out": 10}}))
    assert load_prices(path) == {"m": PRICE}
    for broken in (
        "{",
        "[]",
        '{"m": 3}',
        '{"m": {"in": 1}}',
        '{"m":{"in":-1,"out":1}}',
    ):
        path.write_text(broken)
        with pytest.raises(InputError, match="expected"):
            load_prices(path)


def test_a_line_for_a_progress_display():
    one = ledger()
    one.admit(0, True)
    one.settle(0, (5, 6), billed=True)
    one.note("rate_limited")
    one.retried("rate_limit", 0.5)
    assert str(one.usage(concurrency=8, in_flight=3)) == (
        "0 requests, 1 attempts, 1 retries (1 of 429), 5+6 tokens, $0.0001, "
        "3/8 under way"
    )
    assert usage(one).seconds_waited == 0.5


def test_a_new_name_among_those_that_answer_is_told_once():
    one = ledger()
    assert [one.saw(name, "f") for name in ("a", "a", "b", "b")] == ["", "", "a", ""]
    assert usage(one).models == {"a": 2, "b": 2}
    assert usage(one).system_fingerprints == {"f": 4}
