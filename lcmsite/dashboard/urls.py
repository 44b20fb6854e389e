"""Every page. A page of a workspace names it in its path, so that a link says all."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.urls import path
from django.urls.resolvers import URLPattern

from lcmsite.dashboard import conversations, lineage, overview
from lcmsite.dashboard.pages import home

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
    path("w/<str:workspace>/conversations/", conversations.conversations, name="conversations"),
    path(CONVERSATION, conversations.transcript, name="transcript"),
    path(CONVERSATION + "messages/", conversations.more, name="more-messages"),
    path(CONVERSATION + "compaction/", conversations.compact, name="compact"),
    path(CONVERSATION + "jobs/<int:job_id>/", conversations.job, name="job"),
    path(CONVERSATION + "lineage/", lineage.lineage, name="lineage"),
    path(CONVERSATION + "lineage/window/", lineage.window, name="lineage-window"),
    path(CONVERSATION + "lineage/<str:summary_id>/", lineage.summary, name="lineage-summary"),
    path(CONVERSATION + "lineage/<str:summary_id>/sources/", lineage.sources, name="lineage-sources"),
    path(CONVERSATION + "lineage/<str:summary_id>/branch/", lineage.branch, name="lineage-branch"),
]
