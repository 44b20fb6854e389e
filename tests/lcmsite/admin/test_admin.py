"""The admin shows every table and changes none of what was said; what it does, it has services do."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.db import connection, models
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.history.models import SessionSummaryChild, SessionSummaryMemory
from compaction.history.session_history import SessionHistory
from compaction.hosts.branching import Branches
from compaction.llm.endpoints import ModelEndpoints
from compaction.models import CompactionJob, CompactionPlan, CompactionRun
from compaction.plans.plan_store import CompactionPlans
from compaction.types import Outcome
from conversations.admin_rows import RowsAdmin
from conversations.models import (
    AuditEntry,
    ContextItem,
    Conversation,
    Message,
    MessagePart,
    Summary,
    SummaryMessage,
    SummaryParent,
)
from conversations.scope import Scope
from conversations.store.journal import Journal
from conversations.types import NewMessage, NewPart, PartType
from conversations.types import Role as SpeakerRole
from integrity.checker import IntegrityChecker
from integrity.models import IntegrityScan
from integrity.retention.tiers import Retention
from lcmsite.access import keys, users
from lcmsite.models import ApiKey, GatewayExchange, Membership
from lcmsite.types import Role
from retrieval.models import Grant
from retrieval.semantic.models import EmbeddedConversation, Embedder, RefusedPassage
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.lcmsite.faces.world import a_world
from tests.summaries import a_summary_of

OURS = ("conversations", "compaction", "retrieval", "integrity", "lcmsite")
# As the site's paths do, which no test has asked for yet.
admin.autodiscover()
TABLES = [(model, table) for model, table in admin.site._registry.items()]
ROWS = [(model, table) for model, table in TABLES if isinstance(table, RowsAdmin)]
# Session, person, rows, what the list says of them, and what filters offer.
MOST_STATEMENTS = 8


def named(each: tuple[type[models.Model], Any]) -> str:
    return each[0]._meta.label_lower


@pytest.fixture(scope="module")
def world(module_rows, module_files) -> dict[str, Any]:
    """Rows in the tables that matter, several in each list that could ask once a row."""
    made = a_world()
    scope = Scope(a_workspace().pk)
    of_a_project = a_conversation("hello", project="harbour")
    SessionHistory.from_settings(scope).summarize_session(conversation_id=of_a_project.conversation_id)
    other = a_conversation(
        *(f"Message {n} about <script>alert(1)</script> boats. " * 30 for n in range(40))
    ).conversation_id
    CompactionEngine.from_settings(scope).compact(conversation_id=other)
    CompactionEngine.from_settings(scope).request(conversation_id=other)
    CompactionPlans.from_settings(scope).plan(conversation_id=other)
    IntegrityChecker.from_settings(scope).request(conversation_id=other)
    for name in ("one", "two"):
        keys.issue(workspace_id=scope.workspace_id, name=name)
        users.add(scope, username=f"reader-{name}", role=Role.READER)
    root = get_user_model().objects.create_superuser("root")
    _comings_and_goings(scope, made["conversation_id"], made["file_id"])
    Client().post("/login/", {"username": "nobody", "password": "wrong"})
    group = Group.objects.create(name="auditors")
    LogEntry.objects.log_actions(root.pk, [group], ADDITION, single_object=True)
    # As at a commit: acts enter their chain.
    connection.check_constraints()
    return {"conversation_id": other}


def _comings_and_goings(scope: Scope, key: int, file_id: str) -> None:
    """What is cold, a file in a message, a model that was reset, a branch that was left, vectors, and an exchange."""
    shown = NewPart(PartType.FILE, file_url=file_id, file_name="boats.csv")
    say(key, NewMessage(SpeakerRole.USER, parts=(shown,)))
    cold = a_conversation(*(f"Message {n} of long ago" for n in range(40))).conversation_id
    CompactionEngine.from_settings(scope).compact(conversation_id=cold)
    Retention.from_settings(scope).archive(conversation_id=cold)
    ModelEndpoints.from_settings(scope).reset_endpoint(name="chat")
    Journal.from_settings(scope).append_entries(conversation_id=key, entries=[{"uuid": "a1", "type": "user"}])
    head_seq = a_store().get_conversation(conversation_id=key).head_seq
    branches = Branches.from_settings(scope)
    branches.move_head(conversation_id=key, head_seq=head_seq - 1)
    branches.move_head(conversation_id=key, head_seq=head_seq)
    embedder = Embedder.objects.create(url="http://127.0.0.1:1", model="e5", question_model="e5", dimension=3)
    EmbeddedConversation.objects.create(embedder=embedder, conversation_id=key)
    message = Message.objects.filter(conversation_id=key).earliest("seq")
    RefusedPassage.objects.create(embedder=embedder, message=message, passage=0, reason="refused: no (HTTP 400)")
    GatewayExchange.objects.create(
        exchange_key=UUID(int=1),
        workspace_id=scope.workspace_id,
        conversation_id=key,
        surface="messages",
        request_chain=b"1",
        request_seq=1,
        received_at=timezone.now(),
    )


@pytest.fixture
def root(world) -> Client:
    return inside(get_user_model().objects.get(username="root"))


def inside(person: Any) -> Client:
    """Their browser, logged in; to check a password takes as long as most of these tests."""
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return client


def address(model: type[models.Model], page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def test_every_table_of_ours_is_there():
    from django.apps import apps

    missing = {model for label in OURS for model in apps.get_app_config(label).get_models()} - set(admin.site._registry)
    inside_others = {inline.model for _, table in ROWS for inline in table.inlines}

    inside = {ContextItem, SummaryMessage, SummaryParent, SessionSummaryChild, SessionSummaryMemory}
    assert missing == inside_others == inside
    assert all(model._meta.is_composite_pk for model in missing), "Django's admin registers any other"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("each", TABLES, ids=named)
def test_a_list_opens_and_asks_no_more_for_more_rows_and_a_row_opens(root, each, django_assert_max_num_queries):
    model, _ = each
    row = model._default_manager.order_by("-pk").first()
    assert row is not None, "there is no such row to open"

    with django_assert_max_num_queries(MOST_STATEMENTS) as asked:
        answer = root.get(address(model, "changelist"))

    assert answer.status_code == 200
    assert "<script>alert(1)</script> boats" not in answer.content.decode()
    told = " ".join(query["sql"] for query in asked.captured_queries)
    assert "content_tsv" not in told and '"packed"' not in told
    if model in (Message, Summary):
        assert '."content"' not in told
    for words in ("harbour", "msg_1", "99999999999999999999", "' OR 1=1 --"):
        assert root.get(address(model, "changelist"), {"q": words}).status_code == 200

    opened = root.get(address(model, "change", quote(row.pk)))
    assert opened.status_code == 200
    assert "<script>alert(1)</script> boats" not in opened.content.decode()


def test_lone_surrogates_are_shown_as_replacement_characters(root):
    conversation_id = a_conversation().conversation_id
    part = NewPart(PartType.TOOL, tool_name="\ud800", tool_input={"\udfff": "\ud800"}, tool_output="boats \ud800")
    message = NewMessage(SpeakerRole.TOOL, parts=(part,))
    [made] = say(conversation_id, message).messages
    stored = MessagePart.objects.get(message_id=made.message_id)

    for row in (stored, stored.message):
        page = root.get(address(type(row), "change", quote(row.pk)))

        assert page.status_code == 200
        assert "boats \ufffd" in page.content.decode()


def test_rows_with_composite_keys_are_on_the_pages_of_what_they_belong_to(root):
    link = SummaryMessage.objects.filter(message__seq__gt=1).order_by("summary_id", "ordinal").first()
    item = ContextItem.objects.filter(summary_id=link.summary_id).first()
    of_message, of_summary, of_conversation = (
        root.get(address(model, "change", quote(key))).content.decode()
        for model, key in ((Message, link.message_id), (Summary, link.summary_id), (Conversation, item.conversation_id))
    )

    assert address(Summary, "change", quote(link.summary_id)) in of_message
    assert address(Message, "change", link.message_id) in of_summary
    assert address(Summary, "change", quote(link.summary_id)) in of_conversation


def test_links_between_summaries_are_shown_from_both_ends(root):
    store, conversation = a_store(), a_conversation(*(f"message {n} " * 40 for n in range(8)))
    leaf, other = (
        a_summary_of(store, conversation.conversation_id, seqs=seqs, content="short")
        for seqs in (range(1, 4), range(4, 7))
    )
    top = a_summary_of(store, conversation.conversation_id, summaries=[leaf, other], content="shorter")

    of_leaf, of_top = (
        root.get(address(Summary, "change", quote(each.summary_id))).content.decode() for each in (leaf, top)
    )

    assert address(Summary, "change", quote(top.summary_id)) in of_leaf
    assert address(Summary, "change", quote(leaf.summary_id)) in of_top


def test_a_long_context_is_shown_page_by_page(root, django_assert_max_num_queries):
    conversation = a_conversation(*(f"message {n}" for n in range(60)))
    page = address(Conversation, "change", conversation.conversation_id)
    newest = Message.objects.get(conversation_id=conversation.conversation_id, seq=60)

    with django_assert_max_num_queries(12):
        first = root.get(page).content.decode()
    second = root.get(page, {"context_items-page": 2}).content.decode()

    link = f'href="{address(Message, "change", newest.pk)}"'
    assert link not in first and link in second


@pytest.mark.sampled(3)
@pytest.mark.parametrize("each", [each for each in ROWS if callable(each[1].view_on_site)], ids=named)
def test_view_on_site_opens_the_page_of_the_row(root, each):
    model, table = each

    links = [table.get_view_on_site_url(row) for row in model._default_manager.order_by("-pk")[:20]]

    opened = [link for link in links if link is not None]
    assert opened
    for link in opened:
        assert root.get(link).status_code == 200, link


def test_view_on_site_of_a_summary_and_of_a_run_opens_the_lineage_there(root):
    summary = Summary.objects.first()
    runs = admin.site.get_model_admin(CompactionRun)
    made = CompactionRun.objects.filter(leaf_summaries__gt=0).first()
    idle = CompactionRun.objects.create(
        run_id="run_0000000000000000", conversation_id=made.conversation_id, reason=made.reason,
        outcome=Outcome.NOTHING_TO_DO, started_at=made.started_at, finished_at=made.finished_at,
        tokens_before=1, tokens_after=1,
    )  # fmt: skip

    of_summary = root.get(admin.site.get_model_admin(Summary).get_view_on_site_url(summary)).content.decode()
    of_run, of_idle = (root.get(runs.get_view_on_site_url(each)).content.decode() for each in (made, idle))

    assert f'data-chosen="{summary.summary_id}"' in of_summary
    assert f'data-run="{made.run_id}"' in of_run
    assert f'id="{idle.run_id}"' in of_idle


def test_a_lockout_is_shown_and_lifted(root):
    get_user_model().objects.create_superuser("ann", password="correct horse")
    person = Client()
    for number in range(5):
        # Failures count together, whichever browser they come from.
        wrong = {"username": "ann", "password": f"wrong {number}"}
        locked = person.post("/login/", wrong, headers={"User-Agent": f"browser {number % 2}"})
    attempts = AccessAttempt.objects.filter(username="ann")

    listed = root.get(address(AccessAttempt, "changelist"), {"q": "ann"}).context["cl"].result_list
    until = [admin.site.get_model_admin(AccessAttempt).locked_until(row) for row in listed]
    chosen(root, AccessAttempt, "lift", attempts.first().pk)
    right = person.post("/login/", {"username": "ann", "password": "correct horse"})

    assert locked.status_code == 429
    assert len(listed) == 2 and all(until)
    assert not attempts.exists()
    assert right.status_code == 302
    assert LogEntry.objects.latest("action_time").change_message == "Lockout lifted."


def test_words_are_found_where_a_search_would_find_them(root):
    found = root.get(address(Message, "changelist"), {"q": "boats"}).context["cl"].result_list
    by_id = root.get(address(Message, "changelist"), {"q": f"msg_{found[0].pk}"}).context["cl"].result_list

    assert len(found) > 1
    assert [row.pk for row in by_id] == [found[0].pk]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("each", ROWS, ids=named)
def test_nobody_adds_changes_or_removes_a_row(root, each):
    model, _ = each
    before = list(model._default_manager.order_by("pk").values())
    row = model._default_manager.order_by("pk").first()
    given = {field.name: "1" for field in model._meta.concrete_fields}

    assert root.get(address(model, "add")).status_code == 403
    assert root.post(address(model, "add"), given).status_code == 403
    key = quote(row.pk)
    assert root.post(address(model, "change", key), given).status_code == 403
    assert root.get(address(model, "delete", key)).status_code == 403
    assert root.post(address(model, "delete", key), {"post": "yes"}).status_code == 403
    for action in ("delete_selected", "no_such_action"):
        root.post(address(model, "changelist"), {"action": action, "_selected_action": [str(row.pk)], "post": "yes"})
    root.post(address(model, "changelist"), {"_save": "Save", "form-TOTAL_FORMS": "1", "form-0-id": key, **given})

    assert list(model._default_manager.order_by("pk").values()) == before


def chosen(root: Client, model: type[models.Model], action: str, *keys: Any) -> str:
    """What is told when somebody chooses rows and an action."""
    answer = root.post(
        address(model, "changelist"), {"action": action, "_selected_action": [str(key) for key in keys]}, follow=True
    )
    return answer.content.decode()


def test_actions_are_done_by_services(root, world):
    key = world["conversation_id"]
    CompactionJob.objects.all().delete()
    IntegrityScan.objects.all().delete()
    plans = CompactionPlan.objects.count()
    Retention.from_settings(Scope(a_workspace().pk)).archive(conversation_id=key)

    told = [chosen(root, Conversation, action, key) for action in ("compact", "plan", "scan", "thaw")]

    assert CompactionJob.objects.get().conversation_id == key
    assert CompactionPlan.objects.count() == plans + 1
    assert IntegrityScan.objects.get().conversation_id == key
    assert Conversation.objects.get(pk=key).cold_messages == 0
    assert AuditEntry.objects.filter(act="thaw", conversation_id=key).latest("audit_id").actor == "user root"
    assert "/plans/plan_" in told[1]


def test_keys_and_grants_are_taken_back(root):
    key, grant = ApiKey.objects.filter(revoked_at=None).first(), Grant.objects.first()

    chosen(root, ApiKey, "revoke", key.pk)
    chosen(root, Grant, "revoke", grant.pk)

    key.refresh_from_db()
    assert key.revoked_at is not None
    assert AuditEntry.objects.latest("audit_id").target == f"key {key.pk}"
    assert not Grant.objects.filter(revoked_at=None).exists()


def test_a_membership_is_given_changed_and_taken_and_each_is_written_down(root, world):
    person, place = get_user_model().objects.create_user("nina"), a_workspace()

    root.post(address(Membership, "add"), {"user": person.pk, "workspace": place.pk, "role": "reader"})
    membership = Membership.objects.get(user=person)
    root.post(address(Membership, "change", membership.pk), {"role": "operator"})
    membership.refresh_from_db()
    root.post(address(Membership, "delete", membership.pk), {"post": "yes"})

    assert membership.role == "operator"
    assert not Membership.objects.filter(user=person).exists()
    acts = AuditEntry.objects.filter(target="nina").order_by("audit_id").values_list("act", "actor")
    assert list(acts) == [("set_role", "user root"), ("set_role", "user root"), ("remove_member", "user root")]


def test_nobody_puts_themselves_out_and_no_person_is_removed(root, world):
    me = get_user_model().objects.get(username="root")
    users.set_role(Scope(a_workspace().pk), username="root", role=Role.ADMIN)
    mine = Membership.objects.get(user=me)

    assert root.post(address(Membership, "delete", mine.pk), {"post": "yes"}).status_code == 403
    assert root.post(address(Membership, "change", mine.pk), {"role": "reader"}).status_code == 403
    chosen(root, Membership, "delete_selected", mine.pk)
    assert root.post(address(get_user_model(), "delete", me.pk), {"post": "yes"}).status_code == 403

    assert Membership.objects.get(user=me).role == "admin"


def test_staff_who_may_look_may_not_act(world):
    looker = get_user_model().objects.create_user("looker", is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_conversation"))
    client = inside(looker)
    jobs = CompactionJob.objects.count()

    assert client.get(address(Conversation, "changelist")).status_code == 200
    assert client.get(address(Message, "changelist")).status_code == 403
    CompactionJob.objects.all().delete()
    chosen(client, Conversation, "compact", world["conversation_id"])

    assert jobs and not CompactionJob.objects.exists()


def test_only_the_admin_has_a_looser_policy(root):
    here, elsewhere = (root.get(path)["Content-Security-Policy"] for path in ("/admin/", "/w/default/"))

    # In any order, and nothing behind them: no script that stands in a page.
    directives = {each.strip() for each in here.split(";")}
    assert {"default-src 'none'", "script-src 'self' 'unsafe-eval'"} <= directives
    assert "unsafe" not in elsewhere
