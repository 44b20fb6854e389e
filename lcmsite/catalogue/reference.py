"""Generate docs/reference.md: each operation's paths, params and names.

The page is generated from the same entries, params and schemas as the interfaces themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin

from django.template.loader import render_to_string

from conversations.content.lossless_values import NO_NUL
from lcmsite.api.openapi import DOWNLOAD, LEDGER
from lcmsite.catalogue.json_schema import Schema, fields_of, is_any, is_conversation
from lcmsite.catalogue.json_text import json_names
from lcmsite.catalogue.operation import PREFIX, Operation, pieces, placeholders
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.catalogue.problems import EXIT_CODES, KINDS
from lcmsite.cli.program import MANAGEMENT, verbs

_STREAMS = (
    (DOWNLOAD, "A file's bytes, or those of one requested `Range`."),
    (LEDGER, "A conversation as JSON Lines that anybody can verify, in the format of [ledger.md](ledger.md)."),
)
_FORMATS = {"date-time": "a time (ISO 8601)", "date": "a date"}
_PATTERNS = {
    "^(0|[1-9][0-9]{0,18})$": "a seq",
    "^run_[0-9a-zA-Z]{1,70}$": "`run_...`",
    "^msg_(0|[1-9][0-9]{0,18})$": "`msg_...`",
    "^[0-9A-Fa-f]{64}$": "64 hexadecimal digits",
}
# Larger bounds are limits of the database; they are not shown.
_FAR = 2**31


def page() -> str:
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield render_to_string("reference/opening.txt", {"prefix": PREFIX})
    yield from _table(
        ("status", "exit status of `lcm`", "when"),
        ((str(kind.status), str(kind.exit_code), kind.meaning) for kind in KINDS),
    )
    yield "\nThe exit statuses of `lcm`:\n"
    yield from _table(("exit status", "meaning"), ((str(code), meaning) for code, meaning in EXIT_CODES.items()))
    yield "\n## Tools of agents\n"
    tools = ((f"`{each.agent_tool}`", _link(each), each.summary) for each in CATALOGUE if each.for_agents)
    yield from _table(("tool", "operation", "what it does"), tools)
    for service, chapter in {each.service: each.chapter for each in CATALOGUE}.items():
        yield f"\n## {chapter}\n\n{_prose(service.__doc__ or '').partition('. ')[0].rstrip('.')}."
        for operation in CATALOGUE:
            if operation.service is service:
                yield from _operation(operation)
    yield "\n## Only on the command line\n"
    of_catalogue = {each.command for each in CATALOGUE}
    ours = {name: verb.sentence for name, verb in verbs().items() if name not in of_catalogue}
    rows = ((f"`lcm {name}`", text) for name, text in {**MANAGEMENT, **ours}.items())
    yield from _table(("verb", "what it does"), rows)
    yield "\n## Only over REST\n\nStreams of any length, in place of JSON answers. Both need the scope `read`.\n"
    yield from _table(("path", "what it answers with"), ((f"`GET {PREFIX}{path}`", text) for path, text in _STREAMS))
    yield ""


def _link(operation: Operation) -> str:
    return f"[{operation.command}](#lcm-{operation.command.replace(' ', '-')})"


def _operation(operation: Operation) -> Iterator[str]:
    yield f"\n### lcm {operation.command}\n"
    yield f"{_prose(operation.description)}\n"
    for path in operation.paths:
        yield f"- `{operation.verb} {PREFIX}{path}`"
    statuses = [f"{operation.status}"]
    if operation.background:
        statuses.append("202, at once, when `background` is true")
    facts = [f"scope `{operation.scope}`", f"answers {', or '.join(statuses)}"]
    if operation.operator_only:
        facts = ["only for the site administrator at the command line and superusers; every API key gets 403"]
    facts += [f"tool `{operation.agent_tool}`"] if operation.for_agents else []
    yield f"- {'; '.join(facts)}"
    yield f"- {_answer(operation.returns)}\n"
    params = fields_of(operation.params)
    if params:
        yield from _table(
            ("param", "type", "default", "what it is"),
            (_param(operation, name, schema) for name, schema in params.items()),
        )


def _param(operation: Operation, name: str, schema: Schema) -> tuple[str, str, str, str]:
    default = operation.defaults.get(name)
    if name in placeholders(operation.path):
        shown = "in the path"
    elif operation.params.model_fields[name].is_required():
        shown = "required"
    else:
        shown = "" if default is None else f"`{_json(default)}`"
    return f"`{name}`", _words(schema), shown, schema["description"]


def _words(schema: Schema) -> str:
    if is_conversation(schema):
        return "number or id (`conv_7`) of a conversation"
    if "enum" in schema:
        return "one of " + ", ".join(f"`{each}`" for each in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_words(each) for each in schema["anyOf"])
    if is_any(schema):
        return "any JSON value"
    match schema.get("type"):
        case "integer" | "number" as kind:
            name = "whole number" if kind == "integer" else "number"
            if "exclusiveMinimum" in schema:
                return f"{name}, above {schema['exclusiveMinimum']}, at most {schema['maximum']}"
            but = ", not 0" if "not" in schema else ""
            return name + _bounds(schema.get("minimum"), schema.get("maximum")) + but
        case "string" if "contentEncoding" in schema:
            return "bytes, in base64"
        case "string" if "format" in schema:
            return _FORMATS[schema["format"]]
        case "string" if schema.get("pattern", NO_NUL) != NO_NUL:
            return _PATTERNS.get(schema["pattern"], "text")
        case "string":
            high = schema.get("maxLength")
            return "text" if high is None else f"text of at most {high:,} characters"
        case "boolean":
            return "true or false"
        case "array":
            most = f" of at most {schema['maxItems']:,}" if schema.get("maxItems") else ""
            return f"list{most}, each: {_words(schema['items'])}"
        case "object":
            return "JSON object"
        case other:
            raise TypeError(f"No words for {other!r}")


def _bounds(low: float | None, high: float | None) -> str:
    if high is not None and high < _FAR:
        return f", at most {high:,}" if low is None else f", {low:,} to {high:,}"
    return "" if low is None else f", at least {low:,}"


def _answer(hint: Any) -> str:
    """Describe the result by the names of its fields."""
    if hint is bytes:
        return "gives `content`, in base64"
    if get_origin(hint) in (list, tuple):
        [of, *_] = get_args(hint)
        return f"gives `items`, each with {_names(of)}"
    return f"gives {_names(hint)}"


def _names(hint: Any) -> str:
    if not (is_dataclass(hint) and isinstance(hint, type)):
        # The result is one of several records.
        return "; or ".join(_names(each) for each in get_args(hint))
    names = json_names(hint)
    return ", ".join(f"`{name}`" for each in fields(hint) if (name := names.get(each.name, each.name)))


def _json(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool | tuple) else str(value)


def _prose(text: str) -> str:
    """The docstring with each paragraph and list item on one line."""
    return "\n".join(" ".join(each.split()) for each in pieces(text))


def _table(heads: tuple[str, ...], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in row)} |"
