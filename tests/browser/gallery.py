"""Pictures of every page, light and dark, wide and on a phone: to be looked at by whoever changed what they look like.

    python -m tests.browser.gallery DIRECTORY

Of a workspace made for it, on a database of its own; each page as it is, and the first of its kinds with all in it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser.conftest import browser_program
from tests.scratch_database import scratch_database

WIDTHS = {"wide": 1440, "phone": 390}
TALLEST = 2_400
WORDS = (
    "The harbour project", "seven boats", "Which port did we settle on for PostgreSQL?", "src/harbour/berths.py", "Ann",
    "It is 5433, as of 2026-03-01.", "notes.md", "The lighthouse keeper's log", "tides-2026.csv", "olga", "read_file",
)  # fmt: skip


def main(given: list[str]) -> None:
    if browser_program() is None:
        sys.exit("No Chromium is installed: Debian's package is called chromium.")
    [directory] = map(Path, given)
    directory.mkdir(parents=True, exist_ok=True)
    with scratch_database(), tempfile.TemporaryDirectory() as files:
        # Not imported above: models want a Django that is set up.
        from django.conf import settings
        from django.test import Client

        from tests.browser.served import served
        from tests.lcmsite.dashboard.furnished import PASSWORD, furnish

        settings.MEDIA_ROOT = Path(files)
        settings.ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
        furnished = furnish(WORDS)
        client = Client()
        assert client.post("/login/", {"username": "ann", "password": PASSWORD}).status_code == 302
        session = client.cookies["sessionid"].value
        pages = [*furnished.pages(), ("login", "/login/"), ("password", "/password/"), ("nowhere", "/w/nowhere/")]
        with served() as address:
            for name in _taken(address, session, pages, directory):
                print(name)


def _taken(address: str, session: str, pages: list[tuple[str, str]], directory: Path) -> Iterator[str]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_program(), args=["--no-sandbox", "--disable-gpu"])
        for theme in ("light", "dark"):
            for width, pixels in WIDTHS.items():
                context = browser.new_context(
                    base_url=address,
                    viewport={"width": pixels, "height": 900},
                    color_scheme=theme,
                    reduced_motion="reduce",
                )
                context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
                page = context.new_page()
                for number, (name, path) in enumerate(pages):
                    _shown(page, path)
                    file = f"{number:02}-{name}-{width}-{theme}.png"
                    height = min(TALLEST, page.evaluate("document.documentElement.scrollHeight"))
                    page.screenshot(
                        path=directory / file,
                        full_page=True,
                        clip={"x": 0, "y": 0, "width": pixels, "height": height},
                    )
                    yield file
                context.close()
        browser.close()


def _shown(page: Any, path: str) -> None:
    """With what comes into it afterwards. A page that keeps itself up to date is never without a request for long."""
    page.goto(path)
    page.wait_for_function("() => !window.htmx || !document.querySelector('.htmx-request')")


if __name__ == "__main__":
    main(sys.argv[1:])
