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
from conversations.sql import array, rows

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

# A block as `ColdTexts.keep` takes it apart.
BLOCK = "cold_block_id, packed, packed_hash, conversation_id, first_seq, last_seq"
_BLOCKS = f"SELECT {BLOCK} FROM cold_blocks WHERE cold_block_id = ANY(%s)"
_BLOCKS_OF = """
    SELECT cold_block_id, conversation_id, first_seq, last_seq, message_count, packed, packed_hash
    FROM cold_blocks WHERE conversation_id = ANY(%s) ORDER BY conversation_id, first_seq, cold_block_id
"""


class BlockGone(LookupError):
    """The block was there when its rows were read, and is not any more."""


class ColdBlockDamaged(Unavailable):
    """No text is better than a wrong one: what a block holds cannot be read until it is restored. To wait is no use."""

    code = "cold_block_damaged"
    retryable = False

    def __init__(self, block_id: int, problem: str, *, messages: str = "", **context: Any) -> None:
        whose = f", which holds {messages}," if messages else ""
        super().__init__(
            f"Cold block {block_id}{whose} is damaged: {problem}. Run `lcm check`, and restore it from a ledger or a "
            "backup.",
            cold_block_id=block_id,
            **context,
        )


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

        Raises BlockGone for one that was removed, and ColdBlockDamaged for one that is not as it was stored.
        """
        missing = set(block_ids) - self.blocks.keys()
        if not missing:
            return
        self.keep(rows(_BLOCKS, [array(missing)]))
        for block_id in sorted(missing - self.blocks.keys()):
            self.blocks[block_id] = self._gone(block_id)

    def keep(self, found: Iterable[tuple[Any, ...]]) -> None:
        """Unpack the blocks that these rows of `BLOCK` are; raises ColdBlockDamaged as above."""
        for block_id, block, seal, conversation_id, first_seq, last_seq in found:
            held = messages_in(block, seal)
            if isinstance(held, str):
                damage = ColdBlockDamaged(
                    block_id,
                    held,
                    messages=f"messages {first_seq} to {last_seq} of conversation {conversation_id}",
                    conversation_id=conversation_id,
                    first_seq=first_seq,
                    last_seq=last_seq,
                )
                self.blocks[block_id] = self._lacking(damage)
            else:
                self.blocks[block_id] = held

    def message(self, block_id: int, message_id: int) -> ColdMessage:
        """The texts of a message in a block that was read."""
        found = self.blocks[block_id].get(message_id)
        return self._absent(block_id, message_id) if found is None else found

    def values_of(
        self, mark: Mapping[str, Any], message_id: int, part_id: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a part lacks whose `exact` column is this mark, and what it says exactly."""
        return self.message(mark[MARK], message_id).values_of(part_id)

    def _lacking(self, damage: ColdBlockDamaged) -> dict[int, ColdMessage]:
        raise damage

    def _gone(self, block_id: int) -> dict[int, ColdMessage]:
        raise BlockGone(block_id)

    def _absent(self, block_id: int, message_id: int) -> ColdMessage:
        raise ColdBlockDamaged(block_id, f"it does not hold msg_{message_id}, which it should", message_id=message_id)


@dataclass(frozen=True)
class WhatIsLeft(ColdTexts):
    """The same for whoever looks for damage, at one moment of the database: what cannot be read is told, and empty."""

    tell: Callable[[ColdBlockDamaged], object] = field(kw_only=True)

    def _lacking(self, damage: ColdBlockDamaged) -> dict[int, ColdMessage]:
        self.tell(damage)
        return {}

    def _gone(self, block_id: int) -> dict[int, ColdMessage]:
        return self._lacking(ColdBlockDamaged(block_id, "it is not there"))

    def _absent(self, block_id: int, message_id: int) -> ColdMessage:
        return ColdMessage(message_id, content="")


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


def cold_texts(block_ids: Iterable[int | None], texts: ColdTexts | None = None) -> ColdTexts | None:
    """The blocks behind these rows' `cold_block_id`; None, and nothing asked, if none of them is cold."""
    wanted = {block_id for block_id in block_ids if block_id is not None}
    if not wanted:
        return texts
    texts = ColdTexts() if texts is None else texts
    texts.read(wanted)
    return texts


def until_settled(read: Callable[[], T]) -> T:
    """What `read` reads, again if a block went away between two of its queries; ColdBlockDamaged if it stays away."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return read()
        except BlockGone:
            continue
    try:
        return read()
    except BlockGone as gone:
        raise ColdBlockDamaged(gone.args[0], "it is not there") from gone


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
