"""MCP resources and the prompt; resources are read by the tools' operations."""

from __future__ import annotations

import base64
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mcp_types import (
    BlobResourceContents,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from conversations.errors import Invalid, NotFound
from conversations.params import MOST_BYTES_READ
from lcmsite.access.keys import Caller
from lcmsite.catalogue.json_text import as_bytes
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.mcp.calls import perform, without_surrogates

JSON = "application/json"
PAGE = 100

_OPERATIONS = {operation.tool: operation for operation in CATALOGUE}
_TEXT_TYPES = ("text/", JSON, "application/xml", "application/x-ndjson")

Contents = TextResourceContents | BlobResourceContents


TEMPLATES = [
    ResourceTemplate(
        uri_template="lcm://conversations/{id}",
        name="conversations",
        description="A conversation and its counters; the id is its number, id (conv_7) or session.",
        mime_type=JSON,
    ),
    ResourceTemplate(
        uri_template="lcm://summaries/{id}",
        name="summaries",
        description="A summary: its text, the range of messages it covers, and its sources.",
        mime_type=JSON,
    ),
    ResourceTemplate(
        uri_template="lcm://files/{id}", name="files", description="A large file, byte for byte.", mime_type=None
    ),
]


def read_resource(uri: str, caller: Caller) -> Contents:
    """Read a resource by its address. Raises NotFound if the caller may not see it."""
    parts = urlsplit(uri)
    id = unquote(parts.path[1:])
    match parts.scheme, parts.netloc, bool(parts.path.strip("/")):
        case "lcm", "conversations", True:
            return _read_record(uri, "lcm_show", {"conversation_id": id}, caller)
        case "lcm", "summaries", True:
            if not id.startswith("sum_"):
                raise NotFound("There is no such summary: the ids of these resources begin with sum_.")
            return _read_record(uri, "lcm_describe", {"id": id}, caller)
        case "lcm", "files", True:
            return _read_file(uri, id, caller)
    known = ", ".join(each.uri_template for each in TEMPLATES)
    raise NotFound(f"There is no such resource; the resources are {known}.")


def list_page(cursor: str, caller: Caller) -> tuple[list[Resource], str | None]:
    """Return one page of the workspace's conversations, and the next page's cursor."""
    given: dict[str, Any] = {"limit": PAGE} | ({"cursor": cursor} if cursor else {})
    found = perform(_OPERATIONS["lcm_list"], given, caller=caller)
    resources = [
        Resource(
            uri=f"lcm://conversations/conv_{each.conversation_id}",
            name=without_surrogates(each.session_id),
            title=without_surrogates(each.title),
            mime_type=JSON,
        )
        for each in found
    ]
    return resources, found.next_cursor


def _read_record(uri: str, tool: str, given: dict[str, Any], caller: Caller) -> Contents:
    text = as_bytes(perform(_OPERATIONS[tool], given, caller=caller)).decode()
    return TextResourceContents(uri=uri, mime_type=JSON, text=text)


def _read_file(uri: str, id: str, caller: Caller) -> Contents:
    record = perform(_OPERATIONS["lcm_file"], {"file_id": id}, caller=caller)
    if (record.byte_size or 0) > MOST_BYTES_READ:
        raise Invalid(
            f"{id} has {record.byte_size:,} bytes, and a resource may have at most {MOST_BYTES_READ:,}. Read the file "
            "in pieces, over REST or with `lcm read-file`.",
            code="file_too_large",
        )
    content = perform(_OPERATIONS["lcm_read_file"], {"file_id": id}, caller=caller)
    mime_type = record.mime_type or "application/octet-stream"
    if mime_type.startswith(_TEXT_TYPES):
        with suppress(UnicodeDecodeError):
            return TextResourceContents(uri=uri, mime_type=mime_type, text=content.decode())
    # Send bytes, also for a file with a text type whose content is not UTF-8.
    return BlobResourceContents(uri=uri, mime_type=mime_type, blob=base64.b64encode(content).decode("ascii"))


LOOKUP = "lcm_lookup"
PROMPT_FILE = Path(__file__).resolve().parents[2] / "templates" / "mcp" / "lookup.txt"

PROMPTS = (
    Prompt(
        name=LOOKUP,
        title="Look it up",
        description="How to look up old messages: grep, then describe, then expand.",
        arguments=[
            PromptArgument(name="question", description="The question to answer."),
            PromptArgument(
                name="conversation_id", description="The conversation to search: its number, id or session."
            ),
        ],
    ),
)


def build_prompt(*, question: str = "", conversation_id: str = "") -> GetPromptResult:
    """Build the prompt: how to look something up, then question and conversation."""
    sections = [f"The question: {question}"] if question else []
    sections += [f"The conversation: {conversation_id}"] if conversation_id else []
    text = "\n\n".join([PROMPT_FILE.read_text().strip(), *sections])
    return GetPromptResult(
        description=PROMPTS[0].description,
        messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))],
    )
