"""REST, rendered from the catalogue: one small view for each path, one handler for each of its verbs."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from django.core.exceptions import DisallowedHost, TooManyFieldsSent
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.urls import URLPattern, path
from django.views import defaults
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.views import APIView

from conversations.errors import Invalid, NotFound
from lcmsite.access.authentication import CHALLENGE, BearerKey, admit
from lcmsite.access.keys import Caller
from lcmsite.api.downloads import DOWNLOAD, OCTETS, download
from lcmsite.api.ledger_stream import LEDGER, ledger
from lcmsite.api.openapi import PREFIX, documented
from lcmsite.catalogue import strict_json
from lcmsite.catalogue.json_schema import fields_of, is_bytes
from lcmsite.catalogue.operation import Operation, operation_id
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.catalogue.problems import INTERNAL, LengthRequired, MethodNotAllowed, UnsupportedMediaType, problem_of
from lcmsite.catalogue.results import as_bytes
from lcmsite.middleware import OPERATION

API = "/api/"
JSON = "application/json"
# What an agent asks with every turn, and what it looks things up with.
BUSIEST = (
    "conversations/{conversation_id}/messages/",
    "conversations/{conversation_id}/context/",
    "conversations/{conversation_id}/matches/",
    "matches/",
    "items/{id}/",
    "summaries/{summary_id}/expansion/",
)


class CatalogueView(APIView):
    """One path. Each of its verbs asks one operation.

    drf-spectacular describes it from these attributes. A request does not go through DRF's own dispatch, of which
    nothing is needed here and which takes longer than a small append.
    """

    authentication_classes = (BearerKey,)
    permission_classes = ()
    parser_classes = (JSONParser,)
    renderer_classes = (JSONRenderer,)
    http_method_names = ("get", "post", "put", "head")
    # What each verb is called, for whoever counts.
    names: Mapping[str, str] = MappingProxyType({})

    def dispatch(self, request: HttpRequest, **in_path: str) -> HttpResponse:
        verb = _handled_as((request.method or "").lower())
        request.META[OPERATION] = self.names.get(verb, "none")
        allowed: Mapping[str, str] = {}
        try:
            caller, allowed = admit(request.META.get("HTTP_AUTHORIZATION", ""))
            answer = getattr(self, verb, None) if verb in self.http_method_names else None
            if answer is None:
                raise MethodNotAllowed(f"There is no {request.method} at this path.")
            response = answer(request, caller, in_path)
        except Exception as error:
            response = problem_response(error, request)
        for name, value in allowed.items():
            response[name] = value
        if response.status_code == 405:
            there = [name.upper() for name in self.http_method_names if hasattr(self, _handled_as(name))]
            response["Allow"] = ", ".join(there)
        return response


def _handled_as(verb: str) -> str:
    # Of the answer to HEAD, the server leaves out the body.
    return "get" if verb == "head" else verb


Handler = Callable[..., HttpResponse]


def _handler(operation: Operation, path: str) -> Handler:
    @documented(operation, path)
    def handle(self: CatalogueView, request: HttpRequest, caller: Caller, in_path: Mapping[str, str]) -> HttpResponse:
        # Before the body is read: whoever may not write is told so, whatever they would have written.
        operation.require(caller)
        given, in_text = _given(operation, request, in_path)
        answer = operation.perform(caller, given, in_text=in_text)
        return HttpResponse(as_bytes(answer.result), status=answer.status, content_type=JSON)

    return handle


def _given(
    operation: Operation, request: HttpRequest, in_path: Mapping[str, str]
) -> tuple[dict[str, Any], Collection[str]]:
    """The request's params, and the names of those that came as text; Invalid for a param given twice."""
    query = _query(request)
    raw = _raw_field(operation, request) if operation.has_body else None
    if operation.has_body and not raw:
        if query:
            raise Invalid(
                f"{next(iter(query))[:80]} must be given in the body, not in the query.", code="invalid_params"
            )
        given, in_text = _body(request), set(in_path)
    else:
        given = {name: _one_or_list(operation, name, values) for name, values in query.items()}
        in_text = {*given, *in_path}
        if raw:
            # Whatever else there is to say stands in the query.
            _require_plain(request)
            given[raw] = request.read()
    for name in in_path:
        if name in given:
            raise Invalid(f"{name} is given in the path already.", code="invalid_params")
    return {**given, **in_path}, in_text


def _one_or_list(operation: Operation, name: str, values: list[str]) -> str | list[str]:
    if fields_of(operation.params).get(name, {}).get("type") == "array":
        return values
    if len(values) > 1:
        raise Invalid(f"{name[:80]} must be given once.", code="invalid_params")
    return values[0]


def _query(request: HttpRequest) -> dict[str, list[str]]:
    """What the query says, by name. Django's QueryDict, made to be changed, takes three times as long to read.

    Invalid for a query that is not UTF-8: Django would put other characters in place of its bytes.
    """
    query = request.META.get("QUERY_STRING")
    if not query:
        return {}
    most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    try:
        # Each of its characters is a byte of what was sent.
        sent = query.encode("latin-1").decode()
        return parse_qs(sent, keep_blank_values=True, errors="strict", max_num_fields=most)
    except UnicodeDecodeError:
        raise Invalid("The query is not UTF-8 behind its percent signs.", code="invalid_params") from None
    except ValueError:
        raise TooManyFieldsSent from None


def _raw_field(operation: Operation, request: HttpRequest) -> str | None:
    """The field that the body is, as it is, where a file is sent and the request says so.

    UnsupportedMediaType for a file that is sent as anything else, such as a form or its own type.
    """
    if request.content_type == JSON:
        return None
    raw = next((name for name, field in fields_of(operation.params).items() if is_bytes(field)), None)
    if raw and request.content_type not in ("", OCTETS):
        raise UnsupportedMediaType(f"The body must be the bytes themselves, sent as Content-Type: {OCTETS}, or {JSON}.")
    return raw if request.content_type == OCTETS else None


def _body(request: HttpRequest) -> dict[str, Any]:
    """The body's object, read whole, which RequestSize keeps within LCM_MAX_REQUEST_BYTES; no body is an empty one."""
    _require_plain(request)
    text = request.read()
    if not text:
        return {}
    if request.content_type != JSON:
        raise UnsupportedMediaType("The body must be JSON, sent as Content-Type: application/json.")
    body = strict_json.read(text)
    if not isinstance(body, dict):
        raise Invalid("The body must be a JSON object.", code="invalid_params")
    return body


def _require_plain(request: HttpRequest) -> None:
    """Refuse a body of unknown length, and one that is packed."""
    if "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH"):
        raise LengthRequired("The request must say in Content-Length how long its body is.")
    if request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must be sent as it is: LCM takes no Content-Encoding such as gzip.")


def problem_response(error: BaseException, request: HttpRequest | None = None) -> HttpResponse:
    """The error as every caller of the API gets it."""
    problem = problem_of(error)
    if problem is INTERNAL and request is not None:
        # As Django itself does for errors that no view answers: who listens writes the log.
        got_request_exception.send(sender=CatalogueView, request=request)
    response = HttpResponse(as_bytes(problem.as_json()), status=problem.status, content_type=JSON)
    if problem.status == 401:
        response["WWW-Authenticate"] = CHALLENGE
    if problem.retryable:
        response["Retry-After"] = str(problem.retry_after)
    for name, value in problem.headers.items():
        response[name] = value
    return response


def of_drf(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """DRF's exception handler: of the schema's own views."""
    return problem_response(error, context["request"]._request)


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400: of requests that no view has seen, such as for a host that is not ours."""
    if request.path.startswith(API):
        return problem_response(exception)
    if isinstance(exception, DisallowedHost):
        # Whoever has just put LCM behind a name sees this first, and in a browser.
        return HttpResponseBadRequest(problem_of(exception).detail, content_type="text/plain")
    return defaults.bad_request(request, exception)


def failed(request: HttpRequest) -> HttpResponse:
    """Django's handler500: of errors outside of any view."""
    if request.path.startswith(API):
        return problem_response(sys.exc_info()[1] or RuntimeError())
    return defaults.server_error(request)


def nothing_here(request: HttpRequest, rest: str = "") -> HttpResponse:
    """The answer of every path under /api/ that there is not."""
    hint = f"Those there are: {PREFIX}docs/." if request.path.endswith("/") else "Paths end with a slash."
    return problem_response(NotFound(f"There is nothing at this path. {hint}", code="no_such_path"))


def _view(path: str, operations: list[Operation]) -> type[CatalogueView]:
    handlers = {each.verb.lower(): _handler(each, path) for each in operations}
    names = {each.verb.lower(): operation_id(each, path) for each in operations}
    return type("PathView", (CatalogueView,), {**handlers, "names": names})


def _views() -> dict[str, type[CatalogueView]]:
    """The view of each path, as the catalogue writes it."""
    by_path: dict[str, list[Operation]] = defaultdict(list)
    for operation in CATALOGUE:
        for each in operation.paths:
            by_path[each].append(operation)
    # Django tries one after the other: a name goes before a placeholder that would take it for a value.
    views = {each: _view(each, by_path[each]) for each in sorted(by_path, key=lambda each: each.replace("{", "~"))}
    views[DOWNLOAD] = type("DownloadView", (CatalogueView,), {"get": download, "names": {"get": "download"}})
    views[LEDGER] = type("LedgerView", (CatalogueView,), {"get": ledger, "names": {"get": "ledger"}})
    return views


def _route(each: str, view: type[CatalogueView], *, under: str = "") -> URLPattern:
    return path(under + each.replace("{", "<str:").replace("}", ">"), _answering(view))


def _answering(view: type[CatalogueView]) -> Handler:
    """What Django calls for a path: one view, which keeps nothing of a request; `as_view` makes one for each."""
    one = view()

    @wraps(view.as_view())
    def answer(request: HttpRequest, **in_path: str) -> HttpResponse:
        return one.dispatch(request, **in_path)

    return answer


_VIEWS = _views()
busiest = [_route(each, _VIEWS.pop(each), under=PREFIX.removeprefix("/")) for each in BUSIEST]
"""From the root of the site: each list of paths that stands around another one takes as long as the path itself."""
urlpatterns = [_route(each, view) for each, view in _VIEWS.items()]
