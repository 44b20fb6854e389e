"""Parse ids: determine the kind of an item from the form of its id; no I/O.

A number has only one valid form: ASCII digits without leading zeros. So `msg_01` is not an id.
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
    # The length is exact, because session ids of some agent programs (hosts) also begin with `ses_`.
    ItemKind.SESSION_SUMMARY: "ses_[0-9a-f]{16}",
}
_ID = re.compile("|".join(f"(?P<{kind.value}>{form})" for kind, form in _FORMS.items()))
# In a text, an id ends before a character that is no ASCII letter, no underscore and no digit (also not ² or ３).
_IN_TEXT = re.compile(rf"(?<![A-Za-z0-9_])(?:{_ID.pattern})(?![A-Za-z0-9_])(?!\d|[\u00b2\u00b3\u00b9\u2070-\u209f])")


class Named(NamedTuple):
    """An id, and the kind of the item that it names."""

    kind: ItemKind
    id: str

    @property
    def number(self) -> int:
        """The number in the id of a message or a conversation."""
        return int(self.id.partition("_")[2])


def named(text: str) -> Named | None:
    """Parse the whole text as an id; return None if it is not an id."""
    found = _ID.fullmatch(text)
    return _named(found) if found is not None else None


def names_in(text: str) -> tuple[Named, ...]:
    """Find the ids in a text, in order, without duplicates."""
    return tuple(dict.fromkeys(map(_named, _IN_TEXT.finditer(text))))


def without(text: str, ids: Collection[str], *, instead: str) -> str:
    """Replace each of these ids in the text by `instead`."""
    return _IN_TEXT.sub(lambda found: instead if found[0] in ids else found[0], text)


def _named(found: re.Match[str]) -> Named:
    assert found.lastgroup is not None
    return Named(ItemKind(found.lastgroup), found[found.lastgroup])
