"""What an attachment is, and what names it where it cannot be shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from conversations.content.lossless_values import storable
from conversations.types import NewPart

_DATA = re.compile(r"data:([^;,]+)((?:;[^;,]+)*);base64,([A-Za-z0-9+/]+={0,2})")


def data_of(part: NewPart) -> tuple[str, str] | None:
    """The media type and the base64 of an attachment that holds its bytes itself."""
    found = _DATA.fullmatch(part.file_url or "")
    return (found[1].lower(), found[3]) if found else None


def link_of(part: NewPart, *schemes: str) -> str | None:
    """The address of an attachment that lies elsewhere."""
    url = part.file_url or ""
    is_link = any(url.startswith(f"{scheme}://") for scheme in schemes)
    return url if is_link and url.isprintable() and url == storable(url) else None


def media_type_of(part: NewPart) -> str:
    data = data_of(part)
    return data[0] if data else (part.file_mime or "").lower()


def name_of(part: NewPart) -> str:
    """What a file is called, where an API wants a name."""
    return part.file_name if part.file_name and part.file_name == storable(part.file_name) else "file"


def is_image(part: NewPart) -> bool:
    return media_type_of(part).startswith("image/")


def stand_in(part: NewPart) -> str:
    """What is said of an attachment where it cannot be shown."""
    kind = media_type_of(part).partition("/")[0]
    words = [kind if kind in ("image", "audio", "video") else "file", storable(part.file_name or "")]
    caption = storable(part.text_content or "").strip()
    return f"[{' '.join(filter(None, words))}{f': {caption}' if caption else ''}]"


def vendor_keys(part: NewPart, note: str, key: str) -> Mapping[str, Any]:
    """What a format has kept of an attachment beyond our columns, such as how closely an image is to be looked at."""
    kept: Any = part.metadata
    for step in (note, "inside", key, "add"):
        kept = kept.get(step) if isinstance(kept, Mapping) else None
    return kept if isinstance(kept, Mapping) else {}
