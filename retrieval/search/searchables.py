"""The three kinds of things that are searched, as the columns they are searched by."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval.types import ItemKind

# Of a summary that was made again, the newer text is found.
NOT_SUPERSEDED = "NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = summaries.summary_id)"
_NOT_SUPERSEDED_THEN = (
    "summaries.created_at <= %(at)s AND NOT EXISTS (SELECT FROM summaries later "
    "WHERE later.supersedes_id = summaries.summary_id AND later.created_at <= %(at)s)"
)
# The last messages of a summary and of the time when a file was stored tell where those stand among messages. Messages
# are recorded in the order of their numbers, so that nothing said later moves a file.
_LAST_OF_SUMMARY = """(
    SELECT last.{0} FROM messages last
    WHERE last.conversation_id = summaries.conversation_id AND last.seq = summaries.last_seq
)"""
_LAST_BEFORE_FILE = """coalesce((
    SELECT last.{0} FROM messages last
    WHERE last.conversation_id = large_files.conversation_id AND last.recorded_at <= large_files.created_at
    ORDER BY last.seq DESC LIMIT 1
), 0)"""
# As in the index of `sql/files.sql`, to the letter.
FILE_TEXT = "(coalesce(file_name, '') || E'\\n' || coalesce(exploration_summary, ''))"

# Of a text that asks something towards its end, the answer is near, whether or not a remark or the caption of a picture
# comes after the question: single-hop R@10 of `make eval` is 0.913, not 0.922, where only the very end counts. Of a
# long text, the end would have to be fetched and unpacked. An agent looks things up before it answers: the answer is in
# the first message after the question that neither calls a tool nor is what one gave back; if that is not near, nobody
# knows where.
_ANSWERED_IN = """(
    SELECT coalesce((
        SELECT answer.seq - best.seq
        FROM messages AS answer
        WHERE answer.conversation_id = best.conversation_id AND answer.seq > best.seq AND answer.seq <= best.seq + 12
          AND answer.role <> 'tool' AND NOT EXISTS (
              SELECT FROM message_parts p WHERE p.message_id = answer.message_id AND p.part_type = 'tool'
          )
        ORDER BY answer.seq LIMIT 1
    ), 0)
    FROM messages
    WHERE ctid = best.place AND octet_length(content) < 2000 AND right(content, 100) ~ '[?？؟](\\s|$)'
)"""


# There is one of each kind: to tell them apart by all that they say takes longer than what is asked of them.
@dataclass(frozen=True, eq=False)
class Table:
    """Where to look, and how rows there are compared with those of the other tables.

    `place_in_one` and `place_in_many` order everything by when it came: within one conversation by seq, among several
    by the number that the message got when it was recorded. At one place, `rank` comes first: the message, then the
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
    # Whether the index for words tells where a row stands.
    knows_place: bool = True
    # What a row must be to be searched at all, now and at an earlier moment.
    only: str = "true"
    only_then: str = "true"
    # Whether its text is there: an expression may match one that is empty because it is elsewhere, or gone.
    has_text: str = "erased_by_id IS NULL"


MESSAGE_RANK = 1_000_000
MESSAGES = Table(
    ItemKind.MESSAGE,
    "messages",
    id="message_id",
    seq="seq",
    place_in_one="seq",
    place_in_many="message_id",
    rank=str(MESSAGE_RANK),
    answered_in=_ANSWERED_IN,
    has_text="cold_block_id IS NULL AND erased_by_id IS NULL",
)
SUMMARIES = Table(
    ItemKind.SUMMARY,
    "summaries",
    id="summary_id",
    seq="first_seq",
    place_in_one="last_seq",
    place_in_many=_LAST_OF_SUMMARY.format("message_id"),
    rank="depth",
    only=NOT_SUPERSEDED,
    only_then=_NOT_SUPERSEDED_THEN,
)
FILES = Table(
    ItemKind.FILE,
    "large_files",
    id="file_id",
    seq=_LAST_BEFORE_FILE.format("seq"),
    place_in_one=_LAST_BEFORE_FILE.format("seq"),
    place_in_many=_LAST_BEFORE_FILE.format("message_id"),
    rank="-1",
    text=FILE_TEXT,
    vector=f"lcm_tsv({FILE_TEXT})",
    knows_place=False,
    tokens=f"octet_length({FILE_TEXT}) / 4",
    only_then="large_files.created_at <= %(at)s",
)
TABLES = (MESSAGES, SUMMARIES, FILES)
