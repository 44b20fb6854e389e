"""The cold tier: texts of messages packed together, and laid over their rows again when somebody reads them.

A cold message keeps its row (place, role, times, tokens, hashes, lineage) and lacks its texts: content, metadata and
what was said exactly; of its parts, the texts. They lie in a block, a hundred messages or so compressed together, as
the columns had them. The message's `cold_block_id` names the block, and so does each of its parts that lacks
something, in its `exact` column: whoever has read a row knows, without another question, whether it is all there.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db import connection

from conversations.errors import Unavailable
from conversations.reading import array, rows

T = TypeVar("T")

# What of a part goes to the cold tier. Its kind, flags, figures and names stay, and with them everything that is
# searched or put together by: which tool was called, and which result answers which call.
PART_TEXTS = (
    "text_content", "tool_input", "tool_output", "tool_error", "tool_title", "patch_files", "file_url",
    "subtask_prompt", "subtask_desc", "metadata", "exact",
)  # fmt: skip
# Kept as the text that the database writes of them: numbers would not survive being read.
JSON_TEXTS = frozenset({"tool_input", "metadata", "exact"})
# An address that is shorter names something, such as a file of ours; a longer one holds it.
LONGEST_URL = 500
# In a part's `exact`: where its texts are.
MARK = "cold_block_id"

# zlib and not lzma: an eighth of the size, not a tenth (histories of coding agents), and read three times as fast.
_LEVEL = 6
# A block that is thawed or packed anew while somebody reads takes its rows along: they are read again.
_ATTEMPTS = 5

_BLOCKS = "SELECT cold_block_id, packed, packed_hash FROM cold_blocks WHERE cold_block_id = ANY(%s)"
_BLOCKS_OF = """
    SELECT cold_block_id, conversation_id, first_seq, last_seq, message_count, packed, packed_hash
    FROM cold_blocks WHERE conversation_id = ANY(%s) ORDER BY conversation_id, first_seq, cold_block_id
"""


class BlockGone(LookupError):
    """The block was there when its rows were read, and is not any more."""


@dataclass(frozen=True)
class ColdMessage:
    """The texts of one message as its columns held them, and those of its parts by their ids."""

    message_id: int
    content: str
    metadata: str = "{}"
    exact: str | None = None
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def exactly(self) -> dict[str, Any]:
        """What some of the values really are; see `exactness`."""
        return {} if self.exact is None else json.loads(self.exact)

    def values_of(self, part_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The part's columns that are here, as they are read from a row, and what it says exactly."""
        texts = dict(self.parts.get(part_id, {}))
        for name in JSON_TEXTS & texts.keys():
            texts[name] = json.loads(texts[name])
        return texts, texts.pop("exact", None) or {}


def packed(messages: Iterable[ColdMessage]) -> bytes:
    """The messages as one block: a line of JSON each, in ASCII, compressed."""
    return zlib.compress("".join(map(_line, messages)).encode("ascii"), _LEVEL)


def _line(message: ColdMessage) -> str:
    values = {name: value for name, value in vars(message).items() if value is not None}
    return json.dumps(values, separators=(",", ":")) + "\n"


def unpacked(block: bytes) -> dict[int, ColdMessage]:
    """The messages of a block by their ids, in its order; ValueError if it holds anything else."""
    try:
        lines = zlib.decompress(block).decode("ascii").splitlines()
        messages = [ColdMessage(**json.loads(line)) for line in lines]
    except (zlib.error, TypeError) as wrong:
        raise ValueError("This is no block of messages.") from wrong
    return {message.message_id: message for message in messages}


def packed_hash(block: bytes) -> bytes:
    return hashlib.sha256(block).digest()


@dataclass(frozen=True)
class ColdTexts:
    """The blocks that one call has to do with, each read and unpacked once."""

    blocks: dict[int, dict[int, ColdMessage]] = field(default_factory=dict)

    def read(self, block_ids: Iterable[int]) -> None:
        """Read these blocks, in one query, as far as they are not here yet.

        Raises BlockGone for one that was removed, and Unavailable for one that is damaged: no text is better than a
        wrong one.
        """
        missing = set(block_ids) - self.blocks.keys()
        if not missing:
            return
        for block_id, block, seal in rows(_BLOCKS, [array(missing)]):
            found = messages_in(block, seal)
            if isinstance(found, str):
                raise Unavailable(
                    f"Cold block {block_id} is damaged: {found}. Restore its messages from a ledger or a backup.",
                    code="cold_block_damaged",
                )
            self.blocks[block_id] = found
        if missing - self.blocks.keys():
            raise BlockGone(min(missing - self.blocks.keys()))

    def message(self, block_id: int, message_id: int) -> ColdMessage:
        """The texts of a message in a block that was read."""
        found = self.blocks[block_id].get(message_id)
        if found is None:
            raise Unavailable(
                f"Cold block {block_id} does not hold msg_{message_id}, which it should. It can be restored from a "
                "ledger or a backup.",
                code="cold_block_damaged",
            )
        return found

    def values_of(
        self, mark: Mapping[str, Any], message_id: int, part_id: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a part lacks whose `exact` column is this mark, and what it says exactly."""
        return self.message(mark[MARK], message_id).values_of(part_id)


def messages_in(block: bytes, seal: bytes) -> dict[int, ColdMessage] | str:
    """The messages of a stored block, or, if it is not as it was stored, what is wrong with it."""
    if packed_hash(block) != bytes(seal):
        return "its bytes are not what was hashed"
    try:
        return unpacked(bytes(block))
    except ValueError:
        return "it cannot be unpacked"


def is_cold(exact: Any) -> bool:
    """Whether this value of a part's `exact` column says that the part's texts are in a block."""
    return isinstance(exact, dict) and MARK in exact


def mark(block_id: int) -> str:
    """The value of `exact` for a part whose texts are in this block."""
    return json.dumps({MARK: block_id})


def cold_texts(block_ids: Iterable[int | None]) -> ColdTexts | None:
    """The blocks behind these rows' `cold_block_id`; None, and nothing asked, if none of them is cold."""
    wanted = {block_id for block_id in block_ids if block_id is not None}
    if not wanted:
        return None
    texts = ColdTexts()
    texts.read(wanted)
    return texts


def until_settled(read: Callable[[], T]) -> T:
    """What `read` reads, once more if a block went away between two of its queries."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return read()
        except BlockGone:
            continue
    return read()


@dataclass(frozen=True)
class Block:
    """A stored block with its messages; or, if it cannot be trusted, what is wrong with it."""

    cold_block_id: int
    conversation_id: int
    first_seq: int
    last_seq: int
    message_count: int
    messages: Mapping[int, ColdMessage]
    problem: str = ""


def blocks_of(conversation_ids: Sequence[int]) -> Iterator[Block]:
    """The blocks of these conversations, one at a time, damaged ones too: for whoever checks them."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(_BLOCKS_OF, [list(conversation_ids)])
        while portion := cursor.fetchmany(1):
            block_id, conversation_id, first_seq, last_seq, message_count, block, seal = portion[0]
            found = messages_in(block, seal)
            yield Block(
                cold_block_id=block_id,
                conversation_id=conversation_id,
                first_seq=first_seq,
                last_seq=last_seq,
                message_count=message_count,
                messages={} if isinstance(found, str) else found,
                problem=found if isinstance(found, str) else "",
            )
