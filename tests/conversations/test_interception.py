"""What is too long for a message becomes a file, and nothing of it is lost."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from django.core.files.storage import default_storage
from hypothesis import given
from hypothesis import strategies as st

from conversations.content import hashing
from conversations.content.flattening import flattened
from conversations.content.large_texts.cutting import TextCutter, fill_marks
from conversations.errors import Conflict, Invalid, Unavailable
from conversations.files.large_files import LargeFileService, path_of_bytes
from conversations.models import ContextItem, Conversation, FileReference, LargeFile, Message
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from integrity.retention.tiers import Retention
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from tests.conversations.strategies import as_json_says_it
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace, say

pytestmark = pytest.mark.django_db

LOG = "".join(f"2026-01-01T00:00:{n % 60:02d}Z INFO line {n} of the log\n" for n in range(150))
TABLE = "city,ships\n" + "Porto,7\nLagos,12\n" * 1000


@pytest.fixture(autouse=True)
def small_limit(settings):
    """What is too long here, is soon so."""
    settings.LCM = {**settings.LCM, "large_file_tokens": 2000}


def read(message_id, *, whole=False):
    return a_store().get_message(message_id=message_id, whole=whole)


def in_a_part(text):
    return NewMessage(
        Role.USER, parts=(NewPart(PartType.TEXT, text_content=text), NewPart(PartType.TEXT, text_content="?"))
    )


MESSAGES = {
    "a content": NewMessage(Role.USER, LOG),
    "a part": in_a_part(LOG),
    "a tool's result": a_tool_result("c1", LOG),
    "a tool's error": NewMessage(Role.TOOL, parts=(NewPart(PartType.TOOL, tool_call_id="c", tool_error=LOG),)),
    "a file block": NewMessage(Role.USER, f'Look: <file name="ships.csv" type="text/csv">{TABLE}</file> Well?'),
    "two blocks": NewMessage(Role.USER, f"<file>{TABLE}</file> and <file path='b.log'>{LOG}</file>"),
    "a part and the content that it was made to": NewMessage(
        Role.TOOL, f"> {LOG}", parts=(NewPart(PartType.TOOL, tool_call_id="c", tool_output=LOG),)
    ),
    "the same twice": NewMessage(
        Role.TOOL, parts=(NewPart(PartType.TOOL, tool_output=LOG), NewPart(PartType.TOOL, tool_output=LOG))
    ),
    "a text in a file": NewMessage(Role.USER, parts=(NewPart(PartType.FILE, file_name="a.log", text_content=LOG),)),
    "NUL and lone surrogates": NewMessage(Role.USER, f"\x00\ud800{LOG}\udfff"),
    "halves of a character": in_a_part(f"\ud83d\ude00{LOG}"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_what_is_too_long_goes_into_a_file_and_comes_back_byte_for_byte(name):
    message = MESSAGES[name]
    conversation_id = a_conversation().conversation_id

    result = say(conversation_id, message)

    (appended,) = result.messages
    shown, whole = read(appended.message_id), read(appended.message_id, whole=True)
    assert appended.token_count < 3000
    assert "<large_file " in shown.content
    assert {moved.message_id for moved in result.moved} == {appended.message_id}
    assert whole.content == as_json_says_it(flattened(message.parts) if message.content is None else message.content)
    assert [part.text_content for part in whole.parts] == [as_json_says_it(part.text_content) for part in message.parts]
    assert [part.tool_output for part in whole.parts] == [part.tool_output for part in message.parts]
    assert [part.tool_error for part in whole.parts] == [part.tool_error for part in message.parts]


def test_a_content_too_long_to_compare_with_its_parts_becomes_a_file_of_its_own(conversation_id):
    parts = tuple(NewPart(PartType.TEXT, text_content=f"part {n}") for n in range(5_000))
    content = LOG * 40 + "part 0"

    (appended,) = say(conversation_id, NewMessage(Role.USER, content, parts=parts)).messages

    assert read(appended.message_id).content.startswith("<large_file ")
    assert read(appended.message_id, whole=True).content == content


def test_what_stands_for_the_file_is_what_is_hashed_counted_found_and_shown(conversation_id):
    (appended,) = say(conversation_id, NewMessage(Role.USER, LOG)).messages

    shown, row = read(appended.message_id), Message.objects.get()
    context = ContextAssembler.from_settings().assemble(conversation_id=conversation_id, budget=5000)
    assert bytes(row.content_hash) == hashing.content_hash(shown.content) == bytes.fromhex(appended.content_hash)
    assert hashlib.sha256(LOG.encode()).hexdigest() in shown.content
    assert ContextItem.objects.get().token_count == appended.token_count + 4
    assert context.items[0].text == shown.content
    assert "of the log" in shown.content
    assert 'trust="untrusted"' in shown.content


def test_the_words_around_a_file_block_stay_in_the_message(conversation_id):
    result = say(conversation_id, MESSAGES["a file block"])

    content = read(result.messages[0].message_id).content
    file = LargeFile.objects.get()
    assert content.startswith('Look: <file name="ships.csv" type="text/csv"><large_file ')
    assert content.endswith("</large_file></file> Well?")
    assert (file.file_name, file.mime_type, file.byte_size) == ("ships.csv", "text/csv", len(TABLE))
    assert "2,000 rows" in file.exploration_summary


def test_the_same_text_is_kept_once(conversation_id):
    other = a_conversation().conversation_id

    for each in (conversation_id, conversation_id, other):
        say(each, NewMessage(Role.USER, LOG), a_tool_result("c", LOG))

    assert LargeFile.objects.filter(conversation_id=conversation_id).count() == 1
    assert LargeFile.objects.values("storage_uri").distinct().count() == 1


def test_a_message_sent_again_under_its_key_is_the_same_message(conversation_id):
    message = NewMessage(Role.USER, LOG, idempotency_key="once")
    first = say(conversation_id, message)

    again = say(conversation_id, message)

    assert [each.created for each in again.messages] == [False]
    assert again.messages[0].message_id == first.messages[0].message_id
    assert again.moved == first.moved
    assert FileReference.objects.count() == 1
    with pytest.raises(Conflict):
        say(conversation_id, NewMessage(Role.USER, LOG + "!", idempotency_key="once"))
    assert (LargeFile.objects.count(), Message.objects.count()) == (1, 1)


@pytest.mark.parametrize(("before", "now"), [(2000, 0), (0, 2000)])
def test_a_message_sent_again_under_its_key_is_the_same_whatever_limit_is_in_force_by_now(conversation_id, before, now):
    message = replace(MESSAGES["two blocks"], idempotency_key="once")
    a_store().configure_conversation(conversation_id=conversation_id, overrides={"large_file_tokens": before})
    first = say(conversation_id, message)
    a_store().configure_conversation(conversation_id=conversation_id, overrides={"large_file_tokens": now})

    again = say(conversation_id, message)

    assert again.messages == (replace(first.messages[0], created=False),)
    assert (again.moved, LargeFile.objects.count()) == (first.moved, len(first.moved))
    with pytest.raises(Conflict):
        say(conversation_id, NewMessage(Role.USER, LOG * 3, idempotency_key="once"))


@pytest.mark.parametrize(("key", "expected_seq"), [("once", None), ("new", 9)])
def test_a_refused_append_leaves_no_bytes(conversation_id, key, expected_seq):
    say(conversation_id, NewMessage(Role.USER, "short", idempotency_key="once"))
    refused = [NewMessage(Role.USER, LOG + key, idempotency_key=key)]

    with pytest.raises(Conflict):
        a_store().append_messages(conversation_id=conversation_id, messages=refused, expected_seq=expected_seq)

    sha256 = hashlib.sha256((LOG + key).encode()).hexdigest()
    assert not default_storage.exists(path_of_bytes(a_workspace().pk, sha256))


def test_storage_that_fails_leaves_no_message_behind(conversation_id, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "occupied"
    (tmp_path / "occupied").write_text("a file where a directory is needed")

    with pytest.raises(Unavailable):
        say(conversation_id, NewMessage(Role.USER, LOG))

    assert not Message.objects.exists()


@pytest.mark.parametrize(
    ("default", "overrides", "files"),
    [
        (25_000, {}, 0),
        (25_000, {"large_file_tokens": 2500}, 1),
        (2500, {}, 1),
        (2500, {"large_file_tokens": 0}, 0),
        (0, {}, 0),
    ],
)
def test_a_site_and_a_conversation_may_have_limits_of_their_own(settings, default, overrides, files):
    settings.LCM = {**settings.LCM, "large_file_tokens": default}
    conversation = a_conversation(overrides=overrides)

    say(conversation.conversation_id, "word " * 4000)

    assert LargeFile.objects.count() == files


def test_a_limit_that_would_make_files_of_sentences_is_refused(db):
    with pytest.raises(Invalid, match="2,000"):
        a_conversation(overrides={"large_file_tokens": 100})


def test_reasoning_and_the_arguments_of_calls_stay_as_they_came(conversation_id):
    thought = NewMessage(Role.ASSISTANT, parts=(NewPart(PartType.REASONING, text_content=LOG),))

    first, second = say(conversation_id, thought, a_tool_call("c", "write_file", text=LOG)).messages

    assert read(first.message_id).parts[0].text_content == LOG
    assert read(second.message_id).parts[0].tool_input == {"text": LOG}
    assert not LargeFile.objects.exists()


def test_what_somebody_wrote_like_a_reference_is_left_as_it_is(conversation_id):
    (first,) = say(conversation_id, NewMessage(Role.USER, LOG)).messages
    quoted = read(first.message_id).content

    (second,) = say(conversation_id, NewMessage(Role.ASSISTANT, f"You gave me {quoted}")).messages
    (third,) = say(
        conversation_id,
        NewMessage(
            Role.USER, parts=(NewPart(PartType.TEXT, text_content=quoted), NewPart(PartType.TEXT, text_content=LOG))
        ),
    ).messages

    assert read(second.message_id, whole=True).content == f"You gave me {quoted}"
    assert read(third.message_id, whole=True).content == f"{quoted}\n{LOG}"


def test_bytes_that_are_not_those_that_were_stored_are_not_given_back(conversation_id, settings):
    (appended,) = say(conversation_id, NewMessage(Role.USER, LOG)).messages
    path = settings.MEDIA_ROOT / LargeFile.objects.get().storage_uri
    path.write_bytes(path.read_bytes().replace(b"line 7 ", b"line 8 "))

    with pytest.raises(Unavailable, match="not those"):
        read(appended.message_id, whole=True)

    default_storage.delete(LargeFile.objects.get().storage_uri)
    with pytest.raises(Unavailable, match="cannot be read"):
        read(appended.message_id, whole=True)


def test_a_file_tells_who_needs_it_and_a_message_which_files_it_needs(conversation_id):
    file = LargeFileService.from_settings().store(
        conversation_id=conversation_id, content=b"\x89PNG", file_name="a.png"
    )
    result = say(
        conversation_id,
        NewMessage(Role.USER, parts=(NewPart(PartType.FILE, file_name="a.png", file_url=file.file_id),)),
        NewMessage(Role.USER, LOG),
        NewMessage(Role.USER, parts=(NewPart(PartType.FILE, file_name="b.png", file_url="file_0000000000000000"),)),
    )
    named, moved, unknown = (f"msg_{each.message_id}" for each in result.messages)

    describe = RetrievalEngine.from_settings().describe

    assert describe(id=file.file_id).needed_by == (named,)
    assert describe(id=named).file_ids == (file.file_id,)
    assert describe(id=describe(id=moved).file_ids[0]).needed_by == (moved,)
    assert describe(id=unknown).file_ids == ()


PIECES = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.builds(lambda n, w: f"<file name='f{n}'>" + w * n + "</file>", st.integers(0, 60), st.text(max_size=5)),
        st.sampled_from(["<file", "</file>", "<file>", "word " * 50, "\uf8ff", '<large_file id="file_1">']),
    ),
    max_size=8,
).map("".join)


@given(PIECES, st.lists(PIECES, max_size=3), st.booleans())
def test_any_message_can_be_put_together_again(content, texts, has_content):
    parts = tuple(NewPart(PartType.TEXT, text_content=text) for text in texts)
    message = NewMessage(Role.USER, content if has_content or not parts else None, parts=parts)
    marked = TextCutter(limit=40, count=lambda text: len(text.split()) + len(text) // 20).cut(message)
    standing_for = {mark: f"[{number}]" for number, mark in enumerate(marked.cuts)}

    settled, spans = fill_marks(marked, standing_for)

    whole = {None: settled.content, **{ordinal: part.text_content for ordinal, part in enumerate(settled.parts)}}
    for span in sorted(spans, key=lambda each: -each.start_at):
        text = whole[span.part_ordinal]
        if text is None:
            continue
        assert text[span.start_at : span.start_at + span.length] == standing_for[span.mark]
        cut = marked.cuts[span.mark].text
        whole[span.part_ordinal] = text[: span.start_at] + cut + text[span.start_at + span.length :]
    assert whole == {None: message.content, **dict(enumerate(texts))}


def test_a_message_with_a_file_passes_the_check_and_comes_back_whole_from_the_cold(conversation_id):
    result = say(conversation_id, *MESSAGES.values())
    message_ids = [message.message_id for message in result.messages]
    before = [read(message_id, whole=True) for message_id in message_ids]
    scope = Scope(a_workspace().pk, actor="tests")

    Retention.from_settings(scope).archive(conversation_id=conversation_id)
    report = IntegrityChecker.from_settings(scope).run(conversation_id=conversation_id)

    assert Conversation.objects.get().cold_messages > 0
    assert [read(message_id, whole=True) for message_id in message_ids] == before
    assert report.is_clean, report
