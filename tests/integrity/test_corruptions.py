"""Whatever is broken, the right invariant finds it; and nothing is found where nothing is."""

from __future__ import annotations

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings, strategies

from conversations.files.large_files import LargeFileService
from integrity.checker import IntegrityChecker
from tests.integrity.breaking import Compacted, a_compacted_conversation, found
from tests.integrity.corruptions import CORRUPTIONS, put_back


@pytest.fixture
def conversation(db: None) -> Compacted:
    # Beside it another one, which no finding may ever name.
    a_compacted_conversation()
    broken = a_compacted_conversation()
    LargeFileService.from_settings().store(conversation_id=broken.id, content=b"a,b\n1,2\n" * 100)
    return broken


def look_for(conversation: Compacted, kind: str, number: int) -> None:
    """Break it, check everything, and put it back."""
    corruption = CORRUPTIONS[kind]
    undone = transaction.savepoint()
    try:
        corruption.corrupt(conversation, number)
        report = IntegrityChecker.from_settings().run()
    finally:
        transaction.savepoint_rollback(undone)
        put_back(conversation)

    assert corruption.code in found(report), (kind, number)
    named = {finding.conversation_id for result in report.broken for finding in result.findings}
    assert named <= {conversation.id, None}, (kind, number)


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_every_kind_of_corruption_is_found_by_its_invariant(conversation, kind):
    for number in (0, 1):
        look_for(conversation, kind, number)


RANDOMLY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SOMETHING = given(kind=strategies.sampled_from(sorted(CORRUPTIONS)), number=strategies.integers(0, 10**6))


@settings(RANDOMLY, max_examples=20)
@SOMETHING
def test_random_corruptions_are_found(conversation, kind, number):
    look_for(conversation, kind, number)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(RANDOMLY, max_examples=1000)
@SOMETHING
def test_a_thousand_random_corruptions_are_found(conversation, kind, number):
    look_for(conversation, kind, number)


def test_nothing_is_found_in_what_was_broken_and_put_back(conversation):
    for kind in CORRUPTIONS:
        look_for(conversation, kind, 7)

    assert IntegrityChecker.from_settings().run().is_clean
