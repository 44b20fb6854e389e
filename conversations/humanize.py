"""Format numbers and texts for people. Pure."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Format a count: `1 message`, `1,204 entries`; pass an irregular `plural`."""
    regular = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural or regular}"


def encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def words(name: object) -> str:
    """A name from the code as words: not_needed as not needed."""
    return str(name).replace("_", " ")
