"""What stands in an address may have been typed: what is no number there counts as not given."""

from __future__ import annotations

from django.http import QueryDict


def number_in(given: QueryDict, name: str) -> int | None:
    """A whole number of an address; None for anything else."""
    text = given.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def text_in(given: QueryDict, name: str) -> str:
    """A text of an address or a form, without the blanks around it; empty when not given."""
    return str(given.get(name, "")).strip()
