"""`make screenshots`: pictures of the main pages, light and dark, of a real site with the sample conversation.

    python -m tests.browser.screenshots [ADDRESS NAME PASSWORD]

Without an address it starts a site of its own, and ends it. The pictures go to docs/screenshots.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser.conftest import Window, browser_program, running_site
from tests.guardian import have_it_guarded

SCREENSHOTS = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
WIDTH, HEIGHT = 1280, 800
# A picture is for a page that people load: fewer colours until it is small enough, those of a legend the last to go.
MOST_BYTES = 150_000
COLOURS = (256, 128, 64, 32, 16)
SECONDS_TO_LOAD = 180

SAMPLE = "conversations/1/"
PAGES = {
    "overview": "",
    "conversations": "conversations/",
    "transcript": SAMPLE,
    "lineage": f"{SAMPLE}lineage/",
    "context": f"{SAMPLE}context/?budget=12000",
    "runs": f"{SAMPLE}runs/",
    "search": "search/?query=tokens+counted",
    "integrity": "integrity/",
}


def main(given: list[str]) -> None:
    if browser_program() is None:
        sys.exit("No Chromium is installed: Debian's package is called chromium.")
    have_it_guarded()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with _site(given) as (address, name, password), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_program(), args=["--no-sandbox", "--disable-gpu"])
        for theme in ("light", "dark"):
            _take(browser, theme, address=address, name=name, password=password)
        browser.close()


@contextmanager
def _site(given: list[str]) -> Iterator[tuple[str, str, str]]:
    """Where the site is, and who logs in there: the one that was named, or one of our own."""
    if given:
        address, name, password = given
        yield address, name, password
        return
    with running_site("--sample") as site:
        deadline = time.monotonic() + SECONDS_TO_LOAD
        while not any(run["finished_at"] for run in site.lcm("runs")["items"]):
            if time.monotonic() > deadline:
                sys.exit("The sample conversation was not loaded in time.")
            time.sleep(1)
        site.lcm("check")
        yield site.url, "ann", site.passwords["ann"]


def _take(browser: Any, theme: str, *, address: str, name: str, password: str) -> None:
    """Every page in one theme."""
    context = browser.new_context(
        base_url=address, viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme, reduced_motion="reduce"
    )
    page = context.new_page()
    Window(page, address).log_in(name, password)
    for title, path in PAGES.items():
        page.goto(f"/w/default/{path}", wait_until="networkidle")
        if title == "lineage":
            page.locator(".node[aria-label*='depth 0']").first.click()
            page.wait_for_selector("#summary >> text=Sources")
        picture = _small(page.screenshot())
        (SCREENSHOTS / f"{title}-{theme}.png").write_bytes(picture)
        print(f"{title}-{theme}.png  {len(picture):,} bytes")
    context.close()


def _small(picture: bytes) -> bytes:
    """The same picture in as many colours as fit."""
    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in COLOURS:
        written = io.BytesIO()
        fewer = whole.quantize(colours, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        fewer.save(written, "PNG", optimize=True)
        if written.tell() <= MOST_BYTES:
            return written.getvalue()
    raise ValueError(f"Even in {COLOURS[-1]} colours a picture takes {written.tell():,} bytes.")


if __name__ == "__main__":
    main(sys.argv[1:])
