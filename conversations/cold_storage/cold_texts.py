"""The cold tier: texts in compressed blocks, combined with their rows when read.

A cold message keeps its row (seq, role, times, tokens, hashes, lineage) without its texts: content, metadata, exact
values, and the texts of its parts. A block holds the texts of about a hundred messages, compressed, as the columns had
them. The message names its block in `cold_block_id`. Each part whose texts were moved names it in its `exact` column.
So a reader of a row knows without another query whether the row is complete.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from conversations.errors import Unavailable
from conversations.sql import array, rows

T = TypeVar("T")

# The columns of a part that go to the cold tier. Type, flags, numbers and names stay, because searches and tool pairing
# use them: which tool was called, and which result belongs to which call.
PART_TEXTS = (
    "text_content", "tool_input", "tool_output", "tool_error", "tool_title", "patch_files", "file_url",
    "subtask_prompt", "subtask_desc", "metadata", "exact",
)  # fmt: skip
# These columns are kept as the JSON text that the database writes: parsing would lose digits of numbers.
JSON_TEXTS = frozenset({"tool_input", "metadata", "exact"})
# A URL up to this length names something, such as a stored file. A longer one contains the data itself.
LONGEST_URL = 500
# The key in a part's `exact` that names its block.
MARK = "cold_block_id"

# zlib, not lzma: cold texts are read more often than they are packed.
_LEVEL = 6
# A block can be thawed or repacked between the query for rows and the query for blocks: then both are run again.
_ATTEMPTS = 5

_BLOCKS = (
    "SELECT cold_block_id, packed, packed_hash, conversation_id, first_seq, last_seq FROM cold_blocks"
    " WHERE cold_block_id = ANY(%s)"
)


class BlockGone(LookupError):
    """A block was removed after its rows were read."""


class ColdBlockDamaged(Unavailable):
    """A cold block is damaged; retrying fails until the block is restored."""

    code = "cold_block_damaged"
    retryable = False

    def __init__(self, block_id: int, problem: str, *, messages: str = "", **context: Any) -> None:
        contents = f", which holds {messages}," if messages else ""
        super().__init__(
            f"Cold block {block_id}{contents} is damaged: {problem}. Run `lcm check`, and restore it from a ledger or "
            "a backup.",
            cold_block_id=block_id,
            **context,
        )


@dataclass(frozen=True)
class ColdMessage:
    """The texts of one message and its parts, as their columns held them."""

    message_id: int
    content: str
    metadata: str = "{}"
    exact: str | None = None
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def exactly(self) -> dict[str, Any]:
        """The exact values that the columns cannot hold; see `lossless_values`."""
        return {} if self.exact is None else json.loads(self.exact)

    def values_of(self, part_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the part's columns in this block, parsed, and its exact values."""
        texts = dict(self.parts.get(part_id, {}))
        for name in JSON_TEXTS & texts.keys():
            texts[name] = json.loads(texts[name])
        return texts, texts.pop("exact", None) or {}


def packed(messages: Iterable[ColdMessage]) -> bytes:
    """Pack messages into one block: a line of ASCII JSON for each, compressed."""
    return zlib.compress("".join(map(_line, messages)).encode("ascii"), _LEVEL)


def _line(message: ColdMessage) -> str:
    values = {name: value for name, value in vars(message).items() if value is not None}
    return json.dumps(values, separators=(",", ":")) + "\n"


def unpacked(block: bytes) -> dict[int, ColdMessage]:
    """Unpack a block into messages by id; ValueError if it holds anything else."""
    try:
        lines = zlib.decompress(block).decode("ascii").splitlines()
        messages = [ColdMessage(**json.loads(line)) for line in lines]
    except (zlib.error, TypeError) as wrong:
        raise ValueError("This is not a block of messages.") from wrong
    return {message.message_id: message for message in messages}


def packed_hash(block: bytes) -> bytes:
    return hashlib.sha256(block).digest()


@dataclass(frozen=True)
class ColdTexts:
    """A cache of the blocks that one call reads, each unpacked once."""

    blocks: dict[int, dict[int, ColdMessage]] = field(default_factory=dict)
    on_damage: Callable[[ColdBlockDamaged], object] | None = None

    def read(self, block_ids: Iterable[int]) -> None:
        """Load into this cache the blocks that it does not hold yet, in one query.

        Raises BlockGone for a removed block, and ColdBlockDamaged for one whose bytes have changed. With `on_damage`,
        these problems are passed to it instead.
        """
        missing = set(block_ids) - self.blocks.keys()
        if not missing:
            return
        for block_id, block, stored_hash, conversation_id, first_seq, last_seq in rows(_BLOCKS, [array(missing)]):
            held = messages_in(block, stored_hash)
            if isinstance(held, str):
                messages = f"messages {first_seq} to {last_seq} of conversation {conversation_id}"
                where = {"conversation_id": conversation_id, "first_seq": first_seq, "last_seq": last_seq}
                held = self._lacking(ColdBlockDamaged(block_id, held, messages=messages, **where))
            self.blocks[block_id] = held
        for block_id in sorted(missing - self.blocks.keys()):
            if self.on_damage is None:
                raise BlockGone(block_id)
            self.blocks[block_id] = self._lacking(ColdBlockDamaged(block_id, "it is missing"))

    def message(self, block_id: int, message_id: int) -> ColdMessage:
        """Return the texts of a message from a block that was read."""
        found = self.blocks[block_id].get(message_id)
        if found is None and self.on_damage is None:
            problem = f"it does not hold msg_{message_id}, which it should"
            raise ColdBlockDamaged(block_id, problem, message_id=message_id)
        return found or ColdMessage(message_id, content="")

    def _lacking(self, damage: ColdBlockDamaged) -> dict[int, ColdMessage]:
        if self.on_damage is None:
            raise damage
        self.on_damage(damage)
        return {}


def readable_texts(on_damage: Callable[[ColdBlockDamaged], object] = lambda damage: None) -> ColdTexts:
    """Build ColdTexts for checks: `on_damage` gets the damage, its texts are empty."""
    return ColdTexts(on_damage=on_damage)


def messages_in(block: bytes | memoryview, stored_hash: bytes | memoryview) -> dict[int, ColdMessage] | str:
    """Return the messages of a stored block, or what is wrong with it."""
    if packed_hash(bytes(block)) != bytes(stored_hash):
        return "its bytes do not match its hash"
    try:
        return unpacked(bytes(block))
    except ValueError:
        return "it cannot be unpacked"


def is_cold(exact: Any) -> bool:
    """Whether this value of a part's `exact` column names a block."""
    return isinstance(exact, dict) and MARK in exact


def cold_texts(block_ids: Iterable[int | None], texts: ColdTexts | None = None) -> ColdTexts | None:
    """Read the blocks that rows name; None, without a query, if no row is cold."""
    wanted = {block_id for block_id in block_ids if block_id is not None}
    if not wanted:
        return texts
    texts = ColdTexts() if texts is None else texts
    texts.read(wanted)
    return texts


def until_settled(read: Callable[[], T]) -> T:
    """Call `read`; retry it if a block was removed; finally ColdBlockDamaged."""
    for _ in range(_ATTEMPTS):
        try:
            return read()
        except BlockGone as found:
            gone = found
    raise ColdBlockDamaged(gone.args[0], "it is missing") from gone
