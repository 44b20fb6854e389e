"""Check the ids that an answer cites; if there is no answer, select excerpts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conversations.humanize import counted
from retrieval.delegation.extent import Extent, matches_within
from retrieval.delegation.sub_agent import Work
from retrieval.delegation.types import Ending, QueryExcerpt
from retrieval.engine import RetrievalEngine
from retrieval.ids import names_in, without
from retrieval.search.grep import whole_texts
from retrieval.slices import prefix_within
from retrieval.types import ItemKind, Match

MOST_EXCERPTS = 20
# Each excerpt, best first, gets at most half of the remaining tokens, but at least 24: less would say too little.
_SHARE, _LEAST = 2, 24
# The excerpt of a long text begins this many characters before the match.
_BEFORE = 200


def checked(work: Work, extent: Extent) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """Return the answer without ids outside the grant, valid ids, and removed ids."""
    if work.answer is None:
        return None, (), ()
    in_text = [each for each in names_in(work.answer) if each.kind in (ItemKind.SUMMARY, ItemKind.MESSAGE)]
    cited = [each for text in work.cited for each in names_in(text)]
    allowed = extent.within([*cited, *in_text])
    named_ids = list(dict.fromkeys(each.id for each in (*cited, *in_text)))
    # Citations that contain no id are removed, too.
    removed = [id for id in named_ids if id not in allowed] + [text[:80] for text in work.cited if not names_in(text)]
    answer = without(work.answer, {each.id for each in in_text if each.id not in allowed}, instead="[unknown id]")
    return answer, tuple(id for id in named_ids if id in allowed), tuple(dict.fromkeys(removed))


def note_of(work: Work, removed: Sequence[str], excerpts: Sequence[QueryExcerpt]) -> str | None:
    reason = {
        Ending.NO_MODEL: "No language model is configured, so these are excerpts and no answer.",
        Ending.OUT_OF_TURNS: "The language model used up its turns without an answer.",
        Ending.OUT_OF_TIME: "The language model had no answer in time.",
        Ending.MODEL_FAILED: f"The language model gave no answer ({work.failure}).",
        Ending.NOT_UNDERSTOOD: "The language model did not keep to the form of an answer.",
        Ending.INCOMPLETE: "The language model says that it found only a part, or nothing.",
        Ending.GRANT_EXCEEDED: "All that the grant allows was read, without an answer.",
        Ending.GRANT_EXPIRED: "The grant expired before there was an answer.",
        Ending.GRANT_REVOKED: "The grant was revoked before there was an answer.",
    }.get(work.ending)
    notes = [reason] if reason else []
    if removed:
        notes.append(f"{counted(len(removed), 'id')} in the answer led nowhere: taken out, and listed in removed_ids.")
    if work.answer is None and not excerpts and work.ending not in (Ending.GRANT_EXPIRED, Ending.GRANT_REVOKED):
        notes.append("Nothing within the grant, or within what is left of it, says anything about it.")
    return " ".join(notes) or None


def excerpts_of(engine: RetrievalEngine, question: str, extent: Extent, *, room: int) -> tuple[QueryExcerpt, ...]:
    """Select excerpts from the texts of the grant, best first, within `room` tokens."""
    matches = matches_within(engine, question, extent, limit=MOST_EXCERPTS)
    found = tuple(match for match in matches if not match.quarantined)
    return tuple(_cut(engine, found, whole_texts(found), room))


def _cut(engine: RetrievalEngine, found: tuple[Match, ...], texts: dict[str, str], room: int) -> Iterator[QueryExcerpt]:
    for match in found:
        share = max(room // _SHARE, min(room, _LEAST))
        if share < _LEAST:
            return
        text = texts[match.id]
        if match.token_count > share:
            text = text[max(0, match.snippet.offset - _BEFORE) :]
            text = text[: prefix_within(text, share, engine.tokens.count)]
        tokens = engine.tokens.count(text)
        room -= tokens
        yield QueryExcerpt(
            id=match.id,
            kind=match.kind,
            conversation_id=match.conversation_id,
            first_seq=match.first_seq,
            last_seq=match.last_seq,
            text=text,
            tokens=tokens,
            complete=text == texts[match.id],
            role=match.role,
        )
