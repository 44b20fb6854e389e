"""The OpenAPI document: paths from drf-spectacular, texts from the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, Literal

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from conversations.param_fields import Params
from conversations.params import AppendMessagesParams
from lcmsite.catalogue import json_schema
from lcmsite.catalogue.examples import EXAMPLES, PROBLEM_EXAMPLES, PROBLEM_HEADERS, example_body, examples_of
from lcmsite.catalogue.json_schema import Problem, Schema, fields_of
from lcmsite.catalogue.message_schema import by_form, foreign_messages
from lcmsite.catalogue.operation import Operation, operation_id, placeholders
from lcmsite.catalogue.problems import KINDS

# Paths of streams, which are not in the catalogue.
DOWNLOAD = "files/{file_id}/download/"
LEDGER = "conversations/{conversation_id}/ledger/"

_INSTEAD = "The site administrator calls it at the command line, a superuser on the pages."
_REQUEST_ID_HEADER = {
    "description": "The id of this request in LCM's log.",
    "required": True,
    "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
}
_REQUEST_ID = {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}}


class BearerKeyScheme(OpenApiAuthenticationExtension):
    """Documents API keys as an HTTP bearer scheme."""

    target_class = "lcmsite.access.keys.BearerKey"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "lcm_...",
            "description": "An API key, which determines the workspace and the caller's rights in it.",
        }


class CompletedSchema(AutoSchema):
    """Adds headers and examples, and makes each refusal a reference to a component."""

    examples: Mapping[str, Any] = EXAMPLES

    def get_operation(self, *args: Any) -> Any:
        document = super().get_operation(*args)
        if document is None:
            return None
        for parameter in document.get("parameters", ()):
            if parameter["name"] in self.examples:
                parameter["example"] = self.examples[parameter["name"]]
        document["responses"] = {
            status: {"$ref": f"#/components/responses/{_phrase(status)}"}
            if int(status) >= 400
            else {**response, "headers": _REQUEST_ID}
            for status, response in sorted(document["responses"].items())
        }
        return document

    def get_summary(self) -> str:
        return self.get_description().partition("\n")[0]


class OperationSchema(CompletedSchema):
    """Documents one HTTP verb of a path from its operation in the catalogue."""

    view: Any

    def get_operation(self, path: str, regex: str, prefix: str, method: str, *registry: Any) -> Any:
        self.operation: Operation = self.view.operations[method.lower()]
        self.in_path = placeholders(path)
        self.examples = examples_of(self.operation)
        document = super().get_operation(path, regex, prefix, method, *registry)
        if self.operation.has_body:
            fields = self.operation.params.model_fields.items()
            needed = any(field.is_required() for name, field in fields if name not in self.in_path)
            document["requestBody"]["required"] = needed
            content = document["requestBody"]["content"]["application/json"]
            content["example"] = example_body(self.operation, without=self.in_path)
        document["responses"][str(self.operation.status)]["links"] = _links(self.operation)
        return document

    def get_operation_id(self) -> str:
        return operation_id(self.operation, self.view.path)

    def get_summary(self) -> str:
        return self.operation.summary

    def get_description(self, *_: str) -> str:
        description = self.operation.description
        if not self.operation.operator_only:
            return description
        return f"{description}\n\nThis concerns the whole site: every API key gets 403. {_INSTEAD}"

    def get_tags(self) -> list[str]:
        return [self.operation.chapter]

    def get_override_parameters(self) -> list[Any]:
        return list(_parameters(self.operation, self.in_path))

    def get_request_serializer(self) -> Any:
        if not self.operation.has_body:
            return None
        params = self.operation.params
        body = json_schema.of_params(params, without=self.in_path, defaults=self.operation.defaults)
        return {"application/json": by_form(body) if issubclass(params, AppendMessagesParams) else body}

    def get_response_serializers(self) -> Any:
        operation = self.operation
        answers, _ = _answers()
        found = {operation.status: OpenApiResponse(answers[operation.tool], description="Done.")}
        if operation.background:
            found[202] = OpenApiResponse(answers[f"{operation.tool}/background"], description="Queued for a worker.")
        # A read that may conflict says so in its docstring, such as one of a quarantined file.
        may_conflict = operation.has_body or "Conflict" in (getattr(operation.service, operation.method).__doc__ or "")
        return found | _problems(
            ({409} if may_conflict else set()) | ({411, 413, 415} if operation.has_body else set())
        )


def stream_responses(media_type: str, meanings: Mapping[int, str], *, besides: Set[int] = frozenset()) -> Any:
    """The responses of a stream: bytes, described in `meanings`, or problems."""
    streams: dict[Any, Any] = {
        (status, media_type): OpenApiResponse({"type": "string", "format": "binary"}, description=meaning)
        for status, meaning in meanings.items()
    }
    return streams | _problems(besides)


def _parameters(operation: Operation, in_path: tuple[str, ...]) -> Iterator[OpenApiParameter]:
    for name, schema in fields_of(operation.params).items():
        if name in in_path:
            yield path_parameter(operation.params, name)
        elif not operation.has_body and not (name == "conversation_ids" and "conversation_id" in in_path):
            # A path that names one conversation takes no list of conversations.
            required, default = operation.params.model_fields[name].is_required(), operation.defaults.get(name)
            yield _parameter(name, schema, OpenApiParameter.QUERY, required=required, default=default)


def path_parameter(params: type[Params], name: str) -> OpenApiParameter:
    """A param of a path, as OpenAPI describes it."""
    return _parameter(name, fields_of(params)[name], OpenApiParameter.PATH, required=True)


def _parameter(name: str, schema: Schema, location: Literal["path", "query"], **more: Any) -> OpenApiParameter:
    undescribed = {key: value for key, value in schema.items() if key != "description"}
    return OpenApiParameter(name, type=undescribed, location=location, description=schema["description"], **more)


@cache
def _answers() -> tuple[dict[str, Schema], dict[str, Schema]]:
    """The response schema of each tool, and the components that these refer to."""
    from lcmsite.catalogue.operations import CATALOGUE

    hints = {each.tool: json_schema.envelope(each.returns, paged=each.paging is not None) for each in CATALOGUE}
    hints |= {f"{each.tool}/background": each.returns_in_background for each in CATALOGUE if each.background}
    schemas, components = json_schema.of_results(list(hints.values()))
    return dict(zip(hints, schemas, strict=True)), components


def _problems(besides: Set[int]) -> dict[int, Any]:
    """The refusals of an operation; `CompletedSchema` replaces them by references."""
    return dict.fromkeys({400, 401, 403, 404, 414, 429, 503} | besides, OpenApiResponse(description=""))


def _shared_responses() -> dict[str, Any]:
    """The refusals as shared components, named after their status phrases."""
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
    # The connection refuses an address that is too long, before the request has an id.
    shared[_phrase("414")]["headers"] = {}
    return shared


def _phrase(status: str) -> str:
    return HTTPStatus(int(status)).phrase.replace(" ", "").replace("-", "")


def complete_document(result: dict[str, Any], **_: Any) -> dict[str, Any]:
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
    # In the catalogue's order, basic operations first; the default would be the order of the paths.
    result["tags"] = [{"name": chapter} for chapter in dict.fromkeys(each.chapter for each in CATALOGUE)]
    return result


def _links(operation: Operation) -> dict[str, Any]:
    """Links from a response to operations that take its ids; none for lists."""
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
