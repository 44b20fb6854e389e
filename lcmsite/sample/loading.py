"""Load and compact the sample conversation, and issue a key and a password."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from pydantic import TypeAdapter

from compaction.engine import CompactionEngine
from compaction.types import Reason
from conversations.errors import ConversationBusy, Unauthenticated
from conversations.humanize import counted
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from conversations.types import NewMessage
from lcmsite.access import users
from lcmsite.access.keys import caller_of, issue
from lcmsite.cli.cli_session import default_workspace
from lcmsite.embedded_postgres.location import make_directory
from lcmsite.hosts import host_state
from lcmsite.ops.shell_commands import lcm
from lcmsite.types import KeyScope, Role

SESSION_ID = USERNAME = "sample"
TITLE = "An agent reads the code of LCM"
CONVERSATION = Path(__file__).with_name("conversation.jsonl")
# A setting that the user in the sample asks the agent to remember, early on.
WANTED_SETTING = "context_threshold"
# A worker may be compacting the sample already.
SECONDS_TO_WAIT = 60


def load_sample(*, url: str) -> list[str]:
    """Store and compact the sample once; return lines for the user on how to open it."""
    workspace = default_workspace()
    scope = Scope(workspace.pk)
    store = ConversationStore.from_settings(scope)
    engine = CompactionEngine.from_settings(scope)
    conversation = store.open_conversation(session_id=SESSION_ID, title=TITLE)
    if not conversation.counters.message_count:
        # One append stores all messages or none; with idempotency keys, two processes may load the sample at once.
        store.append_messages(conversation_id=conversation.conversation_id, messages=sample_messages())
    _compact_once(store, engine, conversation.conversation_id)
    key, password = _stored_or_new_key(scope, workspace.pk), _stored_or_new_password(scope)
    counters = store.get_conversation(conversation_id=conversation.conversation_id).counters
    same_database = " (with the same LCM_DATABASE_URL)" if settings.DEPLOYMENT.database_url else ""
    return [
        f"  URL      {url}/  (log in as {USERNAME}, password {password})",
        f"  API      {url}/api/v1/docs/",
        f"  API key  {key}",
        "",
        f"The conversation {SESSION_ID!r} has {counted(counters.message_count, 'message')} of "
        f"{counted(counters.total_tokens, 'token')}; its active context has {counters.active_tokens:,}. "
        "What the context has forgotten is found:",
        f"Try: which {WANTED_SETTING} does the user want on the staging machine?{same_database}",
        f'  {lcm()} grep {SESSION_ID} "staging machine {WANTED_SETTING}" --roles user --limit 3',
    ]


def sample_messages() -> list[NewMessage]:
    """Read the messages of the sample, oldest first."""
    message = TypeAdapter(NewMessage)
    return [message.validate_json(line) for line in CONVERSATION.read_bytes().splitlines()]


def _compact_once(store: ConversationStore, engine: CompactionEngine, conversation_id: int) -> None:
    """Compact the sample unless that is done; wait if a worker is compacting it."""
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while time.monotonic() < deadline:
        items = store.get_context_items(conversation_id=conversation_id)
        latest = engine.list_runs(conversation_id=conversation_id, limit=1)
        if any(item.summary_id for item in items) and all(run.finished_at for run in latest):
            return
        try:
            engine.compact(conversation_id=conversation_id, reason=Reason.MANUAL)
            return
        except ConversationBusy:
            time.sleep(0.2)


def _stored_or_new_key(scope: Scope, workspace_id: int) -> str:
    """Return the key that earlier starts printed, or a new one if it is invalid."""
    kept = _secret_file("key")
    with suppress(FileNotFoundError, UnicodeDecodeError, Unauthenticated):
        key = kept.read_text("ascii").strip()
        if caller_of(key).scope == scope:
            return key
    return _store_secret(kept, issue(workspace_id=workspace_id, name=SESSION_ID, scopes=[KeyScope.WRITE]).key)


def _stored_or_new_password(scope: Scope) -> str:
    """Return the password that earlier starts printed, unless the user changed it."""
    kept = _secret_file("password")
    user = get_user_model().objects.filter(username=USERNAME).first()
    if user is None:
        return _store_secret(kept, users.add(scope, username=USERNAME, role=Role.ADMIN).password)
    with suppress(FileNotFoundError, UnicodeDecodeError):
        password = kept.read_text("ascii").strip()
        if user.check_password(password):
            return password
    return "(the one you have set)"


def _secret_file(name: str) -> Path:
    return Path(settings.DATA_DIR) / f"sample.{name}"


def _store_secret(path: Path, secret: str) -> str:
    """Write a secret to a file atomically, readable by its owner only; return it."""
    make_directory(path.parent)
    host_state.replace(path, f"{secret}\n".encode(), mode=host_state.OWNER_ALONE)
    return secret
