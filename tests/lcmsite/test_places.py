"""Requests wait on the event loop for a thread; who may have one next is decided as for operations."""

from __future__ import annotations

import asyncio

import pytest

from lcmsite.api.concurrency import FairQueue, Limits, Share
from lcmsite.catalogue.problems import Busy
from lcmsite.server.places import caller_of, take_place


def some_places(running: int, *, of_one_caller: int | None = None) -> FairQueue:
    return FairQueue(Limits(running=Share(running, of_one_caller or running), waiting=Share(4, 2)))


def test_a_request_waits_until_a_place_is_free_and_one_caller_leaves_room_to_others():
    async def go() -> None:
        places = some_places(4, of_one_caller=3)
        held = [await take_place(places, "greedy") for _ in range(3)]
        waiting = [asyncio.create_task(take_place(places, "greedy")) for _ in range(2)]
        await asyncio.sleep(0)

        with pytest.raises(Busy):
            await take_place(places, "greedy")
        await asyncio.wait_for(take_place(places, "polite"), 5)
        assert not any(each.done() for each in waiting)

        places.leave(held[0])
        places.leave(held[0])
        await asyncio.wait_for(waiting[0], 5)
        assert not waiting[1].done()
        waiting[1].cancel()

    asyncio.run(go())


def test_a_request_that_is_given_up_while_it_waits_takes_no_place():
    async def go() -> None:
        places = some_places(1)
        first = await take_place(places, "a")
        given_up, late = (asyncio.create_task(take_place(places, "b")) for _ in range(2))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)

        late.cancel()
        places.leave(first)
        await asyncio.gather(late, return_exceptions=True)

        await asyncio.wait_for(take_place(places, "c"), 5)

    asyncio.run(go())


def test_a_caller_is_known_by_key_then_session_then_address():
    key, session, address = (b"authorization", b"Bearer x"), (b"cookie", b"sessionid=y"), ("10.0.0.1", 5)

    with_key = caller_of({"headers": [session, key], "client": address})

    assert with_key == caller_of({"headers": [key], "client": None})
    assert with_key != caller_of({"headers": [session], "client": address})
    assert caller_of({"headers": [], "client": address}) == "10.0.0.1"
