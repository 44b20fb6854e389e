"""The cost of a lineage window depends on its width, not on the length of the history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from compaction.engine import CompactionEngine
from conversations.models import Summary
from conversations.scope import Scope
from lcmsite.access import users
from lcmsite.dashboard.parts.lineage_layout import NARROWEST_BAR
from lcmsite.types import Role
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.measure import blocks
from tests.browser.conftest import Window
from tests.committed import committed
from tests.factories import a_store, a_workspace
from tests.lcmsite.dashboard.visiting import logged_in
from tests.served import served
from tests.statements import counted_statements

pytestmark = pytest.mark.thorough

WIDTH = 1440
MOST_QUESTIONS = 12
SMALL = {"leaf_chunk_tokens": 800, "leaf_target_tokens": 40, "condensed_target_tokens": 60, "fresh_tail_count": 8}
# From all of it down to single messages, sideways, and out again.
MOVES = ("in", "in", "right", "in", "in", "left", "in", "in", "in", "in", "right", "out", "out", "whole")

# From the click until the new window has been painted.
MOVED = """async way => {
    const holder = document.getElementById("picture"), before = performance.now();
    const drawn = new Promise(done => new MutationObserver((_, seen) => { seen.disconnect(); done(); })
        .observe(holder, {childList: true}));
    document.querySelector(`[data-view=${way}]`).click();
    await drawn;
    await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
    return performance.now() - before;
}"""
DRAWN = "() => document.querySelectorAll('.lineage-svg .node, .lineage-svg .bundle').length"
ROWS = "() => document.querySelectorAll('.lineage-svg .floor').length - 1"
REST = "() => document.querySelectorAll('.lineage-svg *').length"


@pytest.fixture(
    scope="module", params=[1_500, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(1_800)])]
)
def history(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[tuple[int, int, str]]:
    """A compacted conversation of so many messages, how many summaries it has, and a session to look at it."""
    with committed(django_db_blocker):
        users.add(Scope(a_workspace().pk), username="rita", role=Role.READER, password="correct horse 1")
        store = a_store()
        conversation_id = store.open_conversation(session_id="long", overrides=SMALL).conversation_id
        for batch in blocks(Corpus(request.param), 500):
            store.append_messages(conversation_id=conversation_id, messages=batch)
        CompactionEngine.from_settings().compact(conversation_id=conversation_id)
        summaries = Summary.objects.filter(conversation_id=conversation_id).count()
        yield conversation_id, summaries, logged_in("rita").cookies["sessionid"].value


def test_a_window_asks_few_questions_and_draws_what_can_be_told_apart(history: tuple[int, int, str], browser: Any):
    conversation_id, summaries, session = history
    assert summaries > 150

    with served() as address:
        context = browser.new_context(base_url=address, viewport={"width": WIDTH, "height": 900})
        context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
        window = Window(context.new_page(), address).watch()
        page = window.page
        page.goto(f"/w/default/conversations/{conversation_id}/lineage/")
        page.wait_for_function("() => Number(document.querySelector('.lineage-svg').getAttribute('width')) > 1100")
        asked, drawn = [], []
        for way in MOVES:
            with counted_statements() as sent:
                page.evaluate(MOVED, way)
            asked.append(len(sent))
            drawn.append(page.evaluate(DRAWN) / page.evaluate(ROWS))
            assert page.evaluate(REST) < 4 * WIDTH
        context.close()

    assert max(asked) <= MOST_QUESTIONS, asked
    assert 0 < max(drawn) <= WIDTH / NARROWEST_BAR, drawn
    assert window.troubles == []
