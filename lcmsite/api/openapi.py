"""The OpenAPI document: paths from drf-spectacular, texts from the catalogue."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache
from http import HTTPStatus
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from conversations.param_fields import Params
from conversations.params import AppendMessagesParams
from lcmsite.catalogue import json_schema
from lcmsite.catalogue.examples import EXAMPLES, PROBLEM_EXAMPLES, PROBLEM_HEADERS, example_body, examples_of
from lcmsite.catalogue.json_schema import Problem, Schema, fields_of
from lcmsite.catalogue.message_schema import by_form, foreign_messages
from lcmsite.catalogue.operation import Operation, operation_id, placeholders
from lcmsite.catalogue.problems import KINDS

PREFIX = "/api/v1/"
# Paths beside the catalogue's.
DOWNLOAD = "files/{file_id}/download/"
LEDGER = "conversations/{conversation_id}/ledger/"
_BYTES = {"type": "string", "format": "binary"}

# Refused by the web server, which knows nothing of LCM's problems.
_TOO_LONG = {"description": "The address is longer than 65,534 bytes. There is no body."}
_INSTEAD = "The operator asks it at the command line, a superuser on the pages."
_REQUEST_ID_HEADER = {
    "description": "The name of this request in LCM's log.",
    "required": True,
    "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
}
_REQUEST_ID = {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}}


class BearerKeyScheme(OpenApiAuthenticationExtension):
    """How the document names our keys."""

    target_class = "lcmsite.access.keys.BearerKey"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "lcm_...",
            "description": "An API key, which says for which workspace one asks and what one may do there.",
        }


def documented(operation: Operation, path: str) -> Callable[[Any], Any]:
    """Decorates the handler that answers the operation at this path."""
    in_path = placeholders(path)
    return extend_schema(
        operation_id=operation_id(operation, path),
        summary=operation.summary,
        description=_description(operation),
        tags=[operation.chapter],
        parameters=list(_parameters(operation, in_path)),
        request={"application/json": _body(operation, in_path)} if operation.has_body else None,
        responses=_responses(operation),
    )


def documented_stream(
    name: str,
    path: str,
    params: type[Params],
    *,
    chapter: str,
    media_type: str,
    statuses: Mapping[int, str],
    headers: Sequence[OpenApiParameter] = (),
) -> Callable[[Any], Any]:
    """Document the handler of a stream, which the catalogue does not list.

    Its docstring is the description. `statuses` say what each answer holds that is no problem.
    """

    def decorate(handler: Any) -> Any:
        description = inspect.getdoc(handler) or ""
        in_path = [_in_path(each, fields_of(params)[each]) for each in placeholders(path)]
        streams: dict[Any, Any] = {
            (status, media_type): OpenApiResponse(dict(_BYTES), description=meaning)
            for status, meaning in statuses.items()
        }
        return extend_schema(
            operation_id=name,
            summary=description.partition("\n")[0],
            description=description,
            tags=[chapter],
            parameters=[*in_path, *headers],
            responses=streams | _problems({416} if 206 in statuses else set()),
        )(handler)

    return decorate


def _description(operation: Operation) -> str:
    if not operation.of_the_site:
        return operation.description
    return f"{operation.description}\n\nThis belongs to the whole site: every API key gets 403. {_INSTEAD}"


def _parameters(operation: Operation, in_path: tuple[str, ...]) -> Iterator[OpenApiParameter]:
    for name, schema in fields_of(operation.params).items():
        if name in in_path:
            yield _in_path(name, schema)
        elif not operation.has_body and not (name == "conversation_ids" and "conversation_id" in in_path):
            # Where one conversation stands in the path, there cannot be several.
            yield OpenApiParameter(
                name,
                type=_undescribed(schema),
                location=OpenApiParameter.QUERY,
                description=schema["description"],
                required=operation.params.model_fields[name].is_required(),
                default=operation.defaults.get(name),
            )


def _in_path(name: str, schema: Schema) -> OpenApiParameter:
    return OpenApiParameter(
        name,
        type=_undescribed(schema),
        location=OpenApiParameter.PATH,
        description=schema["description"],
        required=True,
    )


def _undescribed(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if name != "description"}


def _body(operation: Operation, in_path: tuple[str, ...]) -> Schema:
    body = json_schema.of_params(operation.params, without=in_path, defaults=operation.defaults)
    return by_form(body) if operation.params is AppendMessagesParams else body


@cache
def _answers() -> tuple[dict[str, Schema], dict[str, Schema]]:
    """The schema of each method's answer, and the components they are made of."""
    from lcmsite.catalogue.operations import CATALOGUE

    hints = {each.tool: json_schema.envelope(each.returns, paged=each.paging is not None) for each in CATALOGUE}
    hints |= {f"{each.tool}/background": each.returns_in_background for each in CATALOGUE if each.background}
    schemas, components = json_schema.of_results(list(hints.values()))
    return dict(zip(hints, schemas, strict=True)), components


def _responses(operation: Operation) -> dict[int, Any]:
    answers, _ = _answers()
    found = {operation.status: OpenApiResponse(answers[operation.tool], description="Done.")}
    if operation.background:
        found[202] = OpenApiResponse(answers[f"{operation.tool}/background"], description="Left to a worker.")
    return found | _problems({409, 411, 413, 415} if operation.has_body else set())


def _problems(besides: Set[int]) -> dict[int, Any]:
    """The refusals of an operation; `completed` refers each to its component."""
    return dict.fromkeys({400, 401, 403, 404, 414, 429, 503} | besides, OpenApiResponse(description=""))


def _shared_responses() -> dict[str, Any]:
    """Each refusal, once, by the phrase of its status."""
    meanings = {str(kind.status): kind.meaning[:1].upper() + kind.meaning[1:] + "." for kind in KINDS}
    content = {"schema": {"$ref": f"{json_schema.COMPONENTS}Problem"}}
    shared = {
        _phrase(status): {
            "description": meaning,
            "headers": {**_REQUEST_ID, **PROBLEM_HEADERS.get(status, {})},
            "content": {
                "application/json": content
                | ({"example": PROBLEM_EXAMPLES[status]} if status in PROBLEM_EXAMPLES else {})
            },
        }
        for status, meaning in meanings.items()
    }
    return shared | {_phrase("414"): {**_TOO_LONG, "headers": {}}}


def _phrase(status: str) -> str:
    return HTTPStatus(int(status)).phrase.replace(" ", "").replace("-", "")


def completed(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Complete drf-spectacular's document with schemas, examples and links."""
    from lcmsite.catalogue.operations import CATALOGUE

    _, answers = _answers()
    components = {
        **json_schema.components_of([Problem], with_models=True),
        **foreign_messages(),
        **answers,
        **json_schema.components_of([each.params for each in CATALOGUE]),
    }
    shared = result.setdefault("components", {})
    shared.setdefault("schemas", {}).update(sorted(components.items()))
    shared["responses"] = _shared_responses()
    shared["headers"] = {"X-Request-ID": _REQUEST_ID_HEADER}
    # In the order of the reference, which begins where a newcomer does; otherwise they come by their paths.
    result["tags"] = [{"name": chapter} for chapter in dict.fromkeys(each.chapter for each in CATALOGUE)]
    for operation in CATALOGUE:
        for path in operation.paths:
            document = result["paths"][f"{PREFIX}{path}"][operation.verb.lower()]
            _complete(document, operation, path)
    for path in (DOWNLOAD, LEDGER):
        document = result["paths"][f"{PREFIX}{path}"]["get"]
        for parameter in document["parameters"]:
            parameter["example"] = EXAMPLES[parameter["name"]]
        _complete_answers(document)
    return result


def _complete(document: dict[str, Any], operation: Operation, path: str) -> None:
    examples = examples_of(operation)
    for parameter in document.get("parameters", ()):
        if parameter["name"] in examples:
            parameter["example"] = examples[parameter["name"]]
    if operation.has_body:
        in_path = placeholders(path)
        fields = operation.params.model_fields.items()
        document["requestBody"]["required"] = any(field.is_required() for name, field in fields if name not in in_path)
        content = document["requestBody"]["content"]["application/json"]
        content["example"] = example_body(operation, without=in_path)
    _complete_answers(document)
    document["responses"][str(operation.status)]["links"] = _links(operation)


def _complete_answers(document: dict[str, Any]) -> None:
    """Add headers to successful responses, and refer refusals to components."""
    document["responses"] = {
        status: {"$ref": f"#/components/responses/{_phrase(status)}"}
        if int(status) >= 400
        else {**response, "headers": _REQUEST_ID}
        for status, response in sorted(document["responses"].items())
    }


def _links(operation: Operation) -> dict[str, Any]:
    """The links of an answer by the operations they lead to; none of a list."""
    from lcmsite.catalogue.operations import CATALOGUE

    found = {name: f"$response.body#/{name}" for name in _ids(operation.returns)}
    return {
        operation_id(other, other.path): {
            "operationId": operation_id(other, other.path),
            "parameters": {f"path.{name}": found[name] for name in needed},
        }
        for other in CATALOGUE
        if (needed := placeholders(other.path)) and other is not operation and found.keys() >= set(needed)
    }


def _ids(record: Any) -> list[str]:
    if not (is_dataclass(record) and isinstance(record, type)):
        return []
    return [each.name for each in fields(record) if each.name.endswith("_id") or each.name in ("id", "name")]
