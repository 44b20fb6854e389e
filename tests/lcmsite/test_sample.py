from __future__ import annotations

import re
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from compaction.models import CompactionRun
from conversations.models import Conversation, Message, Summary, Workspace
from conversations.scope import Scope
from conversations.types import NewMessage, PartType, Role
from integrity.checker import IntegrityChecker
from lcmsite.access.keys import caller_of, revoke
from lcmsite.cli.program import run
from lcmsite.management.commands.up import who_may_enter
from lcmsite.models import ApiKey
from lcmsite.sample import loading
from lcmsite.sample.loading import load_sample, sample_messages
from lcmsite.types import KeyScope

URL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def messages() -> list[NewMessage]:
    return sample_messages()


def test_it_is_long_and_in_order_and_every_call_has_its_result_behind_it(messages):
    assert len(messages) >= 400
    assert messages == sorted(messages, key=lambda message: message.created_at)
    waiting: set[str | None] = set()
    for message in messages:
        if message.role is Role.TOOL:
            waiting -= {part.tool_call_id for part in message.parts}
        else:
            assert waiting == set()
            waiting |= {part.tool_call_id for part in message.parts if part.part_type is PartType.TOOL}
    assert waiting == set()


Loading = Callable[[], str]


@contextmanager
def _loading(key_file: Path) -> Iterator[Loading]:
    """Loads the sample and gives back what was said about it."""

    def load() -> str:
        return "\n".join(load_sample(url=URL))

    with pytest.MonkeyPatch.context() as patched:
        # Not by way of the settings: the data directory is also where the tests' own database lies.
        patched.setattr(loading, "_secret_file", lambda what: key_file.with_name(f"sample.{what}"))
        yield load


@pytest.fixture(scope="module")
def first_loading(tmp_path_factory: pytest.TempPathFactory, module_rows: None) -> tuple[str, Path]:
    """What was said when the sample was loaded for the first time, and where its key is kept."""
    key_file = tmp_path_factory.mktemp("kept") / "data" / "sample.key"
    with _loading(key_file) as load:
        said = load()
    return said, key_file


@pytest.fixture
def first(first_loading: tuple[str, Path]) -> str:
    return first_loading[0]


@pytest.fixture
def key_file(first_loading: tuple[str, Path], tmp_path: Path) -> Path:
    """The key as the first loading kept it, for this test alone."""
    return shutil.copytree(first_loading[1].parent, tmp_path / "data") / "sample.key"


@pytest.fixture
def load(key_file: Path, db: None) -> Iterator[Loading]:
    """Loads the sample once more."""
    with _loading(key_file) as load:
        yield load


def key_in(said: str) -> str:
    found = re.search(r"API key +(\S+)", said)
    assert found is not None
    return found[1]


def stored() -> list[list[dict[str, Any]]]:
    return [list(model.objects.order_by("pk").values()) for model in (Message, Summary, CompactionRun)]


def test_the_sample_is_loaded_and_compacted(first, db, messages):
    conversation = Conversation.objects.get(session_id="sample")
    assert conversation.workspace == Workspace.objects.get(name="default")
    assert conversation.counters.message_count == len(messages)
    assert conversation.active_tokens < 0.7 * conversation.total_tokens
    assert IntegrityChecker.from_settings().run(conversation_id=conversation.pk).is_clean


def test_the_question_of_the_introduction_is_answered(first, db, capsys):
    [setting] = re.findall(r"Try: which (\w+) does the user want on the staging machine\?", first)
    [command] = [shlex.split(command) for command in re.findall(r"lcm (grep .+)", first)]

    status = run(command)

    assert status == 0
    assert f"on our staging machine I want `{setting}` to be" in capsys.readouterr().out


def test_another_terminal_is_told_where_the_data_is(load, settings):
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, data_dir="")
    here = load()
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, data_dir="anywhere")
    elsewhere = load()

    assert "LCM_DATA_DIR" not in here
    commands = [line.strip() for line in elsewhere.splitlines() if re.search(r"lcm grep ", line)]
    assert [command.startswith(f"LCM_DATA_DIR={settings.DATA_DIR} ") for command in commands] == [True]


def test_a_second_time_says_the_same_and_changes_nothing(first, load):
    before = stored()

    assert load() == first
    assert stored() == before
    assert ApiKey.objects.count() == 1


def test_a_loading_that_ended_before_the_compaction_is_made_up_for(load, monkeypatch):
    summaries = Summary.objects.filter(conversation__session_id="another sample")
    monkeypatch.setattr(loading, "SESSION_ID", "another sample")
    with monkeypatch.context() as interrupted:
        interrupted.setattr(loading, "_compact_once", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            load()
    assert Message.objects.filter(conversation__session_id="another sample").exists()
    assert not summaries.exists()

    load()

    assert summaries.exists()


def test_the_key_is_the_operators_alone_and_may_write(first, key_file, db):
    key = key_in(first)

    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert key_file.read_text() == f"{key}\n"
    caller = caller_of(key)
    assert caller.scope == Scope(Workspace.objects.get(name="default").pk)
    assert caller.key_scopes == {KeyScope.WRITE}


def test_a_key_that_lets_nobody_in_any_more_is_replaced(first, load, key_file):
    seen = [key_in(first)]
    spoilers: list[Callable[[], object]] = [
        lambda: revoke(Scope(), key=seen[-1]),
        lambda: key_file.write_text("lcm_nonsense"),
        lambda: key_file.write_bytes(b"\xff\xfe"),
        lambda: key_file.unlink(),
    ]

    for spoil in spoilers:
        spoil()
        key = key_in(load())

        assert key not in seen
        assert key_file.read_text() == f"{key}\n"
        assert caller_of(key)
        assert {path.name for path in key_file.parent.iterdir()} == {"sample.key", "sample.password"}
        seen.append(key)


def password_in(said: str) -> str:
    found = re.search(r"log in as sample, password ([^)]+)", said)
    assert found is not None
    return found[1]


def test_a_person_can_log_in_with_what_it_says(first, db):
    client = Client()

    answer = client.post("/login/", {"username": "sample", "password": password_in(first)}, follow=True)

    assert answer.redirect_chain[-1][0] == "/w/default/"
    assert answer.status_code == 200


def test_a_password_that_was_changed_is_told_no_more(first, load, key_file):
    user = get_user_model().objects.get(username="sample")
    kept = key_file.with_name("sample.password")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600

    user.set_password("my own now")
    user.save()

    said = load()
    assert password_in(said) == "(the one you have set"
    assert "my own now" not in said and user.check_password("my own now")


@pytest.mark.django_db
def test_a_start_says_who_may_enter_the_admin_and_how():
    first = who_may_enter()
    get_user_model().objects.create_superuser("root")

    assert "there is none yet" in first and first.endswith("manage.py createsuperuser")
    assert "none yet" not in who_may_enter()
