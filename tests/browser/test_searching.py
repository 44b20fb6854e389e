"""What a script does on the pages of search and of the context: found while typed, more below, compared at a click."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Site, Window


@pytest.fixture(scope="module")
def conversation_id(site: Site) -> int:
    """Sixty turns about a harbour, the older ones in summaries."""
    texts = (f"Turn {n} about the harbour {'and its boats ' * 40}" for n in range(60))
    return site.imported("harbour", texts, "--compact")


@pytest.mark.thorough
def test_what_is_typed_is_found_and_more_of_it_stays(site: Site, conversation_id: int, window: Window):
    page = window.page
    window.log_in("rita", site.passwords["rita"])
    page.goto("/w/default/search/")

    page.locator("#query").press_sequentially("harbour", delay=20)
    page.wait_for_selector(".hit mark")
    page.select_option("#scope", "messages")
    page.wait_for_url("**scope=messages")
    page.click(".more button")
    page.wait_for_function("() => document.querySelectorAll('.hit.user').length === 40")

    # What was left open is not in the address.
    assert page.url.endswith("/search/?query=harbour&mode=full_text&scope=messages")
    page.reload()
    page.wait_for_selector(".hit")
    assert page.input_value("#query") == "harbour" and page.locator(".hit").count() == 20
    page.locator(".hit header a").first.click()
    page.wait_for_selector("article.message.wanted")


@pytest.mark.thorough
def test_the_back_button_leads_to_what_the_address_says(site: Site, conversation_id: int, window: Window):
    page = window.page
    site.lcm("workspace", "create", "second")
    site.lcm("user", "role", "rita", "--role", "reader", "--workspace", "second")
    page.goto("/login/?next=/w/default/search/%3Fquery=harbour")
    page.fill("#id_username", "rita")
    page.fill("#id_password", site.passwords["rita"])
    page.click("button.primary")

    page.fill("#query", "boats")
    page.wait_for_url("**query=boats**")
    page.go_back()
    page.wait_for_selector(".hit mark >> text=harbour")
    assert page.input_value("#query") == "harbour" and page.locator("nav").is_visible()

    page.select_option("#workspace", "second")
    page.wait_for_url("**/w/second/")
    page.go_back()
    page.wait_for_url("**/w/default/**")
    assert page.input_value("#workspace") == "default"


# In short: dashboard/test_inspector_page.py, which asks for the same without scripts.
@pytest.mark.thorough
def test_a_context_is_read_to_the_letter_kept_and_compared(site: Site, conversation_id: int, window: Window):
    page = window.page
    window.log_in("rita", site.passwords["rita"])
    page.goto(f"/w/default/conversations/{conversation_id}/context/")

    for budget in ("2000", "6000"):
        page.fill("#budget", budget)
        page.click("text=Assemble")
        page.wait_for_url(f"**budget={budget}**")
        page.click("text=Keep this receipt")
        page.wait_for_selector("text=The receipt is kept as")
    page.click("text=Compare")
    page.wait_for_selector("#difference >> text=added")
    page.click("text=Show the exact text")
    page.wait_for_selector("#context-text article.item pre")

    assert page.locator("#context-text pre").last.inner_text().startswith("Turn 59 about the harbour")
