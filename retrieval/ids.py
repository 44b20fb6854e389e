"""What an id names, by its form alone. Pure.

Numbers are written in one way: `msg_01` is not `msg_1`, and digits are those of ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from retrieval.types import ItemKind

_NUMBER = "0|[1-9][0-9]{0,18}"
_FORMS = {
    ItemKind.SUMMARY: r"sum_\w+",
    ItemKind.FILE: r"file_\w+",
    ItemKind.RUN: r"run_\w+",
    ItemKind.MESSAGE: f"msg_(?:{_NUMBER})",
    ItemKind.CONVERSATION: f"conv_(?:{_NUMBER})",
    # In full, as hosts name their sessions in much the same way.
    ItemKind.SESSION_SUMMARY: "ses_[0-9a-f]{16}",
}
_ID = re.compile("|".join(f"(?P<{kind.value}>{form})" for kind, form in _FORMS.items()))
# In a text, an id ends where no letter or digit of ASCII follows, and no other digit either: ², ３.
_IN_TEXT = re.compile(rf"(?<![A-Za-z0-9_])(?:{_ID.pattern})(?![A-Za-z0-9_])(?!\d|[\u00b2\u00b3\u00b9\u2070-\u209f])")


class Named(NamedTuple):
    """An id as it is written, and of what kind it is."""

    kind: ItemKind
    id: str

    @property
    def number(self) -> int:
        """Of a message or a conversation."""
        return int(self.id.partition("_")[2])


def named(text: str) -> Named | None:
    """The id that the text is; None if it is none."""
    found = _ID.fullmatch(text)
    return _named(found) if found is not None else None


def names_in(text: str) -> tuple[Named, ...]:
    """The ids that stand in the text, in their order, each once."""
    return tuple(dict.fromkeys(map(_named, _IN_TEXT.finditer(text))))


def without(text: str, ids: Collection[str], *, instead: str) -> str:
    """The text with something else in the place of these ids."""
    return _IN_TEXT.sub(lambda found: instead if found[0] in ids else found[0], text)


def _named(found: re.Match[str]) -> Named:
    assert found.lastgroup is not None
    return Named(ItemKind(found.lastgroup), found[found.lastgroup])
