"""The three kinds of things that are searched, as the columns they are searched by."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.sql import load
from retrieval.types import ItemKind

_SQL = load("retrieval/search_filters.sql")
_LAST_OF_SUMMARY, _LAST_BEFORE_FILE = _SQL["last_of_summary"], _SQL["last_before_file"]
# As in the index of `sql/files.sql`, to the letter.
FILE_TEXT = "(coalesce(file_name, '') || E'\\n' || coalesce(exploration_summary, ''))"


# There is one of each kind, so they are compared by identity.
@dataclass(frozen=True, eq=False)
class Searchable:
    """A table to search, and how its rows are compared with those of the others.

    `place_in_one` and `place_in_many` order everything by when it came: within one conversation by seq, among several
    by the id that the message got when it was recorded. At one place, `rank` comes first: the message, then the
    summaries that end with it, the widest first, then files.
    """

    kind: ItemKind
    name: str
    id: str
    seq: str
    place_in_one: str
    place_in_many: str
    rank: str
    text: str = "content"
    vector: str = "content_tsv"
    tokens: str = "token_count"
    # For a row that asks something, how many messages on it is answered: 0 if not near; of any other, null.
    answered_in: str = "NULL::integer"
    # Whether the word index has place lexemes of its rows: their conversation, and their block of 1,024 messages there.
    has_places: bool = True
    # What a row must be to be searched at all, now and at an earlier moment.
    only: str = "true"
    only_then: str = "true"
    # Whether its text is there: an expression may match one that is empty because it is elsewhere, or erased.
    has_text: str = "erased_by_id IS NULL"


MESSAGE_RANK = 1_000_000
MESSAGES = Searchable(
    ItemKind.MESSAGE,
    "messages",
    id="message_id",
    seq="seq",
    place_in_one="seq",
    place_in_many="message_id",
    rank=str(MESSAGE_RANK),
    answered_in=_SQL["answered_in"],
    has_text="cold_block_id IS NULL AND erased_by_id IS NULL",
)
SUMMARIES = Searchable(
    ItemKind.SUMMARY,
    "summaries",
    id="summary_id",
    seq="first_seq",
    place_in_one="last_seq",
    place_in_many=_LAST_OF_SUMMARY.format(column="message_id"),
    rank="depth",
    only=_SQL["not_superseded"],
    only_then=_SQL["not_superseded_then"],
)
FILES = Searchable(
    ItemKind.FILE,
    "large_files",
    id="file_id",
    seq=_LAST_BEFORE_FILE.format(column="seq"),
    place_in_one=_LAST_BEFORE_FILE.format(column="seq"),
    place_in_many=_LAST_BEFORE_FILE.format(column="message_id"),
    rank="-1",
    text=FILE_TEXT,
    vector=f"lcm_tsv({FILE_TEXT})",
    has_places=False,
    tokens=f"octet_length({FILE_TEXT}) / 4",
    only_then="large_files.created_at <= %(at)s",
)
SEARCHABLES = (MESSAGES, SUMMARIES, FILES)
