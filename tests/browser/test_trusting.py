"""An operator finds that something is wrong, reads why, has it repaired by an admin, and takes that back again."""

from __future__ import annotations

import psycopg
import pytest

from lcmsite.embedded_postgres.location import DATABASE, PORT, ROLE, Location
from tests.browser.conftest import Site, Window

pytestmark = pytest.mark.thorough


def test_a_broken_promise_is_found_planned_approved_applied_and_undone(site: Site, window: Window):
    page = window.page
    history = site.data_dir / "trusted.jsonl"
    history.write_text("\n".join(f'{{"role": "user", "content": "Turn {n}"}}' for n in range(20)))
    [talk] = site.lcm("import", str(history))["conversations"]
    counted = total_tokens(site, talk["conversation_id"])
    total_tokens(site, talk["conversation_id"], instead=counted + 7)
    # Each question of the page is answered with yes.
    page.on("dialog", lambda dialog: dialog.accept())
    window.log_in("ann", site.passwords["ann"])

    page.click("nav >> text=Integrity")
    page.click("main >> button:has-text('Check')")
    page.click("text=Open the report", timeout=60_000)
    page.wait_for_selector("code:has-text('counters_are_recounts')")
    page.click("button:has-text('Plan repairs')")
    page.wait_for_selector("h1:has-text('Repair plan')")
    assert total_tokens(site, talk["conversation_id"]) == counted + 7

    page.click("button:has-text('Approve all')")
    page.click("button:has-text('Apply')")
    page.wait_for_selector("button:has-text('Undo the plan')")
    assert total_tokens(site, talk["conversation_id"]) == counted

    page.click("button:has-text('Undo the plan')")
    page.wait_for_selector(".head >> text=undone")
    assert total_tokens(site, talk["conversation_id"]) == counted + 7


def total_tokens(site: Site, conversation_id: int, *, instead: int | None = None) -> int:
    """What the row says, in the site's own database; or what it is made to say."""
    where = {"host": str(Location(site.data_dir).socket_dir), "port": PORT, "user": ROLE, "dbname": DATABASE}
    with psycopg.connect(**where) as database:
        if instead is not None:
            database.execute(
                "UPDATE conversations SET total_tokens = %s WHERE conversation_id = %s", [instead, conversation_id]
            )
        row = database.execute(
            "SELECT total_tokens FROM conversations WHERE conversation_id = %s", [conversation_id]
        ).fetchone()
    assert row is not None
    return int(row[0])
