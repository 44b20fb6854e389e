"""Every page in a real browser: what hostile people wrote runs nowhere and breaks nothing, and everybody can use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Window
from tests.lcmsite.dashboard.furnished import Furnished, furnished_in
from tests.lcmsite.dashboard.hostile import STRINGS
from tests.lcmsite.dashboard.visiting import logged_in
from tests.served import served

pytestmark = pytest.mark.thorough

WIDE, PHONE = 1440, 390
AXE = next((Path(__file__).parent / "vendor").glob("axe-*.min.js"))
# What stands beyond the edge of the window, and is not in a box that scrolls or cuts it off.
STICKING_OUT = """() => {
    const held = (element) => {
        for (let each = element.parentElement; each; each = each.parentElement)
            if (getComputedStyle(each).overflowX !== "visible") return true;
        return false;
    };
    return [...document.body.querySelectorAll("*")].filter((each) => {
        const box = each.getBoundingClientRect();
        return box.width && (box.right > innerWidth + 1 || box.left < -1) && !each.closest(".skip") && !held(each);
    }).map((each) => each.outerHTML.slice(0, 120)).slice(0, 5);
}"""

# Rows that become lists of their own where there is no room for columns: of those, nothing is beside the window.
OUT_OF_SIGHT = """() => [...document.querySelectorAll(".table:has(.stacked)")]
    .filter((each) => innerWidth < 768 && each.scrollWidth > each.clientWidth + 1)
    .map((each) => each.innerHTML.slice(0, 120))"""

# Words that turn the direction of text must turn nothing but themselves: they end in an element of their own.
TURNED_ROUND = """() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
    while (texts.nextNode()) {
        if (!/[\\u202a-\\u202e\\u2066-\\u2069]/.test(texts.currentNode.data)) continue;
        const around = getComputedStyle(texts.currentNode.parentElement);
        if (around.display === "inline" && !around.unicodeBidi.startsWith("isolate"))
            found.push(texts.currentNode.parentElement.outerHTML.slice(0, 120));
    }
    return found.slice(0, 5);
}"""
AXE_RUN = """async rules => {
    const only = rules ? {runOnly: {type: "rule", values: rules}} : {};
    const found = await axe.run(document, {resultTypes: ["violations"], ...only});
    return found.violations.filter((each) => ["serious", "critical"].includes(each.impact)).map((each) => {
        const [first] = each.nodes;
        return [each.id, each.nodes.length, first.html.slice(0, 160), first.failureSummary.slice(0, 300)];
    });
}"""


furnished = furnished_in(STRINGS)


@pytest.fixture(autouse=True)
def files_of_its_own(furnished: Furnished) -> None:
    """None: all tests here look at the same files."""


@pytest.fixture(scope="module")
def session(furnished: Furnished) -> dict[str, str]:
    return {"name": "sessionid", "value": logged_in("sue").cookies["sessionid"].value}


@pytest.fixture(scope="module")
def address(session: dict[str, str]) -> Iterator[str]:
    with served() as url:
        yield url


@pytest.fixture
def opened(address: str, session: dict[str, str], browser: Any) -> Iterator[Window]:
    context = browser.new_context(base_url=address, viewport={"width": WIDE, "height": 900}, reduced_motion="reduce")
    context.add_cookies([{**session, "url": address}])
    window = Window(context.new_page(), address).watch()
    window.page.on("dialog", lambda dialog: (window.troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    yield window
    context.close()


def show(page: Any, path: str) -> None:
    """Open it, with all that comes into it afterwards."""
    page.goto(path)
    page.wait_for_function("() => window.htmx && !document.querySelector('.htmx-request')")


def test_what_anybody_wrote_runs_nowhere_and_breaks_no_page(furnished: Furnished, opened: Window):
    page = opened.page
    assert len(STRINGS) >= 200

    wrong = []
    for _, path in (*furnished.pages(), *furnished.pages_of_the_site()):
        for width in (WIDE, PHONE):
            page.set_viewport_size({"width": width, "height": 900})
            if width == WIDE:
                show(page, path)
            scrolls = page.evaluate("document.scrollingElement.scrollWidth > innerWidth")
            beside = page.evaluate(STICKING_OUT) + page.evaluate(OUT_OF_SIGHT)
            wrong += [(path, width, each) for each in beside + ["the page scrolls"] * scrolls]
        wrong += [(path, each) for each in page.evaluate(TURNED_ROUND)]

    assert wrong == []
    assert opened.troubles == []


def test_nor_does_what_a_script_asks_for_afterwards(furnished: Furnished, opened: Window):
    page = opened.page
    show(page, "/w/default/")

    for _, path in furnished.pieces():
        page.evaluate("path => htmx.ajax('GET', path, {target: '#content', swap: 'innerHTML'})", path)
        assert page.locator("#content").inner_html().strip()

    assert opened.troubles == []


@pytest.mark.timeout(300)
def test_everybody_can_use_every_page(furnished: Furnished, opened: Window):
    """axe-core finds nothing serious, in light and in dark; what does not depend on colours is looked at once."""
    page = opened.page
    script = AXE.read_text()

    found = []
    for name, path in (*furnished.pages(), *furnished.pages_of_the_site()):
        for theme, rules in (("light", None), ("dark", ["color-contrast"])):
            page.emulate_media(color_scheme=theme)
            if theme == "light":
                show(page, path)
                page.evaluate(script)
            found += [(name, path, theme, *each) for each in page.evaluate(AXE_RUN, rules)]

    assert found == []
    assert opened.troubles == []
