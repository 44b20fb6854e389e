"""Browsers of people with roles, for tests of pages."""

from __future__ import annotations

import html
import re
from typing import Any

from django.contrib.auth import get_user_model
from django.test import Client

from conversations.models import Workspace
from conversations.scope import Scope
from lcmsite.access import users
from lcmsite.types import Role
from tests.factories import a_workspace

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"


# Elements at whose edges a browser drops white space.
_BLOCKS = "p|div|td|th|tr|li|ul|dl|dt|dd|h[1-4]|form|section|article|header|button|summary|details|label|option|table"
_EDGES = re.compile(rf"\s*(</?(?:{_BLOCKS})\b[^>]*>)\s*")


class Browser(Client):
    """A client whose pages have the white space that a browser shows, outside of `pre`."""

    def request(self, **request: Any) -> Any:
        answer = super().request(**request)
        if not answer.streaming and answer.content and answer.get("Content-Type", "").startswith("text/html"):
            pieces = re.split(r"(<pre.*?</pre>)", answer.content.decode(), flags=re.S)
            pieces[::2] = [_EDGES.sub(r"\1", " ".join(["", *piece.split(), ""])) for piece in pieces[::2]]
            answer.content = "".join(pieces).encode()
        return answer


def browser_of(role: str, *, workspace: Workspace | None = None, name: str | None = None) -> Client:
    """A browser in which somebody of this role, called after it, is logged in."""
    username = name or f"a-{role}"
    users.add(Scope((workspace or a_workspace()).pk), username=username, role=Role(role))
    return logged_in(username, Browser())


def browser_of_a_superuser() -> Client:
    """Somebody who is an admin everywhere, and a member of nothing."""
    a_workspace()
    get_user_model().objects.create_superuser("sue")
    return logged_in("sue", Browser())


def logged_in(username: str, client: Client | None = None) -> Client:
    """The client, or a new one, after this person has logged in."""
    client = client or Client()
    user = get_user_model().objects.get(username=username)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def page_of(browser: Client, path: str) -> str:
    return browser.get(path).content.decode()


def as_part(browser: Client, path: str) -> str:
    """The piece that a script on a page would be given."""
    return browser.get(path, headers={"HX-Request": "true"}).content.decode()


def shown_links(page: str) -> list[str]:
    """Where a page's links lead."""
    return [html.unescape(link) for link in re.findall(r'href="([^"]*)"', page)]


def older_in(page: str) -> str | None:
    """Where a list goes on, as the query of a link; None on its last page."""
    return next((link for link in shown_links(page) if re.match(r"\?(.*&)?cursor=", link)), None)
