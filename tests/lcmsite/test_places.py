"""The threads of a web process are shared fairly among callers."""

from __future__ import annotations

import asyncio

import pytest

from lcmsite.catalogue.problems import Busy
from lcmsite.server.places import Limits, Places, caller_of


def test_one_caller_with_many_requests_leaves_places_to_others():
    async def go() -> None:
        places = Places(Limits(at_work=4, of_one_caller=3, waiting=4))
        for _ in range(3):
            await places.take("greedy")
        fourth = asyncio.create_task(places.take("greedy"))
        await asyncio.sleep(0)

        await asyncio.wait_for(places.take("polite"), 5)

        assert not fourth.done()
        fourth.cancel()

    asyncio.run(go())


def test_a_free_place_goes_to_the_caller_with_the_fewest_at_work():
    async def go() -> None:
        places = Places(Limits(at_work=2, of_one_caller=2, waiting=8))
        first, _ = await places.take("greedy"), await places.take("greedy")
        third = asyncio.create_task(places.take("greedy"))
        polite = asyncio.create_task(places.take("polite"))
        await asyncio.sleep(0)

        first.leave()
        await asyncio.wait_for(polite, 5)

        assert not third.done()
        polite.result().leave()
        await asyncio.wait_for(third, 5)

    asyncio.run(go())


def test_a_caller_takes_at_most_half_of_the_room_to_wait():
    async def go() -> None:
        places = Places(Limits(at_work=1, of_one_caller=1, waiting=4))
        await places.take("other")
        waiting = [asyncio.create_task(places.take("greedy")) for _ in range(2)]
        await asyncio.sleep(0)

        with pytest.raises(Busy):
            await places.take("greedy")

        polite = asyncio.create_task(places.take("polite"))
        await asyncio.sleep(0)
        assert not polite.done()
        for task in (*waiting, polite):
            task.cancel()

    asyncio.run(go())


def test_a_request_that_is_given_up_while_it_waits_takes_no_place():
    async def go() -> None:
        places = Places(Limits(at_work=1, of_one_caller=1, waiting=4))
        first = await places.take("a")
        given_up = asyncio.create_task(places.take("b"))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)

        first.leave()

        (await asyncio.wait_for(places.take("c"), 5)).leave()

    asyncio.run(go())


def test_a_caller_is_known_by_key_then_session_then_address():
    key, session, address = (b"authorization", b"Bearer x"), (b"cookie", b"sessionid=y"), ("10.0.0.1", 5)

    with_key = caller_of({"headers": [session, key], "client": address})

    assert with_key == caller_of({"headers": [key], "client": None})
    assert with_key != caller_of({"headers": [session], "client": address})
    assert caller_of({"headers": [], "client": address}) == "10.0.0.1"
