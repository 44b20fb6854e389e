"""Requests of the API: their params, from path, query and body."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from django.core.exceptions import TooManyFieldsSent
from rest_framework import exceptions
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from conversations.errors import Invalid
from lcmsite.api.responses import JSON
from lcmsite.catalogue import strict_json
from lcmsite.catalogue.json_schema import fields_of, is_bytes
from lcmsite.catalogue.operation import Operation
from lcmsite.catalogue.problems import LengthRequired, UnsupportedMediaType

OCTETS = "application/octet-stream"


class StrictJsonParser(BaseParser):
    """Reads a JSON object, which RequestSize keeps within LCM_MAX_REQUEST_BYTES."""

    media_type = JSON

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        body = strict_json.read(stream.read())
        if not isinstance(body, dict):
            raise Invalid("The body must be a JSON object.", code="invalid_params")
        return body


class BytesParser(BaseParser):
    """Reads a file's bytes as they are."""

    media_type = OCTETS

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream.read()


def params_of(
    operation: Operation, request: Request, in_path: Mapping[str, str]
) -> tuple[dict[str, Any], Collection[str]]:
    """The params of a request, and the names of those that came as text; Invalid for one given twice."""
    query = _query(request)
    given: dict[str, Any]
    in_text: Collection[str]
    if not operation.has_body:
        given = {name: _one_or_list(operation, name, values) for name, values in query.items()}
        in_text = {*given, *in_path}
    elif raw := _raw_field(operation, request):
        # The body is the file, so the other params are in the query.
        given = {name: _one_or_list(operation, name, values) for name, values in query.items()}
        in_text = {*given, *in_path}
        given[raw] = _body(request) or b""
    elif query:
        raise Invalid(f"{next(iter(query))[:80]} must be given in the body, not in the query.", code="invalid_params")
    else:
        given, in_text = _body(request), set(in_path)
    for name in in_path:
        if name in given:
            raise Invalid(f"{name} is given in the path already.", code="invalid_params")
    return {**given, **in_path}, in_text


def bytes_field(operation: Operation) -> str | None:
    """The param that is a file, if there is one."""
    return next((name for name, schema in fields_of(operation.params).items() if is_bytes(schema)), None)


def _raw_field(operation: Operation, request: Request) -> str | None:
    """The param that the body is, where a file is sent as it is."""
    media_type = request.content_type.partition(";")[0].strip().lower()
    field = None if media_type == JSON else bytes_field(operation)
    if field and media_type not in ("", OCTETS):
        raise UnsupportedMediaType(f"The body must be the bytes themselves, sent as Content-Type: {OCTETS}, or {JSON}.")
    return field if media_type == OCTETS else None


def _one_or_list(operation: Operation, name: str, values: list[str]) -> str | list[str]:
    if fields_of(operation.params).get(name, {}).get("type") == "array":
        return values
    if len(values) > 1:
        raise Invalid(f"{name[:80]} must be given once.", code="invalid_params")
    return values[0]


def _query(request: Request) -> dict[str, list[str]]:
    """The query's values by name; Invalid if it is not UTF-8, where Django would replace characters."""
    query = request.META.get("QUERY_STRING")
    if not query:
        return {}
    try:
        # WSGI gives each byte as one character.
        sent = query.encode("latin-1").decode()
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return parse_qs(sent, keep_blank_values=True, errors="strict", max_num_fields=most)
    except UnicodeDecodeError:
        raise Invalid("The query is not UTF-8 behind its percent signs.", code="invalid_params") from None
    except ValueError:
        raise TooManyFieldsSent from None


def _body(request: Request) -> Any:
    """The parsed body; an empty object without one. Refuses a body of unknown length, and a compressed one."""
    if "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH"):
        raise LengthRequired("The request must say in Content-Length how long its body is.")
    if request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must be sent as it is: LCM takes no Content-Encoding such as gzip.")
    try:
        return request.data
    except exceptions.UnsupportedMediaType:
        raise UnsupportedMediaType("The body must be JSON, sent as Content-Type: application/json.") from None
