"""Puts the sample where people can try things on it: once, compacted, with a key to come in by."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model

from compaction.engine import CompactionEngine
from compaction.types import Reason
from conversations.errors import ConversationBusy, Unauthenticated
from conversations.humanize import counted
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from lcmsite.access import users
from lcmsite.access.keys import caller_of, issue
from lcmsite.cli.cli_session import default_workspace
from lcmsite.embedded_postgres.location import make_directory
from lcmsite.ops.shell_commands import lcm
from lcmsite.sample.code_base import CodeBase
from lcmsite.sample.script import sample_messages
from lcmsite.types import KeyScope, Role
from retrieval.engine import RetrievalEngine

SESSION_ID = USERNAME = "sample"
ROOT = Path(__file__).resolve().parent.parent.parent
# A worker may have begun to compact it before we could.
SECONDS_TO_WAIT = 60


def load_sample(*, url: str, echo: Callable[[str], object]) -> None:
    """Have the sample conversation there, compacted, and say how to reach it.

    Safe to repeat: a sample that has been loaded is left as it is, also when the code it was made from has changed.
    """
    scope = Scope(default_workspace().pk)
    store = ConversationStore.from_settings(scope)
    engine = CompactionEngine.from_settings(scope)
    conversation_id = _loaded(store)
    if not _summaries(store, conversation_id) or _is_at_work(conversation_id, engine):
        _compact(conversation_id, engine)
    key, password = _kept_key(scope, _kept("key")), _kept_password(scope, _kept("password"))
    for line in _introduction(store, conversation_id, url=url, key=key, password=password):
        echo(line)


def _loaded(store: ConversationStore) -> int:
    """The id of the conversation, which is there and not empty."""
    conversation = store.open_conversation(session_id=SESSION_ID, title="An agent reads the code of LCM")
    if not conversation.counters.message_count:
        # In one append, and so wholly or not at all; the keys let two who load at once store it once.
        store.append_messages(
            conversation_id=conversation.conversation_id, messages=sample_messages(CodeBase.read(ROOT))
        )
    return conversation.conversation_id


def _summaries(store: ConversationStore, conversation_id: int) -> list[str]:
    """What stands in the active context for what was compacted, oldest first."""
    items = store.get_context_items(conversation_id=conversation_id)
    return [item.summary_id for item in items if item.summary_id is not None]


def _is_at_work(conversation_id: int, engine: CompactionEngine) -> bool:
    """Whether a compaction has begun and not ended: what it has made by now is only a part."""
    return any(run.finished_at is None for run in engine.list_runs(conversation_id=conversation_id, limit=1))


def _compact(conversation_id: int, engine: CompactionEngine) -> None:
    """Make room, after the worker that may have begun to; should that take too long, the worker's room will do."""
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while time.monotonic() < deadline:
        try:
            engine.compact(conversation_id=conversation_id, reason=Reason.MANUAL)
            return
        except ConversationBusy:
            time.sleep(0.2)


def _kept(what: str) -> Path:
    return Path(settings.DATA_DIR) / f"sample.{what}"


def _kept_key(scope: Scope, kept: Path) -> str:
    """The key that earlier runs printed, or a new one if that lets nobody in any more."""
    try:
        key = kept.read_text("ascii").strip()
        if caller_of(key).scope == scope:
            return key
    except (FileNotFoundError, UnicodeDecodeError, Unauthenticated):
        pass
    assert scope.workspace_id is not None
    key = issue(workspace_id=scope.workspace_id, name=SESSION_ID, scopes=[KeyScope.WRITE]).key
    _keep(kept, key)
    return key


def _kept_password(scope: Scope, kept: Path) -> str:
    """The password that earlier runs printed, or a new one if it lets nobody in any more."""
    user = get_user_model().objects.filter(username=USERNAME).first()
    if user is None:
        password = users.add(scope, username=USERNAME, role=Role.ADMIN).password
        _keep(kept, password)
        return password
    try:
        password = kept.read_text("ascii").strip()
        if user.check_password(password):
            return password
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    # Whoever changed it knows it.
    return "(the one you have set)"


def _keep(kept: Path, secret: str) -> None:
    make_directory(kept.parent)
    # A new file, so that nobody else can have it open, and it is never there half.
    fresh = kept.with_name(f"{kept.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{secret}\n")
    fresh.replace(kept)


def _introduction(store: ConversationStore, conversation_id: int, *, url: str, key: str, password: str) -> list[str]:
    counters = store.get_conversation(conversation_id=conversation_id).counters
    setting = _first_wish(store.scope, conversation_id)
    same_database = " (with the same LCM_DATABASE_URL)" if settings.DEPLOYMENT.database_url else ""
    return [
        f"  URL      {url}/  (log in as {USERNAME}, password {password})",
        f"  API      {url}/api/v1/docs/",
        f"  API key  {key}",
        "",
        f"The conversation {SESSION_ID!r} has {counted(counters.message_count, 'message')} of "
        f"{counted(counters.total_tokens, 'token')}; its active context has {counters.active_tokens:,}. "
        "What the context has forgotten is found:",
        f"Try: which {setting} does the user want on the staging machine?{same_database}",
        f'  {lcm()} grep {SESSION_ID} "staging machine {setting}" --roles user --limit 3',
    ]


def _first_wish(scope: Scope, conversation_id: int) -> str:
    """The first setting that the user of the sample asks to be remembered."""
    asked = RetrievalEngine.from_settings(scope).grep(
        query="staging machine remember later", conversation_id=conversation_id, limit=100
    )
    names = [found[1] for match in asked.matches if (found := re.search(r"I want `(\w+)` to be", match.snippet.text))]
    return names[-1] if names else "setting"
