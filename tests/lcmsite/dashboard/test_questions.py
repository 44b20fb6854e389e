"""How often a page asks the database: at most eight times, whatever there is to show, who asks and where included."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth import get_user_model
from django.test import Client, override_settings
from pytest_django import DjangoDbBlocker

from lcmsite.dashboard.navigation import GROUPS, TABS
from tests.committed import committed
from tests.lcmsite.dashboard.furnished import Furnished, furnish
from tests.statements import counted_statements

MOST = 8
# What searches or assembles asks as often as that takes, and a bit more: the tests of those pages compare the two.
ANSWERS = {"context-text"}
WORDS = ("the harbour", "its boats", "the lighthouse.txt", "Ann", "seven_ferries")


@pytest.fixture(scope="module")
def furnished(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Furnished]:
    """Committed, as in a transaction of the test's own there would be savepoints to count."""
    quickly = {"PASSWORD_HASHERS": ["django.contrib.auth.hashers.MD5PasswordHasher"]}
    with committed(django_db_blocker), override_settings(MEDIA_ROOT=tmp_path_factory.mktemp("files"), **quickly):
        yield furnish(WORDS)


@pytest.fixture(scope="module")
def ann(furnished: Furnished) -> Client:
    """An admin, who is shown everything, in three workspaces."""
    client = Client()
    client.force_login(get_user_model().objects.get(username="ann"), backend="lcmsite.people.PeopleBackend")
    return client


def test_every_page_of_the_navigation_is_asked_for(furnished):
    named = {name for _, entries in GROUPS for name, _, _ in entries} | {name for name, _, _ in TABS}

    assert named <= {name for name, _ in furnished.pages()}


def test_no_page_asks_more_than_eight_questions(furnished, ann):
    asked = {}
    for _, address in furnished.pages():
        with counted_statements() as sent:
            assert ann.get(address).status_code == 200, address
        asked[address] = len(sent)

    assert {address: count for address, count in asked.items() if count > MOST} == {}
    assert all(count >= 2 for count in asked.values()), "who asks is asked for"


def test_nor_does_what_comes_into_a_page_afterwards(furnished, ann):
    asked = {}
    for name, address in furnished.pieces():
        with counted_statements() as sent:
            assert ann.get(address, headers={"HX-Request": "true"}).status_code == 200, address
        if name not in ANSWERS:
            asked[address] = len(sent)

    assert {address: count for address, count in asked.items() if count > MOST} == {}
