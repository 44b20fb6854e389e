"""Addresses of all pages; the path names the workspace."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.urls import path
from django.urls.resolvers import URLPattern

from lcmsite.dashboard.page import home
from lcmsite.dashboard.pages import (
    access_pages,
    conversation_pages,
    file_pages,
    inspector,
    lineage_pages,
    overview,
    plan_pages,
    run_pages,
    search_page,
    site_pages,
)
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
    path("w/<str:workspace>/runs/", run_pages.runs, name="runs"),
    path("w/<str:workspace>/runs/jobs/", run_pages.jobs, name="jobs"),
    path("w/<str:workspace>/models/", site_pages.models, name="models"),
    path("w/<str:workspace>/models/<str:name>/reset/", site_pages.reset_model, name="reset-model"),
    path(CONVERSATION + "runs/", run_pages.of_conversation, name="conversation-runs"),
    path(CONVERSATION + "runs/jobs/", run_pages.jobs_of_conversation, name="conversation-jobs"),
    path(CONVERSATION + "plans/", plan_pages.plans, name="plans"),
    path(CONVERSATION + "plans/new/", plan_pages.make, name="make-plan"),
    path(CONVERSATION + "plans/<str:plan_id>/", plan_pages.plan, name="plan"),
    path(CONVERSATION + "plans/<str:plan_id>/execution/", plan_pages.execute, name="execute-plan"),
    path(CONVERSATION + "plans/<str:plan_id>/progress/", plan_pages.progress, name="plan-progress"),
    path("w/<str:workspace>/conversations/", conversation_pages.conversations, name="conversations"),
    path("w/<str:workspace>/import/", conversation_pages.imported, name="import"),
    path(CONVERSATION, conversation_pages.transcript, name="transcript"),
    path(CONVERSATION + "messages/", conversation_pages.more, name="more-messages"),
    path("w/<str:workspace>/messages/<str:message_id>/", conversation_pages.message, name="message"),
    path(CONVERSATION + "compaction/", conversation_pages.compact, name="compact"),
    path(CONVERSATION + "jobs/<int:job_id>/", conversation_pages.job, name="job"),
    path(CONVERSATION + "lineage/", lineage_pages.lineage, name="lineage"),
    path(CONVERSATION + "lineage/window/", lineage_pages.window, name="lineage-window"),
    path(CONVERSATION + "lineage/<str:summary_id>/", lineage_pages.summary, name="lineage-summary"),
    path(CONVERSATION + "lineage/<str:summary_id>/sources/", lineage_pages.sources, name="lineage-sources"),
    path(CONVERSATION + "lineage/<str:summary_id>/branch/", lineage_pages.branch, name="lineage-branch"),
    path("w/<str:workspace>/search/", search_page.search, name="search"),
    path(CONVERSATION + "context/", inspector.inspector, name="inspector"),
    path(CONVERSATION + "context/text/", inspector.text, name="context-text"),
    path(CONVERSATION + "context/receipts/", inspector.keep, name="keep-receipt"),
    path(CONVERSATION + "context/difference/", inspector.compare, name="compare-receipts"),
    path("w/<str:workspace>/files/", file_pages.files, name="files"),
    path(CONVERSATION + "files/", file_pages.conversation_files, name="conversation-files"),
    path("w/<str:workspace>/files/<str:file_id>/", file_pages.file, name="file"),
    path("w/<str:workspace>/files/<str:file_id>/lines/", file_pages.lines, name="file-lines"),
    path("w/<str:workspace>/files/<str:file_id>/download/", file_pages.download, name="file-download"),
    path("w/<str:workspace>/grants/", access_pages.grants, name="grants"),
    path("w/<str:workspace>/grants/<str:grant_id>/revocation/", access_pages.revoke_grant, name="revoke-grant"),
    path("w/<str:workspace>/keys/", access_pages.keys, name="keys"),
    path("w/<str:workspace>/keys/new/", access_pages.create_key, name="create-key"),
    path("w/<str:workspace>/keys/<int:api_key_id>/revocation/", access_pages.revoke_key, name="revoke-key"),
    path("w/<str:workspace>/members/", access_pages.members, name="members"),
    path("w/<str:workspace>/members/new/", access_pages.add_member, name="add-member"),
    path("w/<str:workspace>/members/role/", access_pages.set_role, name="set-role"),
    path("w/<str:workspace>/members/removal/", access_pages.remove_member, name="remove-member"),
    path("w/<str:workspace>/workspaces/", access_pages.all_workspaces, name="workspaces"),
    path("w/<str:workspace>/workspaces/new/", access_pages.create_workspace, name="create-workspace"),
    path("w/<str:workspace>/settings/", site_pages.configuration, name="settings"),
    path("w/<str:workspace>/audit/", site_pages.audit, name="audit"),
    *trust.urlpatterns,
]
