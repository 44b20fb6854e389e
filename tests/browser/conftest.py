"""A real site with a real worker, and a real browser that is told about everything that goes wrong in a page."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.guardian import a_directory
from tests.lcmsite.operating import PROJECT, free_port, lcm_in, own_environment, processes_of, until_ready

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PEOPLE = {"ann": "admin", "olga": "operator", "rita": "reader"}


def browser_program() -> str | None:
    """The system's browser, if it has one that can be driven."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@dataclass(frozen=True)
class Site:
    """What `lcm up` serves, with one person of each role."""

    url: str
    data_dir: Path
    passwords: dict[str, str]

    def lcm(self, *words: str) -> Any:
        """What a verb of the command line answers."""
        return lcm_in(self.data_dir, *words)

    def imported(self, name: str, texts: Iterable[str], *more: str) -> int:
        """The conversation of a history in which a user says these texts."""
        history = self.data_dir / f"{name}.jsonl"
        history.write_text("\n".join(json.dumps({"role": "user", "content": text}) for text in texts))
        [conversation] = self.lcm("import", str(history), *more)["conversations"]
        return int(conversation["conversation_id"])


@contextmanager
def running_site(*options: str) -> Iterator[Site]:
    """A site of its own, with a worker, in a directory that goes with it; `options` are those of `lcm up`."""
    data_dir = a_directory()
    port = free_port()
    running = subprocess.Popen(
        [sys.executable, "manage.py", "up", *options],
        cwd=PROJECT,
        env=own_environment(
            LCM_DATA_DIR=str(data_dir), LCM_PORT=str(port), LCM_MCP_PORT="0", LCM_GATEWAY_PORT="0",
            LCM_WEB_WORKERS="1", LCM_LOG_LEVEL="WARNING",
        ),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        until_ready(running)
        made = Site(f"http://127.0.0.1:{port}", data_dir, {})
        for name, role in PEOPLE.items():
            made.passwords[name] = made.lcm("user", "create", name, "--role", role)["password"]
        yield made
    finally:
        running.send_signal(signal.SIGINT)
        try:
            running.wait(timeout=60)
        finally:
            for process in processes_of(data_dir):
                process.kill()
            shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """One for all of them: to start it, with a database, takes longer than any test here."""
    if browser_program() is None:
        pytest.skip("no Chromium is installed")
    with running_site() as running:
        yield running


@dataclass
class Window:
    """A browser's window, with what went wrong in it."""

    page: Any
    url: str
    troubles: list[str] = field(default_factory=list)

    def watch(self) -> Window:
        self.page.on("console", lambda said: said.type == "error" and self.troubles.append(f"console: {said.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"script: {error}"))
        self.page.on("request", lambda asked: self._is_ours(asked.url) or self.troubles.append(f"asked {asked.url}"))
        # Whatever the policy of the page had to stop is a trouble, too.
        self.page.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            " event => console.error('stopped by policy: ' + event.violatedDirective + ' ' + event.blockedURI))"
        )
        return self

    def _is_ours(self, address: str) -> bool:
        parts = urllib.parse.urlsplit(address)
        return parts.scheme in ("data", "blob", "about") or address.startswith(self.url)

    def log_in(self, name: str, password: str) -> None:
        self.page.goto("/login/")
        self.page.fill("#id_username", name)
        self.page.fill("#id_password", password)
        self.page.click("button.primary")
        self.page.wait_for_url("**/w/default/")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Of one module: while it is open an event loop runs, in which Django refuses to ask a database."""
    program = browser_program()
    if program is None:
        pytest.skip("no Chromium is installed")
    # Not imported above: it is of no use where there is no browser.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def window(site: Site, browser: Any) -> Iterator[Window]:
    """A window in which nothing may go wrong."""
    context = browser.new_context(base_url=site.url, viewport={"width": 1280, "height": 900})
    opened = Window(context.new_page(), site.url).watch()
    opened.page.set_default_timeout(60_000)
    yield opened
    context.close()
    assert opened.troubles == []
