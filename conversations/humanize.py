"""How sentences count things. Pure."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 message`, `2 messages`; a plural that takes more than an s is given."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
