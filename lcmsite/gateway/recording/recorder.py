"""Store the messages of requests and answers, each once, on its branch.

A message's idempotency key is a hash of it and of all messages before it. So nothing is stored twice if a request is
recorded again, or comes in another form. The code is synchronous: it runs in threads while requests are forwarded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self
from uuid import UUID

import structlog
from django.db import connection, transaction

from compaction.hosts.branching import Branches
from compaction.hosts.host_service import HostCompaction
from conversations.errors import Invalid
from conversations.formats import claude_code, codex
from conversations.formats.foreign_rows import with_synthetic
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.store.journal import Journal
from conversations.store.read import seqs_of_keys
from conversations.types import NewMessage, Role
from lcmsite.gateway.recording.exchange import Exchange, Outcome
from lcmsite.gateway.recording.exchange_journal import ALTERED, ALTERNATIVES, LOOKUPS, SIDE, ExchangeJournal
from lcmsite.gateway.recording.item_references import with_referenced_items
from lcmsite.gateway.recording.locating import Location, find_conversation, locate
from lcmsite.gateway.recording.prefix_match import Erased, History, begins_alike, is_host_summary, last_known, match
from lcmsite.gateway.recording.side_requests import side_of
from lcmsite.gateway.recording.stored_answers import answers_with_calls, incomplete_answers, keys_of_altered
from lcmsite.gateway.surfaces import ReadRequest, Row, WireMessage, read_request
from lcmsite.gateway.surfaces_answer import ReadAnswer
from lcmsite.gateway.surfaces_digest import (
    KEY_PREFIX,
    Link,
    calls_in,
    incomplete_key,
    is_only_elements,
    links_of,
    without_injected,
)
from lcmsite.models import GatewayExchange

logger = structlog.get_logger(__name__)

# How many of a request's newest messages are looked up first: if one is stored, all before it are.
NEWEST_LOOKED_UP_FIRST = 64
MOST_ACTIVE_KEYS = 5_000
MOST_AT_ONCE = 200
STATEMENT_TIMEOUT = "5s"


@dataclass(frozen=True)
class Recorded:
    """A recorded request; its answer follows `seq` and continues `chain`."""

    conversation_id: int
    session: str
    source: str
    side: str
    chain: bytes
    seq: int
    # Seqs by index in the request's list; without `with_seqs`, only the newest. A message of injected text has none.
    seqs: Mapping[int, int]
    request: ReadRequest


@dataclass(frozen=True)
class Recorder:
    """Records exchanges in one workspace."""

    scope: Scope
    branches: Branches
    journal: ExchangeJournal

    @classmethod
    def from_settings(cls, scope: Scope) -> Self:
        return cls(scope, Branches.from_settings(scope), ExchangeJournal(Journal.from_settings(scope)))

    def record_request(self, exchange: Exchange, *, with_seqs: bool = False) -> Recorded:
        """Store a request's new messages. Raises LcmError or Django's database errors.

        `with_seqs` finds the seqs of all messages, not only of the newest.
        """
        request = read_request(exchange.surface, parse_body(exchange.body))
        side = side_of(request, exchange.task, exchange.headers)
        with bounded_transaction():
            request = with_referenced_items(exchange, request, self.scope)
            location = locate(exchange, request, self.branches.store, is_side=side is not None)
            conversation = self.scope.conversation(location.conversation_id, locked=True)
            links = list(links_of((message.digest for message in request.messages), after=location.chain))
            chain = links[-1].chain if links else location.chain
            if side is None:
                newest_count = len(links) if with_seqs else NEWEST_LOOKED_UP_FIRST
                seq, seqs = self._store_request(
                    conversation, exchange, location, request.messages, links, newest_count=newest_count
                )
                self.journal.store_instructions(conversation, request)
            else:
                seq, seqs = conversation.head_seq, {}
            GatewayExchange.objects.get_or_create(
                exchange_key=UUID(exchange.exchange_key),
                defaults={
                    "workspace_id": conversation.workspace_id,
                    "conversation": conversation,
                    "surface": exchange.surface.value,
                    "side": side or "",
                    "model": _storable(request.model),
                    "request_chain": chain,
                    "request_seq": seq,
                    "received_at": exchange.received_at,
                },
            )
        return Recorded(
            conversation.pk, conversation.session_id, location.source, side or "", chain, seq, seqs, request
        )

    def find_seqs(self, exchange: Exchange) -> tuple[int, dict[int, int]] | None:
        """Find a request's conversation and its messages' seqs by index; stores nothing.

        Messages that are not stored yet get the seqs that they would get. Returns None if none is stored.
        """
        request = read_request(exchange.surface, parse_body(exchange.body))
        conversation_id = find_conversation(exchange, request, self.branches.store)
        if conversation_id is None:
            return None
        conversation = self.scope.conversation(conversation_id)
        links = list(links_of(message.digest for message in request.messages))
        stored_seqs = self._look_up_history(conversation, request.messages, links, newest_count=len(links)).seqs
        last = last_known(request.messages, links, stored_seqs)
        if last < 0:
            return None
        known = zip(request.messages[: last + 1], links, strict=False)
        seqs = {message.index: stored_seqs[link.key] for message, link in known if link.key in stored_seqs}
        follow = enumerate(request.messages[last + 1 :], start=1)
        return conversation_id, seqs | {message.index: conversation.next_seq + number for number, message in follow}

    def record_answer(self, exchange: Exchange, recorded: Recorded, outcome: Outcome) -> None:
        """Store the answer to a recorded request, once; for errors, only the error name."""
        answer = outcome.answer
        with bounded_transaction():
            conversation = self.scope.conversation(recorded.conversation_id, locked=True)
            row = GatewayExchange.objects.get(exchange_key=UUID(exchange.exchange_key))
            row.status, row.error, row.milliseconds = outcome.status, outcome.error[:200], outcome.milliseconds
            if answer is not None:
                row.is_complete = answer.is_complete
                row.response_id = _storable(answer.response_id or "") or None
                row.model = _storable(answer.model) or row.model
                row.tokens_in, row.tokens_out = answer.tokens_in, answer.tokens_out
                if answer.rows and not recorded.side:
                    row.answer_chain, row.answer_seq = self._store_answer(conversation, exchange, recorded, answer)
                    if outcome.lookups is not None and row.answer_seq is not None:
                        entry = {"uuid": str(row.answer_seq), "type": "lookups", **outcome.lookups}
                        self.journal.append(conversation, LOOKUPS, [entry])
                if answer.alternatives:
                    entry = {"uuid": exchange.exchange_key, "answer_seq": row.answer_seq}
                    self.journal.append(conversation, ALTERNATIVES, [{**entry, "choices": list(answer.alternatives)}])
            if recorded.side:
                self._store_side(conversation, exchange, recorded, answer)
            row.save()

    # Requests

    def _store_request(
        self,
        conversation: Conversation,
        exchange: Exchange,
        location: Location,
        messages: Sequence[WireMessage],
        links: Sequence[Link],
        *,
        newest_count: int,
    ) -> tuple[int, dict[int, int]]:
        """Append new messages; return the seq before the answer, and all seqs by index."""
        stored = self._look_up_history(conversation, messages, links, newest_count=newest_count)
        base = conversation.head_seq if location.is_foreign else location.seq
        matched = match(messages, links, stored, base_seq=base)
        known = ((messages[at].index, stored.seqs.get(link.key)) for at, link in enumerate(links))
        seqs = {index: seq for index, seq in known if seq}
        if matched.altered or matched.rewritten:
            altered = [{"uuid": links[at].key, "row": messages[at].row} for at in matched.altered]
            # No text: an erasure of the stored message does not reach the journal.
            rewritten = [{"uuid": links[at].key} for at in matched.rewritten]
            self.journal.append(conversation, ALTERED, [*altered, *rewritten])
        if not matched.new:
            return matched.seq, seqs
        if matched.is_boundary:
            HostCompaction.from_settings(self.scope).record_boundary(
                conversation_id=conversation.pk, host_reference=links[matched.new[0]].key, last_seq=matched.seq
            )
        head = conversation.head_seq
        is_late = head != matched.seq and self._is_late(conversation, exchange)
        self._move_head(conversation, matched.seq, reason="gateway: another branch")
        new = [(messages[at], links[at].key) for at in matched.new]
        appended = self._append(conversation, new)
        if is_late:
            self._move_head(conversation, head, reason="gateway: recorded late")
        return max(appended.values(), default=matched.seq), seqs | appended

    def _look_up_history(
        self,
        conversation: Conversation,
        messages: Sequence[WireMessage],
        links: Sequence[Link],
        *,
        newest_count: int = NEWEST_LOOKED_UP_FIRST,
    ) -> History:
        """Look up which messages are stored, beginning with the `newest_count` newest."""

        def look_up_seqs(some: Sequence[Link]) -> dict[str, int]:
            return seqs_of_keys(conversation.pk, [link.key for link in some])

        if conversation.next_seq == 1 or not links:
            return History(0, {})
        older, newer = links[:-newest_count], links[-newest_count:]
        seqs = look_up_seqs(newer)
        last = last_known(messages, links, seqs)
        if last >= 0:
            # All messages before it are stored; their seqs are not needed.
            seqs |= {link.key: 0 for link in older}
        elif older:
            seqs |= look_up_seqs(older)
            last = last_known(messages, links, seqs)
        active_keys: list[str] = []
        follow = messages[last + 1 :]
        may_be_boundary = last < 0 or any(map(is_host_summary, follow))
        if may_be_boundary:
            newest = conversation.messages.filter(idempotency_key__startswith=KEY_PREFIX).order_by("-seq")
            rows = list(newest.values_list("seq", "idempotency_key")[:MOST_ACTIVE_KEYS])
            active_keys = [str(key) for seq, key in reversed(rows) if conversation.is_active(seq)]
            active_keys += keys_of_altered(conversation, most=MOST_ACTIVE_KEYS)
        erased: list[Erased] = []
        # A request that only goes on has no answer that is not stored.
        if may_be_boundary or any(message.message.role is Role.ASSISTANT for message in follow):
            gone = conversation.messages.filter(erased_by__isnull=False).order_by("-seq")
            values = gone.values_list("seq", "role", "content_hash")[:MOST_ACTIVE_KEYS]
            erased = [Erased(seq, Role(role), bytes(content_hash)) for seq, role, content_hash in values]
        chains = {link.chain for link in links[max(0, last) :]}
        incomplete = incomplete_answers(conversation, chains)
        with_calls = answers_with_calls(conversation, chains) if any(calls_in(each.message) for each in follow) else {}
        return History(conversation.head_seq, seqs, active_keys, erased, incomplete, with_calls)

    def _is_late(self, conversation: Conversation, exchange: Exchange) -> bool:
        """Whether a later request was recorded before this one, as after an outage."""
        rows = GatewayExchange.objects.filter(workspace_id=conversation.workspace_id, conversation=conversation)
        return rows.filter(side="", received_at__gt=exchange.received_at).exists()

    def _move_head(self, conversation: Conversation, seq: int, *, reason: str) -> None:
        if conversation.head_seq != seq:
            self.branches.move_head(conversation_id=conversation.pk, head_seq=seq, reason=reason)
            conversation.refresh_from_db()

    # Answers

    def _store_answer(
        self, conversation: Conversation, exchange: Exchange, recorded: Recorded, answer: ReadAnswer
    ) -> tuple[bytes, int | None]:
        messages = list(answer.messages)
        links = list(links_of((message.digest for message in messages), after=recorded.chain))
        keys = [link.key for link in links]
        if not answer.is_complete:
            keys[-1] = incomplete_key(links[-2].chain if len(links) > 1 else recorded.chain, exchange.exchange_key[:8])
        known = seqs_of_keys(conversation.pk, keys)
        messages[-1] = replace(messages[-1], message=_with_facts(messages[-1].message, answer))
        new = [(message, key) for message, key in zip(messages, keys, strict=True) if key not in known]
        chain = links[-1].chain if answer.is_complete else recorded.chain
        if not new:
            return chain, known.get(keys[-1])
        head = conversation.head_seq
        # The head has moved since the request: the agent continued elsewhere before this answer was recorded.
        has_gone_on = head != recorded.seq and (not answer.is_complete or self._is_late(conversation, exchange))
        if has_gone_on and not answer.is_complete:
            stored_seq = self._find_stored_answer(conversation, recorded.seq, messages[-1])
            if stored_seq is not None:
                return chain, stored_seq
        if len(new) == len(messages):
            self._move_head(conversation, recorded.seq, reason="gateway: answered anew")
        appended = self._append(conversation, new)
        if has_gone_on:
            self._move_head(conversation, head, reason="gateway: the agent has gone on")
        return chain, max(appended.values(), default=None)

    def _find_stored_answer(self, conversation: Conversation, seq: int, answer: WireMessage) -> int | None:
        """Return the seq at which an incomplete answer is already stored, or None.

        If the agent's next request was recorded first, the part of the answer that it repeats is already stored.
        """
        behind = conversation.messages.filter(seq__gt=seq).order_by("seq")
        found = behind.values_list("seq", "role", "content").first()
        is_stored = found is not None and found[1] == Role.ASSISTANT and begins_alike(answer, found[2] or "")
        return found[0] if found is not None and is_stored else None

    def _append(self, conversation: Conversation, new: Sequence[tuple[WireMessage, str]]) -> dict[int, int]:
        """Append messages with these keys. Returns their seqs by index."""
        seqs: dict[int, int] = {}
        for start in range(0, len(new), MOST_AT_ONCE):
            batch = new[start : start + MOST_AT_ONCE]
            drafts = [replace(_marked(each.message), idempotency_key=key) for each, key in batch]
            try:
                with transaction.atomic():
                    result = self.branches.store.append_messages(conversation_id=conversation.pk, messages=drafts)
            except Invalid:
                if len(new) > 1:
                    # One of them is refused: append them one by one.
                    for each in batch:
                        seqs |= self._append(conversation, [each])
                    continue
                as_text = NewMessage(drafts[0].role, json.dumps(batch[0][0].row), idempotency_key=batch[0][1])
                result = self.branches.store.append_messages(conversation_id=conversation.pk, messages=[as_text])
            stored = iter(result.messages)
            skipped = {each.position for each in result.skipped if each.is_whole}
            for position, (message, _) in enumerate(batch, start=1):
                if position not in skipped:
                    seqs[message.index] = next(stored).seq
        return seqs

    def _store_side(
        self, conversation: Conversation, exchange: Exchange, recorded: Recorded, answer: ReadAnswer | None
    ) -> None:
        """Store a side request without the messages that are stored."""
        messages = recorded.request.messages
        links = list(links_of(message.digest for message in messages))
        known = last_known(messages, links, self._look_up_history(conversation, messages, links).seqs) + 1
        entry = {
            "uuid": exchange.exchange_key,
            "type": recorded.side,
            "instructions": list(recorded.request.instructions),
            "known_messages": known,
            "messages": [message.row for message in messages[known:]],
            "answer": [] if answer is None else list(answer.rows),
        }
        self.journal.append(conversation, SIDE, [entry])


def parse_body(body: bytes) -> Row:
    """Parse a request body. Raises Invalid if it is not a JSON object."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Invalid("The body of the request is not a JSON object.", code="malformed_json")
    return found


def _marked(message: NewMessage) -> NewMessage:
    """Mark the texts that the host wrote as synthetic."""
    return with_synthetic(message, _is_of_host if message.role is Role.USER else _is_injected)


def _is_injected(text: str) -> bool:
    """Whether a text has nothing but what the host injected."""
    return bool(text) and not without_injected(text)


def _is_of_host(text: str) -> bool:
    """Whether a text of the user has nothing but what the host wrote."""
    is_added = claude_code.is_added(text) or codex.is_added(text)
    return _is_injected(text) or (is_added and is_only_elements(text))


def _with_facts(message: NewMessage, answer: ReadAnswer) -> NewMessage:
    """Add model, stop reason and tokens to an answer's last message, as metadata."""
    facts = {
        "model": answer.model,
        "response_id": answer.response_id,
        "stop_reason": answer.stop_reason,
        "tokens_in": answer.tokens_in,
        "tokens_out": answer.tokens_out,
        "interrupted": None if answer.is_complete else True,
    }
    noted = {name: value for name, value in facts.items() if value not in (None, "")}
    return replace(message, metadata={**message.metadata, "gateway": noted})


def _storable(text: str) -> str:
    return text.replace("\x00", "").encode(errors="replace").decode()[:500]


@contextmanager
def bounded_transaction() -> Iterator[None]:
    """A transaction in which each statement ends within STATEMENT_TIMEOUT."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT}'")
        yield
