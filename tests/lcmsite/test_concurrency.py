"""What runs at once is limited: in all, of heavy operations, and of one caller; the rest waits or is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest

from lcmsite.access.users import caller_in
from lcmsite.api.concurrency import Gate, Limits, TooManyAtOnce
from lcmsite.catalogue import operation
from lcmsite.catalogue.operations import CATALOGUE, OPERATIONS
from lcmsite.types import Role
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.callers import Api, an_api_key
from tests.lcmsite.operating import eventually


def a_gate(at_once: int, *, waiting: int = 8, longest_wait: float = 30) -> Gate:
    return Gate(Limits.of_operations(at_once, waiting=waiting), longest_wait)


@contextmanager
def running(gate: Gate, *callers: tuple[str, bool]) -> Iterator[ExitStack]:
    with ExitStack() as held:
        for caller, heavy in callers:
            held.enter_context(gate.entered(caller, heavy=heavy))
        yield held


def is_admitted(gate: Gate, caller: str, *, heavy: bool = False) -> bool:
    try:
        with gate.entered(caller, heavy=heavy):
            return True
    except TooManyAtOnce:
        return False


def wait_for(gate: Gate, count: int) -> None:
    """Wait until so many wait at the gate."""
    eventually(lambda: len(gate._waiting) == count)


def test_heavy_operations_take_half_of_the_places_and_an_append_finds_one():
    gate = a_gate(4, longest_wait=0.2)

    with running(gate, ("one", True), ("two", True)):
        assert not is_admitted(gate, "three", heavy=True)
        assert is_admitted(gate, "three")


def test_one_caller_leaves_a_place_to_others_of_all_and_of_the_heavy_ones():
    gate = a_gate(6, longest_wait=0.2)

    with running(gate, *[("one", False)] * 5):
        assert not is_admitted(gate, "one")
        assert is_admitted(gate, "two")
    with running(gate, *[("one", True)] * 2):
        assert not is_admitted(gate, "one", heavy=True)
        assert is_admitted(gate, "two", heavy=True)


def test_with_one_place_only_one_operation_runs_and_all_get_their_turn():
    gate = a_gate(1, waiting=20)
    at_work, most = [], []

    def work(number: int) -> None:
        with gate.entered(f"caller {number % 3}", heavy=bool(number % 2)):
            at_work.append(number)
            most.append(len(at_work))
            time.sleep(0.002)
            at_work.remove(number)

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(work, range(60)))

    assert len(most) == 60 and max(most) == 1


def test_what_waits_begins_as_soon_as_a_place_is_free():
    gate = a_gate(4)

    with running(gate, ("one", True)) as held, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(is_admitted, gate, "one", heavy=True)
        wait_for(gate, 1)
        assert not waiting.done()
        held.close()
        assert waiting.result(timeout=60)


def test_a_free_place_goes_to_the_caller_with_the_fewest_running():
    gate = a_gate(6, waiting=20)
    begun: list[str] = []
    waits = threading.Event()

    def work(caller: str) -> None:
        with gate.entered(caller, heavy=True):
            begun.append(caller)
            waits.wait(60)

    with ThreadPoolExecutor(8) as threads, running(gate, ("greedy", True), ("greedy", True), ("other", True)) as held:
        for number, caller in enumerate(("greedy", "greedy", "greedy", "polite"), 1):
            threads.submit(work, caller)
            wait_for(gate, number)
        held.pop_all().close()
        eventually(lambda: len(begun) == 3)
        first = list(begun)
        waits.set()

    assert sorted(first) == ["greedy", "greedy", "polite"]


def test_only_so_many_wait_and_of_one_caller_fewer():
    gate = a_gate(4)

    with ThreadPoolExecutor(8) as threads:
        with running(gate, ("one", True), ("two", True)) as held:
            waiting = [threads.submit(is_admitted, gate, "one", heavy=True) for _ in range(2)]
            wait_for(gate, 2)
            began = time.monotonic()
            # A quarter of those that may wait: at once, not after the longest wait.
            assert not is_admitted(gate, "one", heavy=True)
            assert time.monotonic() - began < 20
            held.close()
        assert all(each.result(timeout=60) for each in waiting)


def test_a_failure_gives_the_place_back():
    gate = a_gate(1, waiting=4, longest_wait=0.1)

    for _ in range(3):
        with pytest.raises(ZeroDivisionError), gate.entered("one", heavy=True):
            raise ZeroDivisionError

    assert is_admitted(gate, "one", heavy=True)


def test_searches_expansions_assemblies_with_a_query_and_checks_are_heavy_and_appends_are_not():
    heavy = {each.tool for each in CATALOGUE if each.heavy}

    assert {"lcm_grep", "lcm_expand", "lcm_expand_range", "lcm_check", "lcm_describe_range"} <= heavy
    assert not heavy & {"lcm_append", "lcm_open", "lcm_show", "lcm_messages", "lcm_assemble"}
    assert {each.tool for each in CATALOGUE if each.heavy_with} == {"lcm_assemble", "lcm_recall", "lcm_turn"}


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A process in which two other callers run all the heavy operations that there may be."""
    gate = a_gate(4, longest_wait=0.2)
    monkeypatch.setattr(operation, "gate", lambda: gate)
    with running(gate, ("key 0", True), ("key -1", True)):
        yield gate


@pytest.mark.django_db
def test_too_many_searches_are_refused_with_429_and_the_rest_goes_on(full):
    conversation = a_conversation("a port", "which one")
    api = Api(an_api_key())

    refused = api.get("matches/", query="port")
    assembled = api.get(f"conversations/{conversation.conversation_id}/context/")
    sought = api.get(f"conversations/{conversation.conversation_id}/context/", query="port")
    appended = api.post(
        f"conversations/{conversation.conversation_id}/messages/", {"messages": [{"role": "user", "content": "x"}]}
    )

    assert (refused.status, refused.body["code"], refused.body["retryable"]) == (429, "too_many_at_once", True)
    assert refused.headers["Retry-After"] == "1"
    assert (assembled.status, sought.status, appended.status) == (200, 429, 201)


@pytest.mark.django_db
def test_pages_are_limited_by_person(full, django_user_model):
    workspace = a_workspace()
    person = django_user_model.objects.create_user("ann")
    caller = caller_in(person, workspace, next(iter(Role)))

    with pytest.raises(TooManyAtOnce):
        OPERATIONS["lcm_grep"].perform(caller, {"query": "port"})
    assert OPERATIONS["lcm_list"].perform(caller, {}).result == []
