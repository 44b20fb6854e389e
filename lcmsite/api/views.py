"""REST: one generic view over the catalogue, with a subclass for each path.

Params come from path, query and body; the response is JSON.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import conditional_page
from rest_framework import exceptions
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from conversations.errors import Invalid, NotFound, param_error
from lcmsite.access.keys import BearerKey
from lcmsite.api.openapi import DOWNLOAD, LEDGER, CompletedSchema, OperationSchema
from lcmsite.api.responses import JSON, problem_response
from lcmsite.api.streams import OCTETS, download, ledger
from lcmsite.api.throttling import KeyThrottle
from lcmsite.catalogue import json_text
from lcmsite.catalogue.json_schema import fields_of, is_bytes
from lcmsite.catalogue.operation import PREFIX, Operation, metric_name
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.catalogue.problems import LengthRequired, UnsupportedMediaType


class StrictJsonParser(BaseParser):
    """Parses a JSON object; the server has limited its length."""

    media_type = JSON

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        body = json_text.parse(stream.read())
        if not isinstance(body, dict):
            raise Invalid("The body must be a JSON object.", code="invalid_params")
        return body


class BytesParser(BaseParser):
    """Returns the body's bytes unchanged, for file uploads."""

    media_type = OCTETS

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream.read()


class ResultRenderer(BaseRenderer):
    """Serializes the result of a service as JSON, with orjson."""

    media_type = JSON
    format = "json"
    charset = None
    render_style = "binary"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return json_text.as_bytes(data)


class AlwaysJson(DefaultContentNegotiation):
    """Responds in JSON, whatever the Accept header says."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class MayPerform(BasePermission):
    """Raises Forbidden before the body is read if the key's scope is too small."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if view.operation is not None:
            view.operation.require(request.user)
        return True


class CatalogueView(ViewSet):
    """One path; each of its HTTP verbs performs one operation."""

    authentication_classes = (BearerKey,)
    permission_classes = (MayPerform,)
    throttle_classes = (KeyThrottle,)
    parser_classes = (StrictJsonParser, BytesParser)
    renderer_classes = (ResultRenderer,)
    content_negotiation_class = AlwaysJson
    http_method_names = ("get", "post", "put", "head")
    schema = OperationSchema()
    path = ""
    # By verb.
    operations: Mapping[str, Operation] = MappingProxyType({})
    operation: Operation | None

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        verb = "get" if request.method == "HEAD" else (request.method or "").lower()
        self.operation = self.operations.get(verb)
        # For the metrics, which count by operation.
        name = metric_name(self.operation, self.path) if self.operation else self.action_map.get(verb, "none")
        request.operation = name  # type: ignore[attr-defined]
        return super().initialize_request(request, *args, **kwargs)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        allowance = getattr(request, "allowance", None)
        for name, value in (allowance.headers if allowance else {}).items():
            response[name] = value
        return response

    def perform(self, request: Request, **in_path: str) -> Response:
        assert self.operation is not None
        given, in_text = params_of(self.operation, request, in_path)
        caller: Any = request.user
        answer = self.operation.perform(caller, given, in_text=in_text)
        return Response(answer.result, status=answer.status)


class StreamView(CatalogueView):
    """A path whose response is streamed."""

    schema = CompletedSchema()
    download = download
    ledger = ledger


def _view(path: str, operations: list[Operation]) -> Callable[..., HttpResponseBase]:
    by_verb = {each.verb.lower(): each for each in operations}
    parsers = [StrictJsonParser, BytesParser] if any(bytes_field(each) for each in operations) else [StrictJsonParser]
    view = CatalogueView.as_view(
        dict.fromkeys(by_verb, "perform"), path=path, operations=by_verb, parser_classes=parsers
    )
    if any(each.immutable for each in operations):
        view = conditional_page(view)
    # BREACH attacks on compression are impossible: without cookies, no third party can make a caller send requests.
    compressed: Callable[..., HttpResponseBase] = gzip_page(view)
    return compressed


def _views() -> dict[str, Callable[..., HttpResponseBase]]:
    """The view of each path; paths have the catalogue's placeholders."""
    by_path: dict[str, list[Operation]] = defaultdict(list)
    for operation in CATALOGUE:
        for each in operation.paths:
            by_path[each].append(operation)
    # Django takes the first match: literal segments come before placeholders, and `items/{id}/impact/` before
    # `items/{id}/`, whose id may have slashes.
    order = sorted(by_path, key=lambda each: (each == "items/{id}/", each.replace("{", "~")))
    views = {each: _view(each, by_path[each]) for each in order}
    return views | {
        DOWNLOAD: StreamView.as_view({"get": "download"}),
        LEDGER: StreamView.as_view({"get": "ledger"}),
    }


def params_of(
    operation: Operation, request: Request, in_path: Mapping[str, str]
) -> tuple[dict[str, Any], Collection[str]]:
    """The params of a request, and the names of those that came as text."""
    query = _query(request)
    raw = _raw_field(operation, request) if operation.has_body else None
    if operation.has_body and raw is None:
        if query:
            name = next(iter(query))
            raise param_error(name[:80], "This must be given in the body, not in the query.")
        given, in_text = _body(request), {*in_path}
    else:
        given = {name: _one_or_list(operation, name, values) for name, values in query.items()}
        in_text = {*given, *in_path}
        if raw is not None:
            # The body is the file, so the other params are in the query.
            given[raw] = _body(request) or b""
    for name in in_path:
        if name in given:
            raise param_error(name, "This is given in the path already.")
    return {**given, **in_path}, in_text


def bytes_field(operation: Operation) -> str | None:
    """The name of the param that takes a file's bytes, if there is one."""
    return next((name for name, schema in fields_of(operation.params).items() if is_bytes(schema)), None)


def _raw_field(operation: Operation, request: Request) -> str | None:
    """The name of the param that the raw body fills; None if the body is JSON."""
    media_type = request.content_type.partition(";")[0].strip().lower()
    field = None if media_type == JSON else bytes_field(operation)
    if field and media_type not in ("", OCTETS):
        raise UnsupportedMediaType(f"The body must be the bytes themselves, sent as Content-Type: {OCTETS}, or {JSON}.")
    return field if media_type == OCTETS else None


def _one_or_list(operation: Operation, name: str, values: list[str]) -> str | list[str]:
    if fields_of(operation.params).get(name, {}).get("type") == "array":
        return values
    if len(values) > 1:
        raise param_error(name[:80], "This must be given once.")
    return values[0]


def _query(request: Request) -> dict[str, list[str]]:
    """The query's values by name; Invalid if it is not UTF-8."""
    query = request.META.get("QUERY_STRING")
    if not query:
        return {}
    try:
        # WSGI gives each byte as one character.
        sent = query.encode("latin-1").decode()
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return parse_qs(sent, keep_blank_values=True, errors="strict", max_num_fields=most)
    except UnicodeDecodeError:
        raise Invalid("The percent-encoded bytes of the query are not UTF-8.", code="invalid_params") from None
    except ValueError:
        raise TooManyFieldsSent from None


def _body(request: Request) -> Any:
    """The parsed body ({} if empty); refuses an unknown length or Content-Encoding."""
    if "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH"):
        raise LengthRequired("The request must say in Content-Length how long its body is.")
    if request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must be sent as it is: LCM takes no Content-Encoding such as gzip.")
    try:
        return request.data
    except exceptions.UnsupportedMediaType:
        raise UnsupportedMediaType("The body must be JSON, sent as Content-Type: application/json.") from None


@csrf_exempt
def nothing_here(request: HttpRequest, rest: str = "") -> HttpResponse:
    """The response to every unknown path under /api/."""
    hint = f"All paths: {PREFIX}docs/." if request.path.endswith("/") else "Paths end with a slash."
    return problem_response(NotFound(f"There is nothing at this path. {hint}", code="no_such_path"))


def _route(path: str) -> str:
    """Django's route of a path; an item's id may be a session with slashes."""
    return path.replace("{id}", "<path:id>").replace("{", "<str:").replace("}", ">")


urlpatterns = [path(_route(each), view) for each, view in _views().items()]
