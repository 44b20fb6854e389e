"""One conversation that people talk in and read: whatever happens to it, every promise is looked up after each step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import IntegrityError, connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from conversations.errors import Conflict
from conversations.models import Conversation
from conversations.types import NewMessage, Role
from tests.committed import empty_all_tables
from tests.factories import a_store, say
from tests.flows import promises
from tests.flows.edges import Model, Mood
from tests.flows.talk import an_opening, batches
from tests.round_trip import assert_ledgers_survive

# So small that a few messages are worth a summary, and a few summaries another.
TIGHT = {
    "model_token_budget": 2000,
    "leaf_chunk_tokens": 400,
    "leaf_target_tokens": 40,
    "condensed_target_tokens": 60,
    "condense_fan_in": 2,
    "max_active_messages": 30,
}
FORBIDDEN = (
    "UPDATE messages SET content = content || '.'",
    "UPDATE messages SET role = 'user' WHERE role = 'system'",
    "DELETE FROM messages",
    "UPDATE message_parts SET tool_output = 'another'",
    "DELETE FROM message_parts",
    "UPDATE summaries SET content = 'another'",
    "UPDATE summaries SET is_degraded = NOT is_degraded",
    "DELETE FROM summaries",
    "UPDATE summary_messages SET ordinal = ordinal + 1",
    "DELETE FROM summary_messages",
    "UPDATE summary_parents SET ordinal = ordinal + 1",
    "DELETE FROM summary_parents",
    "DELETE FROM conversations",
)
WHOLE_PAGES = 4000


class Talk(RuleBasedStateMachine):
    """Appends, reads and forbidden writes, in any order, beside a model that comes and goes."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[NewMessage] = []
        self.sent: list[list[NewMessage]] = []
        self.model = Model()

    def teardown(self) -> None:
        if Conversation.objects.exists():
            assert_ledgers_survive()
        # Not one transaction, rolled back: in one, the compaction lock would take a dead worker's whole run with it.
        empty_all_tables()

    # --- what is set up

    @initialize(tail=st.integers(1, 4), gate=st.booleans(), fan_in=st.sampled_from([2, 3]), opening=st.integers(1, 16))
    def begin(self, tail: int, gate: bool, fan_in: int, opening: int) -> None:
        self.tail = tail
        self.settings = {**TIGHT, "fresh_tail_count": tail, "significance_gate": gate, "condense_fan_in": fan_in}
        self.own_settings: dict[str, Any] = self.settings
        conversation = a_store().open_conversation(session_id="machine", overrides=self.settings)
        self.conversation_id = conversation.conversation_id
        self._appended(an_opening(opening))

    @rule(mood=st.sampled_from(Mood))
    def the_model_changes(self, mood: Mood) -> None:
        self.model.mood = mood

    @rule(
        changed=st.fixed_dictionaries(
            {},
            optional={
                "leaf_batch_messages": st.sampled_from([0, 3]),
                "max_depth": st.sampled_from([-1, 0, 1]),
                "leaf_target_tokens": st.sampled_from([32, 100]),
                "enabled": st.booleans(),
            },
        )
    )
    def settings_change(self, changed: dict[str, Any]) -> None:
        self.own_settings = {**self.settings, **changed}
        a_store().configure_conversation(conversation_id=self.conversation_id, overrides=self.own_settings)

    # --- what is said

    @rule(batch=batches)
    def append(self, batch: list[NewMessage]) -> None:
        self._appended(batch)

    @rule(first=batches, second=batches)
    def append_much(self, first: list[NewMessage], second: list[NewMessage]) -> None:
        self._appended([*first, *second, *first])

    @rule(batch=batches)
    def append_under_keys(self, batch: list[NewMessage]) -> None:
        keyed = [
            replace(message, idempotency_key=f"key-{len(self.sent)}-{number}") for number, message in enumerate(batch)
        ]
        self.sent.append(keyed)
        self._appended(keyed)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), more=batches)
    def append_again(self, data: st.DataObject, more: list[NewMessage]) -> None:
        again = data.draw(st.sampled_from(self.sent))
        result = self._append([*again, *more])
        assert [each.created for each in result.messages] == [False] * len(again) + [True] * len(more)
        self.said += more

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), more=batches)
    def use_a_key_for_something_else(self, data: st.DataObject, more: list[NewMessage]) -> None:
        used = data.draw(st.sampled_from(self.sent))[0]
        try:
            self._append([*more, NewMessage(Role.USER, "something else", idempotency_key=used.idempotency_key)])
        except Conflict:
            return
        raise AssertionError("a key was taken for another message")

    def _append(self, batch: list[NewMessage]) -> Any:
        return say(self.conversation_id, *batch)

    def _appended(self, batch: list[NewMessage]) -> None:
        result = self._append(batch)
        first = len(self.said) + 1
        assert [(each.seq, each.created) for each in result.messages] == [
            (first + number, True) for number in range(len(batch))
        ]
        self.said += batch

    # --- what is read, and what must not be written

    @rule(budget=st.integers(1, 4000), query=st.sampled_from([None, "gateway port 5433", "billing/ledger.py"]))
    def assemble(self, budget: int, query: str | None) -> None:
        promises.assert_assembled_within_budget(self.conversation_id, budget=budget, query=query)

    @rule(token_cap=st.integers(20, 1000))
    def expand(self, token_cap: int) -> None:
        promises.assert_everything_comes_back(self.conversation_id, self.said, token_cap=token_cap)

    @rule(statement=st.sampled_from(FORBIDDEN))
    def try_what_is_forbidden(self, statement: str) -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(statement)
                assert cursor.rowcount == 0, "what was recorded has been changed"
        except IntegrityError:
            pass

    # --- what holds after every step

    @invariant()
    def every_promise_is_kept(self) -> None:
        promises.assert_sound(self.conversation_id)
        promises.assert_runs_claim_what_they_wrote(self.conversation_id, model=self.model.name)
        promises.assert_everything_comes_back(self.conversation_id, self.said, token_cap=WHOLE_PAGES)
        promises.assert_what_must_be_raw_is(self.conversation_id, self.said, fresh_tail_count=self.tail)
