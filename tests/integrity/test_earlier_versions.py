"""What an earlier version stored is sound, although this version would store it differently."""

from __future__ import annotations

from conversations.content.tokens import TokenEstimator
from conversations.models import Message
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from tests.factories import a_conversation, say
from tests.integrity.breaking import breaking, result

BEFORE = "Look\n[file a.png]"


def test_a_message_whose_file_part_was_found_by_its_name_alone_is_sound(db):
    image = NewPart(PartType.FILE, file_name="a.png", text_content="A cat")
    say(a_conversation().conversation_id, NewMessage(Role.USER, "Look", parts=(image,)))
    assert Message.objects.get().content == f"{BEFORE}\nA cat"
    breaking("UPDATE messages SET content = %s, token_count = %s", BEFORE, TokenEstimator.from_settings().count(BEFORE))

    assert findings() == {"contents_match_their_hashes": 0, "token_counts_are_recounts": 0}

    breaking("UPDATE messages SET content = %s", "Look\n[file b.png]")
    assert findings()["contents_match_their_hashes"] == 1


def findings() -> dict[str, int]:
    report = IntegrityChecker.from_settings().run()
    return {code: result(report, code).count for code in ("contents_match_their_hashes", "token_counts_are_recounts")}
