"""What all pages share: user, workspace, operation calls, lists and problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve
from django.views.decorators.cache import never_cache
from django_htmx.http import HttpResponseClientRefresh

from conversations.errors import Forbidden, LcmError, NotFound
from conversations.humanize import encodable
from conversations.models import Workspace
from conversations.types import ConversationRecord
from lcmsite.access.keys import Caller
from lcmsite.access.users import caller_in, workspaces_of
from lcmsite.catalogue.operations import OPERATIONS
from lcmsite.catalogue.problems import Problem, problem_of
from lcmsite.types import KeyScope, Role
from retrieval.describing.browsing import BrowseSort

# The number of rows on a page of a list.
ON_A_PAGE = 50
# The highest `limit` of list operations.
MOST_ROWS = 1000
# Number of conversations offered in the list of a form; a URL may name any other.
CHOICES = 100

Row = TypeVar("Row")


@dataclass(frozen=True)
class ListPage(Generic[Row]):
    """Rows of a list, and the query strings of its first page and of the next one."""

    rows: Sequence[Row]
    newest: str | None = None
    older: str | None = None

    @property
    def is_first(self) -> bool:
        return self.newest is None


@dataclass(frozen=True)
class Visit:
    """One request of a logged-in user for a page of a workspace."""

    request: HttpRequest
    caller: Caller
    workspace: Workspace
    role: Role
    workspaces: tuple[str, ...]

    @property
    def is_part(self) -> bool:
        """Whether htmx requests only a part of the page."""
        return _is_part(self.request)

    def call(self, tool: str, *, in_text: Mapping[str, Any] | None = None, **params: Any) -> Any:
        """Call an operation and return its result; params that are None are left out.

        `in_text` holds the values of a form: numbers and flags are parsed from text.
        """
        operation, texts = OPERATIONS[tool], in_text or {}
        given = {**texts, **{name: value for name, value in params.items() if value is not None}}
        unknown = given.keys() - operation.params.model_fields.keys()
        if operation.paging is not None and unknown == {operation.paging.argument}:
            # The URL of a page names a row; the operation takes a cursor instead.
            position = given.pop(operation.paging.argument)
            request = operation.request_of(self.caller, operation.params.accepted(given, in_text=texts))
            given["cursor"] = operation.paging.cursor(position, request)
        return operation.perform(self.caller, given, in_text=texts).result

    def call_all(self, tool: str, **params: Any) -> list[Any]:
        """All rows of a paged list."""
        page = self.call(tool, limit=MOST_ROWS, **params)
        found = list(page)
        while page.next_cursor is not None:
            page = self.call(tool, limit=MOST_ROWS, cursor=page.next_cursor, **params)
            found += page
        return found

    def recent_conversations(self) -> list[ConversationRecord]:
        """The most recently used conversations, for the list of a form."""
        recent = self.call("lcm_browse", sort=BrowseSort.UPDATED, limit=CHOICES)
        return [each.conversation for each in recent.conversations]

    def may(self, tool: str) -> bool:
        """Whether this user may call the operation."""
        return OPERATIONS[tool].may(self.caller)

    def list_page(
        self,
        tool: str,
        *,
        limit: int = ON_A_PAGE,
        filters: Mapping[str, Any] | None = None,
        fitting: Callable[[Sequence[Any]], int] = len,
        **params: Any,
    ) -> ListPage[Any]:
        """The requested page of a list; its links keep the filters.

        `fitting` returns how many of the rows to show. The next page begins after these rows.
        """
        cursor = self.request.GET.get("cursor") or None
        found = self.call(tool, cursor=cursor, limit=limit, **params)
        rows = found.first(fitting(found))
        kept = {name: value for name, value in (filters or {}).items() if value not in (None, "")}
        return ListPage(
            rows=rows,
            newest=None if cursor is None else urlencode(kept),
            older=urlencode({**kept, "cursor": rows.next_cursor}) if rows.next_cursor else None,
        )

    def show(self, template: str, status: int = 200, *, refusal: Problem | None = None, **context: Any) -> HttpResponse:
        """Render a page or a part; a refusal is shown and sets the HTTP status."""
        if refusal is not None:
            context["problem"], status = refusal, refusal.status
        page = render_to_string(f"dashboard/{template}", {"visit": self, **context}, request=self.request)
        return HttpResponse(encodable(page), status=status)

    def redirect(self, page: str, *, done: str = "", **path: Any) -> HttpResponse:
        """Redirect to another page of this workspace, which shows `done` as a message."""
        if done:
            messages.success(self.request, done)
        return redirect(page, workspace=self.workspace.name, **path)


View = Callable[..., HttpResponseBase]
POST = ("POST",)
SAFE = ("GET", "HEAD")


def page(
    scope: KeyScope = KeyScope.READ,
    methods: tuple[str, ...] = SAFE,
    *,
    operator_only: bool = False,
    on_refusal: View | None = None,
) -> Callable[[View], View]:
    """Decorate a function of a Visit as a view, for members with this scope.

    A page with `operator_only` is only for superusers. If the view raises LcmError, `on_refusal` gets the Visit and the
    Problem, and renders them, for example as a form. Without `on_refusal`, the problem is shown as a page or a part.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        @never_cache
        def visited(request: HttpRequest, workspace: str, **path: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                # The login is a page, not a part of one.
                return HttpResponseClientRefresh() if _is_part(request) else redirect_to_login(request.get_full_path())
            if request.method not in methods:
                return _redirect_up(request) if request.method in SAFE else HttpResponseNotAllowed(methods)
            context: dict[str, Any] = {}
            try:
                visit = context["visit"] = _visit(request, workspace)
                visit.caller.require(scope)
                if operator_only:
                    visit.caller.require_operator()
                try:
                    return view(visit, **path)
                except LcmError as refusal:
                    if on_refusal is None:
                        raise
                    return on_refusal(visit, problem_of(refusal), **path)
            except LcmError as refusal:
                return _show_problem(request, refusal, **context)

        # The menu reads the first two to show only pages that the user may open.
        vars(visited).update(scope=scope, operator_only=operator_only, methods=methods)
        return visited

    return decorate


def form_refused(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Respond to a form that Django refuses, mostly because of another login since."""
    return _show_problem(
        request, Forbidden(f"Nothing was done: the form is out of date. Open its page again, and repeat. ({reason})")
    )


@never_cache
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Redirect to the user's first workspace, or explain that they have none."""
    mine = workspaces_of(request.user)
    if mine:
        return redirect("overview", workspace=mine[0][0].name)
    return render(request, "dashboard/nowhere.html", status=403)


def number_in(query: QueryDict, name: str) -> int | None:
    """A whole number in a query string; None if it is missing or anything else."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def text_in(query: QueryDict, name: str) -> str:
    """A stripped text in a query string or a form; "" if it is missing."""
    return str(query.get(name, "")).strip()


def texts_in(query: QueryDict, names: Iterable[str]) -> dict[str, str]:
    """The stripped texts with these names that are not empty."""
    return {name: text for name in names if (text := text_in(query, name))}


def choices_in(query: QueryDict, **known: Iterable[str]) -> dict[str, Any]:
    """The chosen value of each filter; None if it is missing or not among `known`."""
    return {name: query.get(name) if query.get(name) in list(values) else None for name, values in known.items()}


def _visit(request: HttpRequest, name: str) -> Visit:
    """Return the visit. Raises NotFound unless the user may see the workspace."""
    mine = workspaces_of(request.user)
    for workspace, role in mine:
        if workspace.name == name:
            names = tuple(each.name for each, _ in mine)
            return Visit(request, caller_in(request.user, workspace, role), workspace, role, names)
    raise NotFound(f"There is no workspace {name[:80]!r} that you may see.")


def _show_problem(request: HttpRequest, refusal: LcmError, **context: Any) -> HttpResponse:
    problem = problem_of(refusal)
    template = "dashboard/_problem.html" if _is_part(request) else "dashboard/problem.html"
    return render(request, template, {**context, "problem": problem}, status=problem.status)


def _redirect_up(request: HttpRequest) -> HttpResponse:
    """Redirect from the address of a form to the closest page above it."""
    messages.warning(
        request, "This address only receives a form. Nothing was done now; check, and send the form again."
    )
    path = request.path_info
    while True:
        path = path.rstrip("/").rpartition("/")[0] + "/"
        try:
            if "GET" in getattr(resolve(path).func, "methods", ()):
                return redirect(path)
        except Resolver404:
            continue


def _is_part(request: HttpRequest) -> bool:
    """Whether htmx wants a part; the Back button gets the whole page."""
    htmx: Any = getattr(request, "htmx", None)
    return bool(htmx) and not htmx.history_restore_request
