"""The OpenAPI document: drf-spectacular walks the paths, the catalogue says what each of them takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from lcmsite.adapters import schema
from lcmsite.adapters.operation import Operation, placeholders
from lcmsite.adapters.problems import KINDS


class BearerKeyScheme(OpenApiAuthenticationExtension):
    """How the document names our keys."""

    target_class = "lcmsite.adapters.authentication.BearerKey"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "lcm_..."}


def documented(operation: Operation, path: str) -> Callable[[Any], Any]:
    """Decorates the handler that answers the operation at this path."""
    in_path = placeholders(path)
    return extend_schema(
        operation_id=operation.tool.removeprefix("lcm_") + ("" if path == operation.path else "_everywhere"),
        summary=operation.summary,
        description=operation.description,
        tags=[operation.service.__name__],
        parameters=list(_parameters(operation, in_path)),
        request={"application/json": schema.of_params(operation.params, without=in_path, defaults=operation.defaults)}
        if operation.has_body
        else None,
        responses=_responses(operation),
    )


def _parameters(operation: Operation, in_path: tuple[str, ...]) -> Iterator[OpenApiParameter]:
    for name, field in operation.params.prototype().fields.items():
        if name in in_path:
            yield OpenApiParameter(
                name,
                type=schema.of_field(field),
                location=OpenApiParameter.PATH,
                description=str(field.help_text or ""),
                required=True,
            )
        elif not operation.has_body:
            yield OpenApiParameter(
                name,
                type=schema.of_field(field),
                location=OpenApiParameter.QUERY,
                description=str(field.help_text or ""),
                required=field.required,
                default=operation.defaults.get(name),
            )


def _responses(operation: Operation) -> dict[int, Any]:
    told = {operation.status: OpenApiResponse(schema.of_result(operation.returns), description="Done.")}
    if operation.background:
        told[202] = OpenApiResponse(schema.of_result(operation.returns_in_background), description="Left to a worker.")
    with_body = (409, 411, 413, 415) if operation.has_body else ()
    possible = {400, 401, 403, 404, 503, *with_body}
    problem = {"$ref": "#/components/schemas/Problem"}
    return told | {
        kind.status: OpenApiResponse(problem, description=kind.meaning[:1].upper() + kind.meaning[1:] + ".")
        for kind in KINDS
        if kind.status in possible
    }


def with_components(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular: puts the records that answers are made of into the document."""
    from lcmsite.adapters.catalogue import CATALOGUE

    given = [operation.returns for operation in CATALOGUE]
    given += [operation.returns_in_background for operation in CATALOGUE if operation.background]
    result.setdefault("components", {}).setdefault("schemas", {}).update(schema.components(given))
    return result
