"""The number of requests under way follows what the endpoint takes."""

import asyncio

import pytest

from jerp.bridge.concurrency import Concurrency, Limiter
from jerp.errors import ConfigError


def take(limiter, count=1, admit=lambda can_wait: True):
    async def all_of_them():
        return [await limiter.acquire(admit, asyncio.sleep) for _ in range(count)]

    return asyncio.run(all_of_them())


def limiter(start=4, cap=16, clock=lambda: 0.0):
    return Limiter(Concurrency(start, cap), clock)


def test_it_grows_by_one_an_answer_and_after_an_overload_by_one_a_round():
    one = limiter()
    for _ in range(3):
        one.succeeded()
    assert one.limit == 7.0
    [era] = take(one)
    one.overloaded(era, None)
    assert one.limit == 3.5
    one.succeeded()
    assert one.limit == pytest.approx(3.5 + 1 / 3.5)
    for _ in range(1000):
        one.succeeded()
    assert one.limit == 16.0


def test_overloads_of_one_moment_count_once_and_one_is_the_least():
    one = limiter(start=8)
    for era in take(one, 6):
        one.overloaded(era, None)
    assert one.limit == 4.0
    for _ in range(9):
        one.overloaded(one._era, None)
    assert one.limit == 1.0


def test_no_more_than_the_limit_are_under_way_and_all_get_their_turn():
    async def run():
        one, most, done = limiter(start=3, cap=3), 0, []

        async def work(number):
            nonlocal most
            await one.acquire(lambda can_wait: True, asyncio.sleep)
            most = max(most, one.in_flight)
            await asyncio.sleep(0)
            one.release()
            done.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(work(number))
        assert one.in_flight == 0
        return most, sorted(done)

    assert asyncio.run(run()) == (3, list(range(20)))


def test_a_pause_holds_everybody():
    now = [100.0]

    async def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    slept: list[float] = []
    one = limiter(clock=lambda: now[0])
    one.overloaded(0, 30.0)
    one.overloaded(0, 10.0)  # a shorter one changes nothing
    asyncio.run(one.acquire(lambda can_wait: True, sleep))
    assert slept == [30.0]


def test_a_place_that_was_given_to_one_who_left_goes_to_another():
    async def run():
        one = limiter(start=1, cap=1)
        free = lambda can_wait: True  # noqa: E731
        await one.acquire(free, asyncio.sleep)
        left, stays = (
            asyncio.create_task(one.acquire(free, asyncio.sleep)) for _ in range(2)
        )
        await asyncio.sleep(0)
        one.release()
        left.cancel()
        await asyncio.wait_for(stays, timeout=5)
        return one.in_flight

    assert asyncio.run(run()) == 1


def test_all_who_wait_hear_that_nothing_more_may_begin():
    def refuse(can_wait):
        raise RuntimeError("over")

    async def run():
        one = limiter(start=1, cap=1)
        await one.acquire(lambda can_wait: True, asyncio.sleep)
        waiting = [
            asyncio.create_task(one.acquire(refuse, asyncio.sleep)) for _ in range(5)
        ]
        await asyncio.sleep(0)
        one.release()
        ends = asyncio.gather(*waiting, return_exceptions=True)
        return await asyncio.wait_for(ends, timeout=5)

    assert [str(error) for error in asyncio.run(run())] == ["over"] * 5


def test_bounds_out_of_order_are_refused():
    with pytest.raises(ConfigError, match="1 <= start <= cap, got 9, 8"):
        Concurrency(9, 8)
