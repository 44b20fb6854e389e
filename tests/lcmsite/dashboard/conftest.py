"""Browsers of people with each role, in the default workspace."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.lcmsite.dashboard.visiting import browser_of, browser_of_a_superuser


@pytest.fixture
def reader(db: None) -> Client:
    return browser_of("reader")


@pytest.fixture
def operator(db: None) -> Client:
    return browser_of("operator")


@pytest.fixture
def admin(db: None) -> Client:
    return browser_of("admin")


@pytest.fixture
def superuser(db: None) -> Client:
    return browser_of_a_superuser()
