"""What tests of integrity share."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.integrity.breaking import Compacted, a_compacted_conversation
from tests.integrity.erasing import erasures, storage  # noqa: F401 (for the tests of erasures)


@pytest.fixture(scope="module")
def conversation(module_rows: None) -> Compacted:
    """A compacted conversation, which each test breaks for itself alone."""
    # Beside it another one, which no finding may ever name.
    a_compacted_conversation()
    made = a_compacted_conversation()
    # Nothing is left to be checked, which would keep a test from altering a table.
    connection.check_constraints()
    return made
