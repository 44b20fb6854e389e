"""Turn operations into verbs: their params become arguments of argparse."""

from __future__ import annotations

import base64
import sys
from argparse import SUPPRESS, ArgumentParser, BooleanOptionalAction, Namespace
from pathlib import Path
from typing import Any

from conversations.errors import Invalid
from conversations.scope import HOW_TO_NAME
from conversations.types import OpenedConversation
from lcmsite.catalogue import json_text
from lcmsite.catalogue.json_schema import Schema, fields_of, is_any, is_bytes, is_conversation
from lcmsite.catalogue.operation import Operation, placeholders
from lcmsite.cli.cli_session import Session
from lcmsite.cli.verbs import STDIO, Verb, opened, waiting

JSON_HELP = "JSON, or @FILE, or - for standard input"
SEVERAL_HELP = "Separated by commas, or JSON."


def from_operation(operation: Operation) -> Verb:
    """The verb that performs this operation."""

    def add_arguments(parser: ArgumentParser) -> None:
        fields = fields_of(operation.params)
        required = [name for name, field in operation.params.model_fields.items() if field.is_required()]
        # The params in the path, then the other required ones.
        positionals = dict.fromkeys([*placeholders(operation.path), *required])
        for name in positionals:
            _add_positional(parser, name, fields[name], required=name in required)
        for name, field in fields.items():
            if name not in positionals:
                _add_option(parser, name, field, operation.defaults.get(name))

    def run(session: Session, arguments: Namespace) -> Any:
        fields = fields_of(operation.params)
        given = {name: _parse_value(name, fields[name], value, session) for name, value in vars(arguments).items()}
        if fields.keys() >= {"file_name", "content"} and arguments.content != STDIO:
            given.setdefault("file_name", Path(arguments.content).name)
        # People begin with discovering and opening, and operations of the site need no workspace: none need exist yet.
        creates_default = operation.tool in ("lcm_schema", "lcm_open") or operation.operator_only
        caller = session.default_creating_caller if creates_default else session.caller
        with waiting(f"{operation.command} ..."):
            result = operation.perform(caller, given, in_text=given).result
        if isinstance(result, OpenedConversation) and result.left_as_it_was:
            unchanged = ", ".join(result.left_as_it_was)
            sys.stderr.write(f"lcm: The conversation already existed; not changed: {unchanged}.\n")
        if operation.command == "journal" and not result and not given.keys() & {"subpath", "cursor"}:
            sys.stderr.write(
                "lcm: The session's own transcript file has no entries; `lcm journal-subpaths` lists other files.\n"
            )
        return result

    return Verb(operation.command, run, add_arguments, operation.description)


def _is_json(field: Schema) -> bool:
    """Whether the param takes objects or any JSON, which commas cannot separate."""
    inner = field["items"] if field.get("type") == "array" else field
    return bool(inner.get("type") == "object") or is_any(inner)


def _add_positional(parser: ArgumentParser, name: str, field: Schema, *, required: bool) -> None:
    help = f"{field['description']} ({JSON_HELP})" if _is_json(field) else field["description"]
    if field.get("type") == "array" and not _is_json(field):
        help = f"{help} {SEVERAL_HELP}"
    if is_conversation(field):
        help = HOW_TO_NAME + ("" if required else " Default: all conversations.")
    if _is_json(field):
        parser.add_argument(name, nargs="?", default="-", metavar=name.upper(), help=help)
    elif is_bytes(field):
        parser.add_argument(name, metavar="FILE", help="The file to read, or - for standard input.")
    elif required:
        parser.add_argument(name, metavar=_metavar(name), help=help)
    else:
        parser.add_argument(name, nargs="?", default=SUPPRESS, metavar=_metavar(name), help=help)


def _add_option(parser: ArgumentParser, name: str, field: Schema, default: Any) -> None:
    flag = f"--{name.replace('_', '-')}"
    help = field["description"] + (f" Default: {default}." if isinstance(default, str | int | float) else "")
    if field.get("type") == "boolean":
        parser.add_argument(flag, action=BooleanOptionalAction, default=SUPPRESS, help=help)
    elif "enum" in field:
        parser.add_argument(flag, choices=field["enum"], default=SUPPRESS, help=help)
    elif _is_json(field):
        parser.add_argument(flag, default=SUPPRESS, metavar="JSON", help=f"{help} ({JSON_HELP})")
    elif field.get("type") == "array":
        parser.add_argument(flag, default=SUPPRESS, metavar="A,B", help=f"{help} {SEVERAL_HELP}")
    else:
        metavar = "N" if field.get("type") in ("integer", "number") else "TEXT"
        parser.add_argument(flag, default=SUPPRESS, metavar=metavar, help=help)


def _metavar(name: str) -> str:
    return "ID" if name == "id" or name.endswith("_id") and name != "session_id" else name.upper()


def _parse_value(name: str, field: Schema, given: Any, session: Session) -> Any:
    if _is_json(field):
        text = read_argument(given)
        try:
            return json_text.parse(text)
        except Invalid as wrong:
            raise Invalid(f"{name}: {wrong.detail}", code=wrong.code) from None
    if field.get("type") == "array":
        is_named = is_conversation(field["items"])
        # A session may be called @FILE.
        values = _parse_list(given if is_named else read_argument(given))
        return [session.conversation_id(str(each)) for each in values] if is_named else values
    if is_bytes(field):
        return base64.b64encode(_read_bytes(given)).decode("ascii")
    if is_conversation(field):
        return session.conversation_id(given)
    return given


def _parse_list(given: str | bytes) -> list[Any]:
    """The values of a list, given in JSON or separated by commas."""
    text = given if isinstance(given, str) else given.decode("utf-8", "replace")
    return json_text.parse(text) if text.lstrip().startswith("[") else [each.strip() for each in text.split(",")]


def read_argument(given: str) -> str | bytes:
    """The text itself; for @FILE or -, the contents of the file or standard input."""
    if given == STDIO:
        return _read_bytes(given)
    return _read_bytes(given[1:]) if given.startswith("@") else given


def _read_bytes(path: str) -> bytes:
    with opened(path) as file:
        return file.read()
