"""Format numbers and texts for people. Pure."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Format a count: `1 message`, `2 messages`; pass an irregular `plural`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
