"""What every page has in common: who asks, in which workspace, and how a refusal looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from conversations.errors import LcmError, NotFound
from conversations.models import Workspace
from lcmsite.access.keys import Caller
from lcmsite.access.users import caller_in, workspaces_of
from lcmsite.catalogue.problems import problem_of
from lcmsite.types import KeyScope, Role


@dataclass(frozen=True)
class Visit:
    """One request of a person to a page of a workspace."""

    request: HttpRequest
    caller: Caller
    workspace: Workspace
    role: Role
    workspaces: tuple[str, ...]

    @property
    def is_part(self) -> bool:
        """Whether a script on the page asks for a piece of it."""
        return bool(getattr(self.request, "htmx", False)) and not self.request.htmx.boosted  # type: ignore[attr-defined]

    def show(self, template: str, status: int = 200, **context: Any) -> HttpResponse:
        """The page, or the piece, with what every page shows: where one is, and what one may do."""
        page = render_to_string(template, {"visit": self, **context}, request=self.request)
        # What was said may hold halves of characters, which no page can be sent with.
        return HttpResponse(page.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), status=status)


View = Callable[..., HttpResponseBase]


def page(
    scope: KeyScope = KeyScope.READ, *, methods: tuple[str, ...] = ("GET", "HEAD"), of_the_site: bool = False
) -> Callable[[View], View]:
    """Makes a view of a function that takes a Visit: for people who are logged in, in a workspace, with this scope.

    A page `of_the_site` is for superusers.
    A refusal, whoever raises it, is shown as a page, or as a piece where a piece was asked for.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        @never_cache
        @require_http_methods(methods)
        @login_required
        def visited(request: HttpRequest, workspace: str, **given: Any) -> HttpResponseBase:
            try:
                visit = _visit(request, workspace)
            except NotFound as refusal:
                return _refused(request, refusal, {})
            try:
                visit.caller.require(scope)
                if of_the_site:
                    visit.caller.require_operator()
                return view(visit, **given)
            except LcmError as refusal:
                return _refused(request, refusal, {"visit": visit})

        return visited

    return decorate


@never_cache
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The first workspace of whoever comes, or a word for those who are in none."""
    mine = workspaces_of(request.user)
    if mine:
        return redirect("overview", workspace=mine[0][0].name)
    return render(request, "dashboard/nowhere.html", status=403)


def _visit(request: HttpRequest, name: str) -> Visit:
    """NotFound alike for a workspace that is not there and one that is not theirs."""
    mine = workspaces_of(request.user)
    for workspace, role in mine:
        if workspace.name == name:
            return Visit(
                request=request,
                caller=caller_in(request.user, workspace, role),
                workspace=workspace,
                role=role,
                workspaces=tuple(each.name for each, _ in mine),
            )
    raise NotFound(f"There is no workspace {name[:80]!r} that you may see.")


def _refused(request: HttpRequest, refusal: LcmError, context: dict[str, Any]) -> HttpResponse:
    problem = problem_of(refusal)
    is_part = bool(getattr(request, "htmx", False)) and not request.htmx.boosted  # type: ignore[attr-defined]
    template = "dashboard/_problem.html" if is_part else "dashboard/problem.html"
    return render(request, template, {**context, "problem": problem}, status=problem.status)
