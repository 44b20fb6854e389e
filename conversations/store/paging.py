"""Lists that are read from the newest on, page by page."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q


def behind(*, field: str, moment: datetime, key: str | int) -> Q:
    """The rows that come after this one where the newest are first by the field, and, of one moment, by their keys.

    Said of the field alone first, so that its index leads there.
    """
    return Q(**{f"{field}__lte": moment}) & (Q(**{f"{field}__lt": moment}) | Q(pk__lt=key))
