"""How long a picture of 100,000 messages takes, from the click to what is seen: measured, beside the goals, not judged.

    python -m tests.browser.lineage_at_scale [MESSAGES]

A site of its own takes the history in, compacts it, and shows it to the system's Chromium: the first picture, then
windows as somebody would move about. What is told of each: the time until the browser has painted it, the server's own
by its Server-Timing, and the number of shapes. On a busy machine the figures are the machine's.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser.conftest import Site, Window, browser_program, running_site
from tests.guardian import have_it_guarded

MESSAGES = 100_000
FIRST_MS, WINDOW_MS, SERVER_MS = 2_000, 300, 50
# As often as it takes to see what is the machine's and what is ours.
FIRST_PICTURES, ROUNDS = 5, 3
# From all of it down to single messages, sideways, and out again.
MOVES = ("in", "in", "right", "in", "in", "left", "in", "in", "in", "in", "right", "out", "out", "whole")

# Since the page was asked for.
PAINTED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)))"
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
SHAPES = "() => document.querySelectorAll('.lineage-svg *').length"
# Of what was asked last.
SERVER = """() => ["navigation", "resource"].flatMap(each => performance.getEntriesByType(each))
    .filter(each => each.name.includes("/lineage/")).at(-1).serverTiming[0].duration"""


def main(given: list[str]) -> None:
    if browser_program() is None:
        sys.exit("No Chromium is installed: Debian's package is called chromium.")
    have_it_guarded()
    messages = int(given[0]) if given else MESSAGES
    # A worker's sweep would come upon so long a history before it is all there, and compact it at the same time.
    with running_site("--no-worker") as site:
        path = f"/w/default/conversations/{_filled(site, messages)}/lineage/"
        with _page(site) as page:
            print(f"{messages:,} messages; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
            measure(page, path)


def _filled(site: Site, messages: int) -> int:
    """The conversation, taken in and compacted by services on the site's own database."""
    os.environ |= {"LCM_DATA_DIR": str(site.data_dir), "LCM_LOG_LEVEL": "ERROR"}
    os.environ |= {"DJANGO_SETTINGS_MODULE": "lcmsite.settings", "LCM_AUTOCOMPACT_DISABLED": "true"}
    # Not imported above: models want a Django that is set up, and that knows where the site's database is.
    import django

    django.setup()
    from compaction.engine import CompactionEngine
    from tests.benchmarks.corpus import Corpus
    from tests.benchmarks.measure import blocks
    from tests.factories import a_store

    store = a_store()
    conversation_id = store.open_conversation(session_id="at scale").conversation_id
    for batch in blocks(Corpus(messages), 500):
        store.append_messages(conversation_id=conversation_id, messages=batch)
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    return conversation_id


@contextmanager
def _page(site: Site) -> Iterator[Any]:
    """A window in which somebody is logged in."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_program(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(base_url=site.url, viewport={"width": 1440, "height": 900})
        Window(page, site.url).log_in("ann", site.passwords["ann"])
        yield page
        browser.close()


def measure(page: Any, path: str) -> None:
    """Open it afresh a few times, then go through the moves, and print what each took."""
    firsts = []
    for _ in range(FIRST_PICTURES):
        page.goto(path, wait_until="commit")
        page.wait_for_selector(".lineage-svg .frontier", state="attached")
        firsts.append((page.evaluate(PAINTED), page.evaluate(SERVER), page.evaluate(SHAPES)))
    _told("first picture", firsts, FIRST_MS)
    taken: dict[str, list[tuple[float, float, int]]] = {}
    for _ in range(ROUNDS):
        page.goto(path)
        page.wait_for_function("() => Number(document.querySelector('.lineage-svg').getAttribute('width')) > 1100")
        for number, way in enumerate(MOVES):
            moved = page.evaluate(MOVED, way)
            seen = page.evaluate("() => ({...document.querySelector('.lineage-view').dataset})")
            what = f"{number + 1:2} {way}: {int(seen['from']):,} to {int(seen['to']):,}"
            taken.setdefault(what, []).append((moved, page.evaluate(SERVER), page.evaluate(SHAPES)))
    for what, each in taken.items():
        _told(what, each, WINDOW_MS)


def _told(what: str, taken: list[tuple[float, float, int]], goal: float) -> None:
    """The middle of what it took, and the best, which is nearest to what a quiet machine would take."""
    seen, server = [each[0] for each in taken], [each[1] for each in taken]
    told = f"{what:32} seen after {_figures(seen)} ms (goal {goal:,}); server {_figures(server)} ms (goal {SERVER_MS})"
    print(f"{told}; {taken[-1][2]:,} shapes")


def _figures(taken: list[float]) -> str:
    return f"{statistics.median(taken):5.0f}, best {min(taken):4.0f}"


if __name__ == "__main__":
    main(sys.argv[1:])
