"""Every page. A page of a workspace names it in its path, so that a link says all."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.urls import path
from django.urls.resolvers import URLPattern

from lcmsite.dashboard import (
    audit,
    configuration,
    conversations,
    endpoints,
    files,
    grants,
    importing,
    inspector,
    keys,
    lineage,
    members,
    overview,
    plans,
    runs,
    search,
)
from lcmsite.dashboard.pages import home
from lcmsite.dashboard.trust import urls as trust

CONVERSATION = "w/<str:workspace>/conversations/<int:conversation_id>/"

urlpatterns: list[URLPattern] = [
    path("", home, name="home"),
    path("login/", auth.LoginView.as_view(template_name="dashboard/login.html"), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path(
        "password/",
        auth.PasswordChangeView.as_view(template_name="dashboard/password.html", success_url="/"),
        name="password",
    ),
    path("w/<str:workspace>/", overview.overview, name="overview"),
    path("w/<str:workspace>/pulse/", overview.pulse, name="pulse"),
    path("w/<str:workspace>/shelf/", overview.shelf, name="shelf"),
    path("w/<str:workspace>/runs/", runs.runs, name="runs"),
    path("w/<str:workspace>/runs/jobs/", runs.jobs, name="jobs"),
    path("w/<str:workspace>/models/", endpoints.endpoints, name="models"),
    path("w/<str:workspace>/models/<str:name>/reset/", endpoints.reset, name="reset-model"),
    path(CONVERSATION + "runs/", runs.of_conversation, name="conversation-runs"),
    path(CONVERSATION + "runs/jobs/", runs.jobs_of_conversation, name="conversation-jobs"),
    path(CONVERSATION + "plans/", plans.plans, name="plans"),
    path(CONVERSATION + "plans/new/", plans.make, name="make-plan"),
    path(CONVERSATION + "plans/<str:plan_id>/", plans.plan, name="plan"),
    path(CONVERSATION + "plans/<str:plan_id>/execution/", plans.execute, name="execute-plan"),
    path(CONVERSATION + "plans/<str:plan_id>/progress/", plans.progress, name="plan-progress"),
    path("w/<str:workspace>/conversations/", conversations.conversations, name="conversations"),
    path("w/<str:workspace>/import/", importing.imported, name="import"),
    path(CONVERSATION, conversations.transcript, name="transcript"),
    path(CONVERSATION + "messages/", conversations.more, name="more-messages"),
    path("w/<str:workspace>/messages/<str:message_id>/", conversations.message, name="message"),
    path(CONVERSATION + "compaction/", conversations.compact, name="compact"),
    path(CONVERSATION + "jobs/<int:job_id>/", conversations.job, name="job"),
    path(CONVERSATION + "lineage/", lineage.lineage, name="lineage"),
    path(CONVERSATION + "lineage/window/", lineage.window, name="lineage-window"),
    path(CONVERSATION + "lineage/<str:summary_id>/", lineage.summary, name="lineage-summary"),
    path(CONVERSATION + "lineage/<str:summary_id>/sources/", lineage.sources, name="lineage-sources"),
    path(CONVERSATION + "lineage/<str:summary_id>/branch/", lineage.branch, name="lineage-branch"),
    path("w/<str:workspace>/search/", search.search, name="search"),
    path(CONVERSATION + "context/", inspector.inspector, name="inspector"),
    path(CONVERSATION + "context/text/", inspector.text, name="context-text"),
    path(CONVERSATION + "context/receipts/", inspector.keep, name="keep-receipt"),
    path(CONVERSATION + "context/difference/", inspector.compare, name="compare-receipts"),
    path("w/<str:workspace>/files/", files.files, name="files"),
    path(CONVERSATION + "files/", files.conversation_files, name="conversation-files"),
    path("w/<str:workspace>/files/<str:file_id>/", files.file, name="file"),
    path("w/<str:workspace>/files/<str:file_id>/lines/", files.lines, name="file-lines"),
    path("w/<str:workspace>/files/<str:file_id>/download/", files.download, name="file-download"),
    path("w/<str:workspace>/grants/", grants.grants, name="grants"),
    path("w/<str:workspace>/grants/<str:grant_id>/revocation/", grants.revoke, name="revoke-grant"),
    path("w/<str:workspace>/keys/", keys.keys, name="keys"),
    path("w/<str:workspace>/keys/new/", keys.create, name="create-key"),
    path("w/<str:workspace>/keys/<int:api_key_id>/revocation/", keys.revoke, name="revoke-key"),
    path("w/<str:workspace>/members/", members.members, name="members"),
    path("w/<str:workspace>/members/new/", members.add, name="add-member"),
    path("w/<str:workspace>/members/role/", members.set_role, name="set-role"),
    path("w/<str:workspace>/members/removal/", members.remove, name="remove-member"),
    path("w/<str:workspace>/workspaces/", members.all_workspaces, name="workspaces"),
    path("w/<str:workspace>/workspaces/new/", members.create_workspace, name="create-workspace"),
    path("w/<str:workspace>/settings/", configuration.configuration, name="settings"),
    path("w/<str:workspace>/audit/", audit.audit, name="audit"),
    *trust.urlpatterns,
]
