"""What schemathesis asks besides: valid data is taken, or refused for a reason that no JSON Schema could have given."""

from __future__ import annotations

import re
from typing import Any

import schemathesis
from schemathesis.checks import CheckContext
from schemathesis.core.transport import Response
from schemathesis.generation.case import Case
from schemathesis.hooks import HookContext
from schemathesis.openapi.checks import RejectedPositiveData
from schemathesis.specs.openapi.checks import positive_data_acceptance

from lcmsite.catalogue.examples import EXAMPLES

# Of refusals, by how their sentences begin: what a schema would have had to know.
BEYOND_A_SCHEMA = {
    "No chunk begins at": "how large the file is that is sent in chunks",
    "The chunk at .* must have .* bytes, not": "how large the chunks of this upload are",
    "A file may have at most .* bytes": "how large a file this site takes",
    "'.*' is (no|not the) id of ": "which things have ids, and how they begin",
    "Nothing is left to erase": "what was erased already",
    "Nothing was erased: the confirmation is not": "what an earlier answer asked to be typed",
    "metadata must not contain NUL or lone surrogates": "what stands in an object, at any depth",
    "from_seq: .* is after to_seq": "which of two numbers is larger",
    "A range needs both": "that one param needs another",
    "to_seq: .* is before from_seq": "which of two numbers is larger",
    "from_seq must not be after to_seq": "how long the conversation is",
    "repair_.* has no step": "how many steps the plan has",
    "A step cannot be both approved and refused": "that two params exclude each other",
    "to_seq: This is before from_seq": "which of two numbers is larger",
    "Two messages of one append have the same idempotency_key": "that two fields exclude each other",
    "cold: Only messages are in the cold tier": "that two params exclude each other",
    "query: There is nothing to search for": "what of a text is a word",
    "question: This is empty": "what of a text is a word",
    "under: This summary is of another conversation": "which conversation has which summary",
    "other: .* is of conversation": "which conversation has which receipt",
    "ids: .* is a |ids: these belong to several workspaces": "which ids there are, and of what",
    "file_.* is not a ledger": "what the file holds",
    "until: This is not later than since": "which of two moments is later",
    ".*: Each conversation numbers its messages": "that one param needs another",
    "reserve: .* leaves .* tokens": "which of two numbers is larger",
    "(last|head|at)_seq: there is no message": "how long the conversation is",
    "parent_link needs a parent_session_id": "that one param needs another",
    "project: give either project or conversation_id": "that two params exclude each other",
    "Give either output or error": "that two params exclude each other",
    "mode: Only messages are found by meaning": "that two params exclude each other",
    "prompt must contain": "that a text has a mark in it",
    "mode: Cold texts have no embeddings": "that two params exclude each other",
    "sort: (Cold texts are not indexed|Matches )": "that two params exclude each other",
    "Delegation without retention": "that one kind needs another param",
    "model: .* is unknown": "which models this site has",
    "No language model is configured": "which models this site has",
    "An append takes 1 to": "how many messages this site takes at once",
    "has_metadata: This must be a JSON object": "that a text is JSON",
    "query: .* characters are too many": "how long a query this site takes",
    "The file has .* bytes; no range begins": "how large the file is",
    "conversation_ids: Give either one conversation or a list": "that two params exclude each other",
    ".*: No kind that other params allow": "that two params exclude each other",
    r"messages\[\d+\]: A message needs content or parts": "that one of two fields is needed",
    "as_of: ": "how long the conversation is, and which runs it had",
    "summarizer: ": "which summarizers this site has",
}


# The document's examples of these are of nobody's: with them, no search would find anything.
_NOBODYS = {"cursor": EXAMPLES["cursor"], "under": EXAMPLES["under"]}


@schemathesis.hook
def map_query(context: HookContext, query: dict[str, Any] | None) -> dict[str, Any] | None:
    """Leave out what names a thing that there is not; other values of these params are made up and asked."""
    return query and {name: value for name, value in query.items() if _NOBODYS.get(name) != value}


@schemathesis.check
def valid_data_is_taken(ctx: CheckContext, response: Response, case: Case) -> bool | None:
    """schemathesis' own check, `positive_data_acceptance`, but for refusals of what the data mean."""
    try:
        return positive_data_acceptance(ctx, response, case)
    except RejectedPositiveData:
        if response.status_code in (400, 413, 416) and _is_beyond_a_schema(response.json(), case):
            return None
        raise


def _is_beyond_a_schema(problem: dict[str, Any], case: Case) -> bool:
    # An earlier answer gave it; settings that are good one by one contradict each other; patterns have a grammar.
    if problem["code"] in ("bad_cursor", "cannot_be_satisfied", "bad_pattern"):
        return True
    if any(re.match(sentence, problem["detail"]) for sentence in BEYOND_A_SCHEMA):
        return True
    # What a message of another form may hold, that form says; LCM's own form is in the document to the last field.
    is_foreign = isinstance(case.body, dict) and case.body.get("format", "lcm") != "lcm"
    return is_foreign and all(name.startswith("messages[") for name in problem.get("errors", {"": ""}))
