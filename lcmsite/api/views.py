"""REST: one generic view over the catalogue, a class for each path and a method for each verb."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import conditional_page
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.errors import NotFound
from lcmsite.access.authentication import BearerKey
from lcmsite.api.downloads import DOWNLOAD, download
from lcmsite.api.ledger_stream import LEDGER, ledger
from lcmsite.api.openapi import PREFIX, documented
from lcmsite.api.requests import BytesParser, StrictJsonParser, bytes_field, params_of
from lcmsite.api.responses import AlwaysJson, ResultRenderer, problem_response
from lcmsite.api.throttling import KeyThrottle
from lcmsite.catalogue.operation import Operation, metric_name
from lcmsite.catalogue.operations import CATALOGUE


class MayPerform(BasePermission):
    """Refuses what the caller's key may not do, before the body is read."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if view.operation is not None:
            view.operation.require(request.user)
        return True


class CatalogueView(APIView):
    """One path; each of its verbs performs one operation."""

    authentication_classes = (BearerKey,)
    permission_classes = (MayPerform,)
    throttle_classes = (KeyThrottle,)
    parser_classes = (StrictJsonParser, BytesParser)
    renderer_classes = (ResultRenderer,)
    content_negotiation_class = AlwaysJson
    http_method_names = ("get", "post", "put", "head")
    # By verb. A stream has a name alone.
    operations: Mapping[str, Operation] = MappingProxyType({})
    names: Mapping[str, str] = MappingProxyType({})
    operation: Operation | None

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        verb = "get" if request.method == "HEAD" else (request.method or "").lower()
        self.operation = self.operations.get(verb)
        # For the metrics, which count by operation.
        request.operation = self.names.get(verb, "none")  # type: ignore[attr-defined]

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        allowance = getattr(request, "allowance", None)
        for name, value in (allowance.headers if allowance else {}).items():
            response[name] = value
        return response


def _handler(operation: Operation, path: str) -> Callable[..., Response]:
    @documented(operation, path)
    def handle(self: CatalogueView, request: Request, **in_path: str) -> Response:
        given, in_text = params_of(operation, request, in_path)
        caller: Any = request.user
        answer = operation.perform(caller, given, in_text=in_text)
        return Response(answer.result, status=answer.status)

    return handle


def _view(path: str, operations: list[Operation]) -> Callable[..., HttpResponseBase]:
    by_verb = {each.verb.lower(): each for each in operations}
    members = {
        **{verb: _handler(each, path) for verb, each in by_verb.items()},
        "operations": by_verb,
        "names": {verb: metric_name(each, path) for verb, each in by_verb.items()},
    }
    if not any(bytes_field(each) for each in operations):
        members["parser_classes"] = (StrictJsonParser,)
    view = _class("PathView", members).as_view()
    if any(each.immutable for each in operations):
        view = conditional_page(view)
    # Callers send a key and no cookies, so what they can make another caller send reveals nothing (BREACH).
    compressed: Callable[..., HttpResponseBase] = gzip_page(view)
    return compressed


def _stream(name: str, handler: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    return _class("StreamView", {"get": handler, "names": {"get": name}}).as_view()


def _class(name: str, members: Mapping[str, Any]) -> type[CatalogueView]:
    return type(name, (CatalogueView,), dict(members))


def _views() -> dict[str, Callable[..., HttpResponseBase]]:
    """The view of each path, as the catalogue writes it."""
    by_path: dict[str, list[Operation]] = defaultdict(list)
    for operation in CATALOGUE:
        for each in operation.paths:
            by_path[each].append(operation)
    # Django tries one after the other: a name goes before a placeholder that would match it.
    views = {each: _view(each, by_path[each]) for each in sorted(by_path, key=lambda each: each.replace("{", "~"))}
    return views | {DOWNLOAD: _stream("download", download), LEDGER: _stream("ledger", ledger)}


@csrf_exempt
def nothing_here(request: HttpRequest, rest: str = "") -> HttpResponse:
    """The answer of every unknown path under /api/."""
    hint = f"Those there are: {PREFIX}docs/." if request.path.endswith("/") else "Paths end with a slash."
    return problem_response(NotFound(f"There is nothing at this path. {hint}", code="no_such_path"))


urlpatterns = [path(each.replace("{", "<str:").replace("}", ">"), view) for each, view in _views().items()]
