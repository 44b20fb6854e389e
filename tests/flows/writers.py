"""Clients that append to conversations all at once, and know afterwards what was acknowledged to them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import close_old_connections, connection

from conversations.models import Message
from conversations.types import AppendResult, MessageRecord, NewMessage, Role
from lcmsite.catalogue.problems import problem_of
from tests.factories import a_store, say

# What a column cannot hold as it is, and what is longer in bytes than in characters, is among what is said.
ODDITIES = ("", "", "", " \x00 and \ud83d alone", " 設定は port 5433 です 🦀", '\t"quoted\\" {json}\r\n')


@dataclass(frozen=True)
class Said:
    """One message that the store has acknowledged."""

    conversation_id: int
    key: str | None
    text: str


class Writers:
    """Threads that append until told to stop, each to one of the conversations.

    With keys they do as a client should: what may be tried again is, under the same keys, until it is acknowledged.
    Without them nobody can tell whether a failed append was stored, so it counts as a failure.
    """

    def __init__(
        self, conversation_ids: Sequence[int], count: int, *, has_keys: bool = False, pause: float = 0.01
    ) -> None:
        self.conversation_ids = conversation_ids
        self.written: dict[int, Said] = {}
        self.appends = 0
        self.repeats = 0
        self.failures: list[Exception] = []
        self._has_keys = has_keys
        self._pause = pause
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def written_to(self, conversation_id: int) -> dict[int, Said]:
        return {each: said for each, said in self.written.items() if said.conversation_id == conversation_id}

    def _write(self, number: int) -> None:
        chance = random.Random(number)
        conversation_id = self.conversation_ids[number % len(self.conversation_ids)]
        turn = 0
        try:
            while not self._stop.is_set():
                texts = [
                    f"writer {number} turn {turn + n} set value-{chance.randrange(10**6)} of service-{number}"
                    + chance.choice(ODDITIES)
                    + " says a thing or two" * 8
                    for n in range(chance.choice((1, 1, 5)))
                ]
                messages = [
                    NewMessage(
                        chance.choice((Role.USER, Role.ASSISTANT)),
                        text,
                        idempotency_key=f"writer-{number}-{turn + n}" if self._has_keys else None,
                    )
                    for n, text in enumerate(texts)
                ]
                turn += len(texts)
                self._note(messages, self._append(conversation_id, messages))
                time.sleep(self._pause)
        except Exception as failure:
            self.failures.append(failure)
        finally:
            connection.close()

    def _append(self, conversation_id: int, messages: list[NewMessage]) -> AppendResult:
        while True:
            # As before each request: a connection that broke is not used again.
            close_old_connections()
            try:
                return say(conversation_id, *messages)
            except Exception as failure:
                if not (self._has_keys and problem_of(failure).retryable):
                    raise
                with self._lock:
                    self.repeats += 1
                time.sleep(0.1)

    def _note(self, messages: list[NewMessage], result: AppendResult) -> None:
        with self._lock:
            self.appends += 1
            for given, appended in zip(messages, result.messages, strict=True):
                assert given.content is not None
                assert appended.message_id not in self.written, "two appends were given one message"
                said = Said(result.conversation_id, given.idempotency_key, given.content)
                self.written[appended.message_id] = said


def assert_nothing_is_lost(conversation_id: int, written: dict[int, Said]) -> None:
    """What was acknowledged is there, once and byte for byte; nothing else is, and no place is left empty."""
    stored: list[MessageRecord] = []
    while page := a_store().list_messages(
        conversation_id=conversation_id, after_seq=stored[-1].seq if stored else 0, limit=1000
    ):
        stored += page
    assert {each.message_id: Said(conversation_id, each.idempotency_key, each.content) for each in stored} == written
    seqs = Message.objects.filter(conversation_id=conversation_id).order_by("seq").values_list("seq", flat=True)
    assert list(seqs) == list(range(1, len(written) + 1))
