"""Tables on the command line say what each row is about, also where that stands in a record within the record."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from rich.console import Console

from lcmsite.cli.terminal_layout import table
from tests.factories import a_conversation
from tests.lcmsite.callers import lcm


@dataclass(frozen=True)
class Boat:
    boat_id: int
    name: str
    length: float


@dataclass(frozen=True)
class Weather:
    wind: int
    waves: float


@dataclass(frozen=True)
class Journey:
    boat: Boat | None
    weather: Weather | None
    miles: int


def columns_of(rows: list[Journey]) -> list[str]:
    return [str(column.header) for column in table(rows).columns]


def test_a_record_within_a_record_becomes_the_columns_that_name_it_or_all_of_its_own():
    rows = [Journey(None, None, 3), Journey(Boat(7, "Ann", 9.5), Weather(12, 0.4), 40)]
    console = Console(width=100)

    with console.capture() as shown:
        console.print(table(rows))

    assert set(columns_of(rows)) == {"boat id", "name", "wind", "waves", "miles"}
    assert all(each in shown.get() for each in ("7", "Ann", "12", "0.4", "40"))
    assert "9.5" not in shown.get()


def test_what_names_a_record_within_stands_first():
    assert columns_of([Journey(Boat(7, "Ann", 9.5), None, 40)]) == ["boat id", "name", "miles"]


@pytest.mark.django_db
def test_browse_says_of_which_conversation():
    number = a_conversation("hello", title="To Rome", session_id="rome").conversation_id

    shown = lcm("browse").out.splitlines()
    head = next(line for line in shown if "conversation id" in line)
    row = shown[shown.index(head) + 1]

    assert head.split()[:6] == ["conversation", "id", "session", "id", "title", "system"]
    assert row.split()[:4] == [str(number), "rome", "To", "Rome"]


@pytest.mark.django_db
def test_list_says_how_much_was_said():
    a_conversation("hello", "hi there", session_id="rome")

    head, row = lcm("list").out.splitlines()[:2]

    assert "message count" in head and "total tokens" in head
    assert "rome" in row and " 2 " in row
