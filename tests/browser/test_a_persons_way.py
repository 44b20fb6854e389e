"""What a person does with LCM in a browser, from logging in to following a summary back to what was said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Site, Window

pytestmark = pytest.mark.thorough

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "conversations"
IMPORTED = DATA / "aider_00.jsonl.gz"


@pytest.mark.skipif(not IMPORTED.exists(), reason="../shared/data is not here")
def test_a_history_is_imported_compacted_and_followed_back_to_its_messages(site: Site, window: Window):
    page = window.page
    window.log_in("ann", site.passwords["ann"])

    page.click("nav >> text=Conversations")
    page.click("text=Import a history")
    page.set_input_files("#file", str(IMPORTED))
    page.click("main >> button.primary")
    page.wait_for_selector("text=messages stored")
    assert page.locator("article.message").count() > 20

    # A worker makes room; the page tells when it is through.
    page.click("text=Compact now")
    page.wait_for_selector("#job >> text=show the context now", timeout=60_000)

    page.click(".tabs >> text=Lineage")
    page.wait_for_selector(".node .bar.active")
    page.locator(".node[aria-label*='depth 0']").first.click()
    page.wait_for_selector("#summary >> text=Sources")
    assert "node=sum_" in page.url
    page.locator("#summary article.source h4 a").first.click()
    page.wait_for_selector("article.message.wanted, article.message:target")
    assert "seq=" in page.url

    page.go_back()
    page.wait_for_selector("#summary >> text=Sources")


def test_keys_alone_move_about_in_the_lineage(site: Site, window: Window):
    page = window.page
    texts = (f"Turn {n} of src/module_{n}.py {'many words ' * 30}" for n in range(300))
    conversation_id = site.imported("turns", texts, "--compact")
    window.log_in("rita", site.passwords["rita"])
    page.goto(f"/w/default/conversations/{conversation_id}/lineage/")
    seen = page.locator(".lineage-view")

    def shown() -> tuple[int, int]:
        return int(seen.get_attribute("data-from")), int(seen.get_attribute("data-to"))

    seen.focus()
    page.keyboard.press("+")
    page.wait_for_function("() => document.querySelector('.lineage-view').dataset.to < 300")
    narrowed = shown()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"() => Number(document.querySelector('.lineage-view').dataset.from) < {narrowed[0]}")
    page.keyboard.press("0")
    page.wait_for_function("() => document.querySelector('.lineage-view').dataset.to === '300'")
    assert shown() == (1, 300)

    page.locator(".node").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#summary >> text=Summary")
    page.locator("[data-twig]").first.click()
    page.wait_for_selector("[role=group] [role=treeitem]")

    # A link to what is seen is enough to see it again.
    address = page.url
    page.goto("/w/default/")
    page.goto(address)
    page.wait_for_selector("#summary >> text=Summary")


def test_who_asks_for_more_by_keys_goes_on_where_they_were(site: Site, window: Window):
    page = window.page
    conversation_id = site.imported("hundred", (f"Turn {n}" for n in range(1, 101)))
    window.log_in("rita", site.passwords["rita"])
    address = f"/w/default/conversations/{conversation_id}/"
    page.goto(address)
    top = "() => document.querySelector('#m61').getBoundingClientRect().top"

    page.locator("text=Earlier messages").focus()
    before = page.evaluate(top)
    page.keyboard.press("Enter")
    page.wait_for_selector("#m21")
    page.wait_for_function("() => document.activeElement.closest('article')?.id === 'm60'")

    assert abs(page.evaluate(top) - before) < 2
    page.goto(f"{address}?seq=1")
    page.locator("text=Later messages").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.closest('article')?.id === 'm41'")


def test_the_menu_of_a_narrow_window_is_opened_and_closed_by_keys(site: Site, window: Window):
    page = window.page
    window.log_in("rita", site.passwords["rita"])
    page.set_viewport_size({"width": 390, "height": 800})
    menu = page.locator(".bar-menu")

    menu.focus()
    page.keyboard.press("Enter")
    assert page.locator("#nav").is_visible() and menu.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")

    assert not page.locator("#nav").is_visible() and menu.get_attribute("aria-expanded") == "false"
    assert page.evaluate("() => document.activeElement.className") == "bar-menu"
