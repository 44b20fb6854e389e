import pytest

from tests.factories import a_conversation


@pytest.fixture
def conversation_id(db: None) -> int:
    """A conversation in which nothing has been said."""
    return a_conversation().conversation_id
