"""Choose a request's upstream (a vendor) and the rule that applies to it. Pure.

`/v1/...` goes to the upstream of its API, `/gw/NAME/v1/...` to the upstream NAME. The prefix `/k/KEY` before either
gives LCM's key, for clients that cannot send headers. No header ever chooses an upstream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from conversations.errors import Invalid
from lcmsite.gateway.surfaces import Surface, Task, surface_of

DEFAULT_UPSTREAMS = "anthropic=https://api.anthropic.com,openai=https://api.openai.com"
# The default upstream of each API, if one of this name is configured.
_DEFAULT_NAMES = {Surface.MESSAGES: "anthropic", Surface.CHAT: "openai", Surface.RESPONSES: "openai"}
_YES = ("true", "1", "yes")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
_PATH = re.compile(r"(?:/k/(?P<key>[^/]+))?(?:/gw/(?P<upstream>[^/]+))?(?P<rest>/.*|)", re.DOTALL)
_CLOSED, _LOOKUPS = "fail_closed", "lookups"


class Mode(StrEnum):
    """What the gateway does with requests of a route."""

    OFF = "off"
    RECORD = "record"
    DRY_RUN = "dry-run"
    ASSEMBLE = "assemble"


@dataclass(frozen=True)
class Rule:
    """A mode and its options.

    With `fail_closed` (`+fail_closed`), a request that cannot be recorded is refused.
    """

    mode: Mode = Mode.RECORD
    fail_closed: bool = False
    # In assemble mode: the model is offered LCM's tools, and the gateway answers their calls.
    has_lookups: bool = False


@dataclass(frozen=True)
class Route:
    """A request's destination; `path` is the path at the vendor."""

    upstream: str
    base_url: str
    path: str
    surface: Surface | None
    task: Task | None
    key: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        base, path = self.base_url, self.path
        # The configured address and the client's path may both contain the version: keep only one.
        version = re.search(r"/v\d\w*$", base)
        if version and path.startswith(f"{version[0]}/"):
            path = path[len(version[0]) :]
        return base + path


def parse_upstreams(text: str) -> dict[str, str]:
    """Parse LCM_GATEWAY_UPSTREAMS into addresses by name. ValueError if invalid."""
    found: dict[str, str] = {}
    for given in filter(None, re.split(r"[,\s]+", text)):
        name, _, address = given.partition("=")
        parts = urlsplit(address)
        if not _NAME.fullmatch(name) or parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError("an upstream is a name and an address, such as openai=https://api.openai.com")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError(f"the address of {name} has more than scheme, host, port and path")
        found[name] = address.rstrip("/")
    return found


def parse_rules(text: str) -> dict[str, Rule]:
    """Parse LCM_GATEWAY_MODES into rules by subject; the subject "" is the default.

    Raises ValueError if it is invalid.
    """
    found: dict[str, Rule] = {"": Rule()}
    for given in filter(None, re.split(r"[,\s]+", text)):
        subject, _, word = given.rpartition("=")
        mode, *more = word.split("+")
        if mode not in set(Mode) or not {*more} <= {_CLOSED, _LOOKUPS}:
            raise ValueError(f"{word[:40]!r} is none of {', '.join(Mode)}, with or without +{_CLOSED}, +{_LOOKUPS}")
        rule = Rule(Mode(mode), _CLOSED in more, _LOOKUPS in more)
        if rule.has_lookups and rule.mode is not Mode.ASSEMBLE:
            raise ValueError(f"+{_LOOKUPS} is for {Mode.ASSEMBLE} alone")
        if subject and not re.fullmatch(r"key:\d+", subject) and not _NAME.fullmatch(subject):
            raise ValueError(f"{subject[:40]!r} is no upstream, no API and no key such as key:7")
        found[subject] = rule
    return found


def problem_of_parsing(parse: Callable[[str], object], text: str) -> str:
    """Return why one of these settings is invalid; "" if it is valid."""
    try:
        parse(text)
    except ValueError as wrong:
        return str(wrong)
    return ""


@dataclass(frozen=True)
class Routes:
    """The configured upstreams and rules."""

    upstreams: Mapping[str, str]
    rules: Mapping[str, Rule]

    def route(self, method: str, raw_path: str, headers: Mapping[str, str]) -> Route | None:
        """Return a request's route; None for an unknown upstream, `*`, or `..` in it."""
        found = _PATH.fullmatch(raw_path)
        if found is None:
            return None
        rest = found["rest"] or "/"
        surface, task = surface_of(method, rest) or (None, None)
        name = found["upstream"] or self._default_upstream(surface, headers)
        if name not in self.upstreams or ".." in unquote(rest):
            return None
        return Route(name, self.upstreams[name], rest, surface, task, found["key"] or "")

    def _default_upstream(self, surface: Surface | None, headers: Mapping[str, str]) -> str:
        if surface is None and ("anthropic-version" in headers or "claude" in headers.get("user-agent", "").lower()):
            surface = Surface.MESSAGES
        usual = _DEFAULT_NAMES.get(surface or Surface.RESPONSES, "")
        return usual if usual in self.upstreams else next(iter(self.upstreams), "")

    def rule(self, route: Route, *, api_key_id: int | None, headers: Mapping[str, str]) -> Rule:
        """Return a request's rule: of its key, upstream or API, or the default.

        Headers override it. Without `api_key_id` (the key could not be looked up), the strictest of all keys' rules
        applies. Raises Invalid for a header with an unknown mode.
        """
        subjects = (f"key:{api_key_id}", route.upstream, route.surface.value if route.surface else "", "")
        rule = next(self.rules[subject] for subject in subjects if subject in self.rules)
        if api_key_id is None:
            rule = self._strictest(rule)
        if headers.get("x-lcm-store", "").lower() in ("false", "0", "no"):
            return Rule(Mode.OFF)
        mode = headers.get("x-lcm-mode", "")
        if mode and mode not in set(Mode):
            raise Invalid(f"x-lcm-mode: there is no mode {mode[:40]!r}; use one of {', '.join(Mode)}.")
        closed, lookups = (headers.get(name, "").lower() for name in ("x-lcm-fail-closed", "x-lcm-lookups"))
        return Rule(
            mode=Mode(mode) if mode else rule.mode,
            fail_closed=closed in _YES if closed else rule.fail_closed,
            has_lookups=lookups in _YES if lookups else rule.has_lookups,
        )

    def _strictest(self, usual: Rule) -> Rule:
        """Return any key's fail-closed rule, else any key's `off` rule, else `usual`."""
        of_keys = [rule for subject, rule in self.rules.items() if subject.startswith("key:")]
        closed = next((rule for rule in (usual, *of_keys) if rule.fail_closed and rule.mode is not Mode.OFF), None)
        off = next((rule for rule in of_keys if rule.mode is Mode.OFF), usual)
        return closed or off
