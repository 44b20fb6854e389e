"""An operator finds that something is wrong, reads why, has it repaired by an admin, and takes that back again."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Site, Window
from tests.lcmsite.operating import EmbeddedDatabase

pytestmark = pytest.mark.thorough


def test_a_broken_promise_is_found_planned_approved_applied_and_undone(site: Site, window: Window):
    page = window.page
    conversation_id = site.imported("trusted", (f"Turn {n}" for n in range(20)))
    stored = EmbeddedDatabase(site.data_dir)
    query = f"SELECT total_tokens FROM conversations WHERE conversation_id = {conversation_id}"
    counted = stored.one(query)
    with stored.connect() as database:
        database.execute(
            "UPDATE conversations SET total_tokens = total_tokens + 7 WHERE conversation_id = %s", [conversation_id]
        )
    # Each question of the page is answered with yes.
    page.on("dialog", lambda dialog: dialog.accept())
    window.log_in("ann", site.passwords["ann"])

    page.click("nav >> text=Integrity")
    page.click("main >> button:has-text('Check')")
    page.click("text=Open the report", timeout=60_000)
    page.wait_for_selector("code:has-text('counters_are_recounts')")
    page.click("button:has-text('Plan repairs')")
    page.wait_for_selector("h1:has-text('Repair plan')")
    assert stored.one(query) == counted + 7

    page.click("button:has-text('Approve all')")
    page.click("button:has-text('Apply')")
    page.wait_for_selector("button:has-text('Undo the plan')")
    assert stored.one(query) == counted

    page.click("button:has-text('Undo the plan')")
    page.wait_for_selector(".head >> text=undone")
    assert stored.one(query) == counted + 7


def test_days_that_are_typed_are_the_rule(site: Site, window: Window):
    page = window.page
    window.log_in("ann", site.passwords["ann"])
    page.goto("/w/default/retention/")

    page.fill("input[name=days]", "400")
    page.click("text=Save")
    page.wait_for_selector("text=The rule was changed.")

    assert page.is_checked("input[value=days]") and page.input_value("input[name=days]") == "400"
    page.check("input[value=site]")
    page.click("text=Save")
    page.wait_for_selector(".figure >> text=never")
