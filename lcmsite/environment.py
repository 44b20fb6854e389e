"""Read every `LCM_*` variable once, collecting problems instead of raising.

The names of the domain's settings are derived from the rooms' policies; those of a deployment are declared here, with
the same `knob` function. An unusable value is replaced by its default only so that all problems can be reported
together: while one is left, LCM does not start (`lcmsite.ops.checks`, `lcmsite.cli`).
"""

import difflib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.checks import Error

from compaction.llm.configuration import ModelsPolicy
from compaction.llm.embeddings import EmbedderPolicy
from compaction.policy import CompactionPolicy, HistoryPolicy
from conversations.errors import Invalid
from conversations.policy import (
    FilePolicy,
    Secret,
    SecretFile,
    StorePolicy,
    checked,
    create_secret_file,
    knob,
    typed_overrides,
)
from integrity.policy import RetentionPolicy
from lcmsite.embedded_postgres.location import make_directory
from lcmsite.gateway.upstreams import DEFAULT_UPSTREAMS, parse_rules, parse_upstreams, problem_of_parsing
from retrieval.policy import RetrievalPolicy

PREFIX = "LCM_"
SECRET_KEY_FILE = "secret_key"


def text_knob(default: str, help: str, *, schemes: tuple[str, ...] = (), **checks: Any) -> Any:
    """Declare a text setting, an address if it has `schemes`.

    `checks` are the `choices` that it must be among, or `unusable`, a function that explains a bad text.
    """
    # An address is secret, because it may hold a password.
    made = knob(default, help, schemes=schemes, secret=bool(schemes))
    return field(default=default, repr=made.repr, metadata={**made.metadata, **checks})


def _unusable_to_redis(address: str) -> str:
    """Explain why the Redis client rejects this address, without values; "" if not."""
    # Imported here: only sites with Redis need to load its client.
    import redis

    def is_understood(query: str) -> bool:
        try:
            redis.ConnectionPool.from_url(f"{bare}?{query}" if query else bare).make_connection()
        except (redis.RedisError, ValueError, TypeError):
            return False
        return True

    # Split by hand: urlsplit and urlunsplit would lose the slashes of unix://.
    bare, _, options = address.partition("?")
    if not is_understood(""):
        return "the Redis client cannot read this address"
    wrong = [option.partition("=")[0] for option in options.split("&") if not is_understood(option)]
    return f"the Redis client cannot use its option {', '.join(wrong)}" if wrong else ""


@dataclass(frozen=True)
class Deployment:
    """Settings of the deployment: addresses, processes, limits, secrets."""

    database_url: str = text_knob(
        "",
        "PostgreSQL 16 or newer, as postgres://user:password@host:port/name. Default: LCM runs its own server.",
        schemes=("postgres", "postgresql"),
    )
    redis_url: str = text_knob(
        "",
        "Redis for the task queues, as redis://host:port/0. Default: the queues are in the database.",
        schemes=("redis", "rediss", "unix"),
        unusable=_unusable_to_redis,
    )
    data_dir: str = knob("", "The directory for LCM's own files. Default: var/ beside manage.py.")
    secret_key: str = knob(
        "", "Django's secret key. Default: one is created and kept in the data directory.", secret=True
    )
    allowed_hosts: str = knob("localhost,127.0.0.1,[::1]", "The host names that requests may use, separated by commas.")
    https: bool = knob(False, "Whether a proxy terminates TLS: turns on secure cookies, redirects to HTTPS and HSTS.")
    # How long a login lasts.
    session_hours: int = 12
    log_level: str = text_knob(
        "INFO", "The lowest level that is logged.", choices=("DEBUG", "INFO", "WARNING", "ERROR")
    )
    log_format: str = text_knob(
        "auto",
        "json: one JSON object per line on standard error, and nothing else there. console: readable lines on standard "
        "error. auto: console on a terminal, json elsewhere; `lcm up` logs to lcm.log in the data directory, and other "
        "verbs that end by themselves log only warnings and errors.",
        choices=("auto", "json", "console"),
    )
    host: str = knob("127.0.0.1", "The address that `lcm up` listens on.")
    port: int = knob(8000, "The port that `lcm up` listens on.", low=1, high=65535)
    mcp_port: int = knob(
        8001, "The port that `lcm up` listens on for agents (MCP over HTTP); 0 for none.", low=0, high=65535
    )
    gateway_port: int = knob(
        8002, "The port of the gateway, which forwards agents' model calls; 0 for none.", low=0, high=65535
    )
    gateway_upstreams: str = text_knob(
        DEFAULT_UPSTREAMS,
        "The model vendors that the gateway forwards to, and no others: NAME=ADDRESS, separated by commas.",
        unusable=partial(problem_of_parsing, parse_upstreams),
    )
    gateway_modes: str = text_knob(
        "record",
        "What the gateway does: off, record, dry-run or assemble. Exceptions for one upstream, API or key follow after"
        " commas, as in `record,anthropic=assemble,key:7=off`. `+fail_closed` after a mode refuses requests that cannot"
        " be recorded; `+lookups` lets the gateway answer calls of LCM's tools.",
        unusable=partial(problem_of_parsing, parse_rules),
    )
    # The most bytes of exchanges that the gateway spools on disk while the database is unavailable.
    gateway_spool_bytes: int = 1024**3
    web_workers: int = knob(2, "Number of web processes.", low=1, high=64)
    # Operations each web process runs at once: at most half of them heavy, and all but one of one caller.
    web_threads: int = 6
    worker_threads: int = knob(2, "Number of tasks that each queue works on at once.", low=1, high=64)
    pool_size: int = knob(16, "Maximum number of database connections that one process keeps.", low=1, high=500)
    # How long a request waits for a database connection; then it is refused with 503.
    pool_timeout_seconds: int = 5
    max_request_bytes: int = knob(64 * 1024**2, "Maximum bytes of a request body.", low=64 * 1024, high=1024**3)
    # With less free space on the disk of the embedded PostgreSQL, writes are refused while reads go on.
    min_free_bytes: int = 256 * 1024**2
    # The largest request body without a valid key or a login.
    max_anonymous_bytes: int = 64 * 1024
    request_timeout_seconds: float = knob(
        20.0,
        "Seconds that a client may take to send the headers, to send the body (plus one second for each 4 KB), and to "
        "receive each 64 KB of the response.",
        low=0.5,
        high=600.0,
    )
    # After how long an idle connection is closed.
    idle_timeout_seconds: int = 75
    # The most open connections of each web process; above it, those that have been idle longest are closed.
    max_connections: int = 2000
    # The most requests that wait for a thread in each web process; more are refused (503).
    max_waiting_requests: int = 200
    s3_bucket: str = knob(
        "",
        "An S3 bucket for files, in place of the data directory. It needs the package django-storages[s3]; boto3 finds"
        " the credentials.",
    )
    s3_endpoint: str = text_knob(
        "", "The address of an S3-compatible server other than Amazon's.", schemes=("http", "https")
    )
    anchor_dir: str = knob(
        "",
        "The directory for anchors, such as write-once storage. Default: anchors/ in the data directory.",
    )
    anchor_key_file: str = knob(
        "",
        "The file of the private key that signs anchors: Ed25519 in PEM, unencrypted. Default: one is created and kept "
        "in the data directory.",
    )
    metrics_token: str = knob(
        "", "The bearer token that `/metrics` requires. Default: none; only this machine may read it.", secret=True
    )
    rate_limit: int = knob(
        30_000,
        "Maximum number of requests per minute of one key; 0 for no limit.",
        low=0,
        high=1_000_000,
    )
    conversation_defaults: str = knob(
        "",
        "Site-wide defaults of conversation settings, as a JSON object such as "
        '{"leaf_chunk_tokens": 10000}. `lcm configure` sets them for one conversation.',
    )
    api_key: str = knob("", "The API key that the command line uses.", secret=True)
    workspace: str = knob("", "The workspace that the command line works in.")


@dataclass(frozen=True)
class Environment:
    """The environment as read: deployment, policy overrides and problems.

    `given` are the names of the variables that were set to usable values.
    """

    deployment: Deployment
    overrides: Mapping[str, Any]
    problems: tuple[Error, ...]
    given: frozenset[str] = frozenset()

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Environment":
        """Read the `LCM_*` names of a mapping; an empty text counts as not given.

        A secret can be given as a file, as Docker and Kubernetes do: `<NAME>_FILE` has the path.
        """
        given = {name: text.strip() for name, text in environ.items() if name.startswith(PREFIX) and text.strip()}
        known = variables()
        accepted = known | {f"{name}_FILE": variable for name, variable in known.items() if variable.is_secret}
        values: dict[str, Any] = {}
        problems = [_unknown(name, accepted) for name in sorted(given.keys() - accepted.keys())]
        for name in sorted(given.keys() & accepted.keys()):
            variable, text = accepted[name], given[name]
            is_file = name != variable.name
            try:
                if is_file and variable.name in given:
                    raise ValueError(f"{variable.name} is also set; set only one of the two")
                values[variable.name] = variable.parse_file(SecretFile(text)) if is_file else variable.parse(text)
            except ValueError as wrong:
                problems.append(_unusable(name, variable, wrong))
        deployment: dict[str, Any] = {}
        overrides: dict[str, Any] = {}
        for name, value in values.items():
            target = deployment if known[name].owner is Deployment else overrides
            target[known[name].knob.name] = value
        try:
            defaults = _conversation_defaults(deployment.get("conversation_defaults", ""))
        except ValueError as wrong:
            problems.append(_unusable("LCM_CONVERSATION_DEFAULTS", known["LCM_CONVERSATION_DEFAULTS"], wrong))
            defaults = {}
        return cls(
            deployment=Deployment(**deployment),
            overrides={**defaults, **overrides},
            problems=tuple(problems),
            given=frozenset(values),
        )


def _conversation_defaults(text: str) -> dict[str, Any]:
    """Parse LCM_CONVERSATION_DEFAULTS; ValueError if a setting is unknown or bad."""
    if not text:
        return {}
    try:
        given = json.loads(text)
    except ValueError:
        raise ValueError("not JSON") from None
    if not isinstance(given, dict):
        raise ValueError("not a JSON object")
    try:
        return typed_overrides(given)
    except Invalid as wrong:
        raise ValueError(wrong.detail.rstrip(".")) from None


@dataclass(frozen=True)
class Variable:
    """One setting: its field (`knob`), its type, and the class that declares it."""

    owner: type
    knob: Field[Any]
    kind: type

    @property
    def in_environment(self) -> bool:
        """Whether it can be set in the environment, not only per conversation."""
        return bool(self.knob.metadata.get("in_environment", True))

    @property
    def name(self) -> str:
        return f"LCM_{self.knob.name.upper()}" if self.in_environment else self.knob.name

    @property
    def is_secret(self) -> bool:
        """Whether no page and no command may show its value; a file may hold it."""
        return bool(self.knob.metadata.get("secret"))

    @property
    def default(self) -> Any:
        return None if self.knob.default is MISSING else self.knob.default

    def parse(self, text: str) -> Any:
        """Parse the text; the ValueError of a bad one says what would be accepted."""
        value = checked(self.knob, self.kind, text)
        choices = self.knob.metadata.get("choices")
        if choices and value not in choices:
            raise ValueError(f"{value!r} is none of {', '.join(choices)}")
        schemes = self.knob.metadata.get("schemes")
        if schemes and not is_url(value, schemes):
            # The value is left out: it may hold a password.
            raise ValueError(f"not an address that starts with {' or '.join(f'{each}://' for each in schemes)}")
        unusable = self.knob.metadata.get("unusable")
        if unusable and (why := unusable(value)):
            raise ValueError(why)
        return value

    def parse_file(self, file: SecretFile) -> Any:
        """Parse what the file holds; return the file for a policy, which reads it anew."""
        text, wrong = file.read()
        if wrong:
            raise ValueError(wrong)
        value = self.parse(text)
        return value if self.owner is Deployment else file


def secrets_in(deployment: Deployment, *, secret_key: str) -> dict[str, Secret]:
    """The secrets of the site by setting: tokens, keys, passwords in addresses."""
    found = {"LCM_SECRET_KEY": secret_key}
    for name, variable in variables().items():
        if variable.owner is Deployment and variable.is_secret and name not in found:
            value = getattr(deployment, variable.knob.name)
            found[name] = _password_in(value) if variable.knob.metadata.get("schemes") else value
    return {name: Secret(value) for name, value in found.items() if value}


def load_secret_key(data_dir: Path) -> str:
    """Return this directory's secret key, created if missing; may raise OSError."""
    kept = data_dir / SECRET_KEY_FILE
    if not kept.exists():
        make_directory(kept.parent)
        create_secret_file(kept, secrets.token_urlsafe(64))
    return kept.read_text().strip()


def _password_in(address: str) -> str:
    parts = urlsplit(address)
    return unquote(parts.password or "") or dict(parse_qsl(parts.query)).get("password", "")


def variables() -> dict[str, Variable]:
    """Every known environment variable by its name."""
    return {variable.name: variable for variable in declared_settings() if variable.in_environment}


# The classes that declare settings, each with its heading in documents and on pages.
TITLES: Mapping[type, str] = {
    StorePolicy: "What is stored",
    FilePolicy: "Files",
    CompactionPolicy: "Compaction",
    HistoryPolicy: "Memory across conversations",
    ModelsPolicy: "Language models",
    EmbedderPolicy: "Semantic search",
    RetrievalPolicy: "Searching and reading",
    RetentionPolicy: "Retention",
    Deployment: "This site",
}


def declared_settings() -> Iterator[Variable]:
    """Every setting by room, including those that are only set per conversation."""
    for owner in TITLES:
        kinds = get_type_hints(owner)
        for knob_field in fields(owner):
            # A field without a knob is a constant.
            if "help" in knob_field.metadata:
                yield Variable(owner=owner, knob=knob_field, kind=kinds[knob_field.name])


def is_url(text: str, schemes: tuple[str, ...]) -> bool:
    """Whether a text is a URL with one of these schemes, and its port is valid."""
    try:
        parts = urlsplit(text)
        # `port` raises ValueError for a bad port, which dj-database-url and redis would turn into a traceback.
        return parts.scheme in schemes and parts.port != 0
    except ValueError:
        return False


def _unknown(name: str, known: Iterable[str]) -> Error:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}? If not, remove it" if near else "Remove it"
    return Error(f"{name} is not a setting of LCM.", hint=f"{hint}; README.md lists every setting.", id="lcm.E001")


def _unusable(name: str, variable: Variable, wrong: ValueError) -> Error:
    otherwise = f" (default: {variable.default})" if variable.default not in ("", None) else ""
    return Error(
        f"{name}: {wrong}. LCM does not start until this is corrected or removed{otherwise}.",
        hint=variable.knob.metadata["help"],
        id="lcm.E002",
    )
