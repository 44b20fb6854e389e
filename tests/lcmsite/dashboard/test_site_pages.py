"""Settings with their source, no secret among them; and the audit log, filtered, page by page."""

from __future__ import annotations

import re

import pytest
from django.db import transaction

from conversations.audit import Act, AuditLog
from conversations.policy import StorePolicy
from conversations.scope import Scope
from lcmsite.effective_settings import Source, settings_in_force
from lcmsite.environment import Environment, declared_settings
from tests.factories import a_conversation, a_store, a_workspace
from tests.lcmsite.dashboard.visiting import HOSTILE, page_of, shown_links

pytestmark = pytest.mark.django_db
SETTINGS, AUDIT = "/w/default/settings/", "/w/default/audit/"


def in_force(**overrides):
    return {each.name: each for room in settings_in_force(overrides) for each in room.settings}


def the_environment(settings, **names: str) -> None:
    told = Environment.read(names)
    assert told.problems == ()
    settings.ENVIRONMENT, settings.DEPLOYMENT, settings.LCM = told, told.deployment, dict(told.overrides)


def test_each_says_who_set_it(settings):
    # What is set to its own default is set, too.
    the_environment(settings, LCM_PORT="8000", LCM_LEAF_TARGET_TOKENS="900", LCM_MODEL_TOKEN_BUDGET="50000")

    told = in_force(model_token_budget=12_000)

    assert (told["LCM_PORT"].value, told["LCM_PORT"].source) == (8000, Source.ENVIRONMENT)
    assert (told["LCM_HOST"].value, told["LCM_HOST"].source) == ("127.0.0.1", Source.DEFAULT)
    assert (told["LCM_LEAF_TARGET_TOKENS"].value, told["LCM_LEAF_TARGET_TOKENS"].source) == (900, Source.ENVIRONMENT)
    budget = told["LCM_MODEL_TOKEN_BUDGET"]
    assert (budget.value, budget.source) == (12_000, Source.CONVERSATION)
    assert told["LCM_ENCODING"].source is Source.DEFAULT and told["LCM_ENCODING"].value == StorePolicy().encoding


def test_no_secret_is_told(settings, superuser):
    the_environment(
        settings,
        LCM_DATABASE_URL="postgres://ann:hush-1@db/lcm",
        LCM_CHAT_KEY="hush-2",
        LCM_CHAT_URL="https://ann:hush-3@models/v1?key=hush-4",
        LCM_SECRET_KEY="hush-5",
    )

    page = superuser.get(SETTINGS).content.decode()
    told = in_force()

    assert "https://models/v1" in page and "hush" not in page and "hush" not in repr(told)
    assert told["LCM_CHAT_KEY"].is_set and not told["LCM_ANTHROPIC_KEY"].is_set
    assert told["LCM_CHAT_URL"].value == "https://models/v1"


def test_the_page_groups_them_with_help_and_bounds(superuser):
    page = superuser.get(SETTINGS).content.decode()

    assert [each.name for each in declared_settings() if page.count(f"<code>{each.name}</code>") != 1] == []
    assert all(f">{title}</h2>" in page for title in ("Compaction", "Language models", "This site"))
    assert "The port that `lcm up` listens on." in page and "1 to 65,535." in page


def test_settings_of_the_site_itself_are_shown_to_superusers_alone(admin):
    page = admin.get(SETTINGS).content.decode()

    assert "<code>LCM_CONTEXT_THRESHOLD</code>" in page
    for name in ("LCM_CHAT_URL", "LCM_SPEND_MAX_TOKENS", "LCM_DATABASE_URL", "LCM_DATA_DIR", "LCM_ALLOWED_HOSTS"):
        assert f"<code>{name}</code>" not in page, name


def test_what_a_conversation_sets_for_itself_is_marked(admin):
    conversation_id = a_conversation(title=HOSTILE).conversation_id
    a_store().configure_conversation(conversation_id=conversation_id, overrides={"fresh_tail_count": 31})

    page = admin.get(f"{SETTINGS}?conversation_id={conversation_id}").content.decode()

    row = re.findall(r"<code>LCM_FRESH_TAIL_COUNT</code>.*?</tr>", page, re.S)[0]
    assert ">31</td>" in row and ">conversation</span>" in row
    assert HOSTILE not in page and "(1 override)" in page


def test_a_foreign_conversation_looks_like_none(admin):
    theirs = a_conversation(workspace=a_workspace("theirs")).conversation_id

    assert admin.get(f"{SETTINGS}?conversation_id={theirs}").status_code == 404
    assert admin.get(f"{AUDIT}?conversation_id={theirs}").status_code == 404


def test_what_is_no_conversation_does_not_show_the_entries_of_all(admin):
    answer = admin.get(f"{AUDIT}?conversation_id=the+first")

    assert answer.status_code == 400 and "not &#x27;the first&#x27;" in answer.content.decode()


def record(act: Act, **details) -> None:
    with transaction.atomic():
        AuditLog(Scope(a_workspace().pk, actor="operator")).record(act, **details)


def rows(page: str) -> list[str]:
    return re.findall(r"<tr>\s*<td class=\"number\"[^>]*>.*?</tr>", page, re.S)


def test_what_was_done_is_told_newest_first_and_narrowed_to_a_kind_and_a_conversation(admin):
    conversation_id = a_conversation().conversation_id
    record(Act.ARCHIVE, conversation_id=conversation_id, detail={"messages": 12})
    record(Act.QUARANTINE, target=HOSTILE, detail={HOSTILE: HOSTILE})

    page = page_of(admin, AUDIT)

    newest, older, *_ = rows(page)
    assert "quarantine" in newest and "&lt;script&gt;" in newest
    assert "operator" in older and "archive" in older and "12" in older
    assert f"/w/default/conversations/{conversation_id}/" in shown_links(older)
    assert HOSTILE not in page

    record(Act.ARCHIVE)
    narrowed = [
        page_of(admin, f"{AUDIT}?act={filters}")
        for filters in ("archive", f"archive&conversation_id={conversation_id}", "erase")
    ]
    assert [len(rows(each)) for each in narrowed] == [2, 1, 0]
    assert "No entry matches." in narrowed[2]
