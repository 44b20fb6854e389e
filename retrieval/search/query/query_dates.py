"""Find the days, months and years that a query names, and whether it asks when. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
_DAY = r"(?P<{0}>[0-3]?\d)(?:st|nd|rd|th)?"
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?\b")
_NAMED = re.compile(
    rf"\b(?:{_DAY.format('before')}\s+(?:of\s+)?)?(?P<month>{_MONTH})\b\.?(?:\s+{_DAY.format('after')}\b(?!\d))?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_WEEKDAY = re.compile(rf"\b({'|'.join(_WEEKDAYS)})s?\b", re.IGNORECASE)

_ASKS_WHEN = re.compile(
    r"^\W*when\b|\bwhen\s+(?:did|do|does|is|are|was|were|will|has|have|had)\b"
    r"|\b(?:what|which)\s+(?:day|date|week|month|year)\b|\bhow\s+long\s+ago\b",
    re.IGNORECASE,
)

# What it tells of a moment that it lies in a given month, day of the month, weekday, year: the logarithm of how many
# there are. Of years a conversation sees few.
_MONTH_TELLS, _DAY_TELLS, _WEEKDAY_TELLS, _YEAR_TELLS = math.log(12), math.log(30), math.log(7), math.log(2)


@dataclass(frozen=True)
class Dates:
    """The dates in a query: any of these may be empty."""

    months: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.months or self.days or self.weekdays or self.years)

    def information_in(self, moment: datetime) -> float:
        """How much of the dates is true of this moment, in nats."""
        return (
            _MONTH_TELLS * (moment.month in self.months)
            + _DAY_TELLS * (moment.day in self.days and (not self.months or moment.month in self.months))
            + _WEEKDAY_TELLS * (moment.weekday() in self.weekdays)
            + _YEAR_TELLS * (moment.year in self.years)
        )


def asks_when(text: str) -> bool:
    """Whether a question is answered by a time."""
    return _ASKS_WHEN.search(text) is not None


def dates_in(text: str) -> Dates:
    """The dates that a text names; `May` and `March` count only as a name of a month would be written."""
    months, days, years = set(), set(), {int(year) for year in _YEAR.findall(text)}
    for found in _ISO.finditer(text):
        months.add(int(found["month"]))
        if found["day"]:
            days.add(int(found["day"]))
    for found in _NAMED.finditer(text):
        name = found["month"]
        if name.lower() in ("may", "march", "mar", "dec", "sep", "jan") and not name[0].isupper():
            continue
        months.add([month[:3] for month in _MONTHS].index(name[:3].lower()) + 1)
        days.update(int(day) for day in (found["before"], found["after"]) if day)
    weekdays = {_WEEKDAYS.index(name.lower()) for name in _WEEKDAY.findall(text)}
    return Dates(
        months=frozenset(month for month in months if 1 <= month <= 12),
        days=frozenset(day for day in days if 1 <= day <= 31),
        weekdays=frozenset(weekdays),
        years=frozenset(year for year in years if date.min.year <= year),
    )
