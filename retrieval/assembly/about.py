"""Collect the messages and summaries that mention a name or an identifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from conversations.errors import param_error
from conversations.types import Role
from retrieval.reader import Reader
from retrieval.search.grep import Grep, whole_texts
from retrieval.search.request import SearchRequest
from retrieval.types import GrepResult, GrepSort, ItemKind, Match

# The maximum number of matches of one search that are considered.
MOST_MATCHES = 50
# A text of at most this many tokens is returned in full, a longer one as an excerpt around the match.
WHOLE_TOKENS = 200
# The tokens of an item's JSON, without its text and session id.
ITEM_TOKENS = 80
_NOT_NARROWED = "Nothing that holds the name speaks of this aspect, so all of it is given."
_IN_PARTS = "Nothing holds the name as it stands; these hold parts of it."
_QUOTES = str.maketrans(dict.fromkeys('"“”„«»', " "))


@dataclass(frozen=True)
class AboutItem:
    """A message or a summary that mentions the entity.

    `text` is the whole text or, if `is_whole` is false, an excerpt. A summary has the `created_at` of its last message.
    """

    id: str
    kind: ItemKind
    conversation_id: int
    session_id: str
    first_seq: int
    last_seq: int
    created_at: datetime
    role: Role | None
    text: str
    is_whole: bool
    # Whether the text is withheld: it is quarantined, or repeats quarantined words.
    quarantined: bool = False


@dataclass(frozen=True)
class About:
    """Messages and summaries that mention a name or an identifier, best match first.

    `narrowed`: every item also contains the words of the aspect. `more`: there are further matches.
    """

    entity: str
    aspect: str | None
    question: str | None
    conversation_id: int | None
    items: tuple[AboutItem, ...]
    tokens: int
    max_tokens: int
    narrowed: bool
    more: bool
    note: str | None = None


@dataclass(frozen=True)
class NameReader(Reader):
    """Collects what mentions a name, with two or three searches."""

    def about(
        self,
        *,
        entity: str,
        aspect: str | None = None,
        question: str | None = None,
        max_tokens: int = 2000,
        conversation_id: int | None = None,
    ) -> About:
        """Gather what mentions a name or an identifier, best match first.

        It returns the messages and summaries that contain the name verbatim, with their ids, sessions and times, within
        `max_tokens` tokens. Short texts are returned in full, long ones as an excerpt around the match. `aspect` keeps
        only texts that also contain these words, if there are any. `question` ranks the results. Cite the ids; describe
        reads a message in full, expand opens a summary. No language model is called. Raises Invalid `invalid_params`
        for a name without a word or number; NotFound for an unknown conversation.
        """
        grep = Grep(self.policy, self.scope, self.tokens)
        name = " ".join(entity.translate(_QUOTES).split())
        if not name:
            raise param_error("entity", "There is no name in this; give a word, a path or a number.")
        words = [f'"{word}"' for word in (aspect or "").translate(_QUOTES).split()]

        def found(*terms: str, sort: GrepSort) -> GrepResult:
            query = " ".join((f'"{name}"', *terms))
            return grep.run(SearchRequest(query, conversation_id=conversation_id, limit=MOST_MATCHES, sort=sort))

        # A search by recency returns only texts with all words, if there are any. Another one by relevance ranks them.
        held = found(*words, sort=GrepSort.RECENCY)
        narrowed = bool(words and held.matches) and not (held.relaxed or held.dropped)
        if words and not narrowed:
            words, held = [], found(sort=GrepSort.RECENCY)
        wording = question.translate(_QUOTES) if question else ""
        holding = {match.id for match in held.matches}
        best = [match for match in found(*words, wording, sort=GrepSort.RELEVANCE).matches if match.id in holding]
        first = {match.id for match in best}
        ranked = [*best, *(match for match in held.matches if match.id not in first)]
        items, tokens = _fitting(_items(ranked), max_tokens, self.tokens.count)
        notes = (
            _NOT_NARROWED if aspect and ranked and not narrowed else None,
            _IN_PARTS if ranked and held.relaxed else None,
            held.note,
        )
        return About(
            entity=entity,
            aspect=aspect,
            question=question,
            conversation_id=conversation_id,
            items=items,
            tokens=tokens,
            max_tokens=max_tokens,
            narrowed=narrowed,
            more=held.more or len(items) < len(ranked),
            note=" ".join(filter(None, notes)) or None,
        )


def _items(ranked: Sequence[Match]) -> list[AboutItem]:
    """Convert matches to items: short texts in full, others with their snippet."""
    whole = whole_texts([match for match in ranked if match.token_count <= WHOLE_TOKENS and not match.quarantined])
    return [
        AboutItem(
            id=match.id,
            kind=match.kind,
            conversation_id=match.conversation_id,
            session_id=match.session_id,
            first_seq=match.first_seq,
            last_seq=match.last_seq,
            created_at=match.created_at,
            role=match.role,
            text=whole.get(match.id, match.snippet.text),
            is_whole=match.id in whole,
            quarantined=match.quarantined,
        )
        for match in ranked
    ]


def _fitting(
    items: Iterable[AboutItem], max_tokens: int, count: Callable[[str], int]
) -> tuple[tuple[AboutItem, ...], int]:
    """Return the first items within `max_tokens`, at least one, and their tokens."""
    fitting: list[AboutItem] = []
    spent = 0
    for item in items:
        cost = ITEM_TOKENS + count(item.text) + count(item.session_id)
        if fitting and spent + cost > max_tokens:
            break
        fitting.append(item)
        spent += cost
    return tuple(fitting), spent
