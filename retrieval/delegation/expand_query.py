"""Answer a question from summaries and their sources, under a grant.

The grant limits which items a language model may read for the question, and how many tokens. Without a model, the best
excerpts are returned. Ids in an answer are removed unless they exist and the grant covers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compaction.llm.configuration import MODELS, ModelsPolicy, chain_of
from compaction.llm.guards import guarded_client
from compaction.llm.types import Misconfigured
from compaction.policy import CompactionPolicy
from compaction.summarizing.summarizer_chain import MOST_PROMPT_TOKENS
from conversations.errors import Invalid, NotFound
from conversations.humanize import counted
from conversations.scope import EVERYTHING, Scope
from conversations.sql import array, load, rows
from retrieval.delegation.extent import Extent, matches_within, to_be_read
from retrieval.delegation.granted import GrantedReader
from retrieval.delegation.grants import Grants
from retrieval.delegation.sub_agent import SubAgent, Work
from retrieval.delegation.types import (
    DEEPEST,
    Ending,
    GrantRecord,
    GrantRecursion,
    GrantState,
    QueryAnswer,
    QueryExcerpt,
    RoutingHint,
)
from retrieval.engine import RetrievalEngine
from retrieval.ids import Named, named, names_in, without
from retrieval.search.grep import whole_texts
from retrieval.slices import prefix_within
from retrieval.types import ItemKind, Match

_MOST_FOUND = 8
_LEAST_WINDOW = 1_000
# The hint recommends direct reading if it costs at most this share of an expansion's tokens, and this many calls.
_DIRECT_SHARE, _MOST_CALLS = 0.7, 3
_MOST_EXCERPTS = 20
# Each excerpt, best first, gets at most half of the remaining tokens, but at least 24: less would say too little.
_SHARE, _LEAST = 2, 24
# The excerpt of a long text begins this many characters before the match.
_BEFORE = 200

_SQL = load("retrieval/delegation.sql")
_WORKSPACES = "SELECT DISTINCT workspace_id FROM conversations WHERE conversation_id = ANY(%s)"


@dataclass(frozen=True)
class Delegation:
    """Issues a grant, has a model answer a question under it, and checks the ids."""

    engine: RetrievalEngine
    grants: Grants
    models: ModelsPolicy
    chain: str

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Delegation:
        return cls(
            engine=RetrievalEngine.from_settings(scope),
            grants=Grants.from_settings(scope),
            models=ModelsPolicy.from_settings(),
            chain=CompactionPolicy.from_settings().summarizer,
        )

    def expand_query(
        self,
        *,
        question: str,
        ids: Sequence[str] = (),
        query: str | None = None,
        conversation_id: int | None = None,
        depth: int = DEEPEST,
        token_cap: int | None = None,
        grant_id: str | None = None,
    ) -> QueryAnswer:
        """Answer a question from long texts, citing the ids of its sources.

        Name the `ids` of summaries and messages, or give a `query` to search for (default: the question). A language
        model, if one is configured (`LCM_SUMMARIZER`), reads these texts under a temporary grant, which allows `depth`
        levels below them and at most `token_cap` tokens. Without a model, or if the model gives no answer in time, the
        best excerpts are returned, and `ending` says why. `hint` tells whether it is enough to open everything
        directly. Pass the `grant_id` of an earlier answer to ask another question under its grant.
        Raises NotFound and Invalid for these ids; GrantExpired, GrantRevoked or GrantExceeded if the grant no longer
        allows reading; GrantRecursion if `ids`, `query` or `conversation_id` come with a `grant_id`.
        """
        if not question.strip():
            raise Invalid("question: This is empty. Ask a question.")
        if grant_id is not None:
            return self._answered(
                question, self._again(grant_id, is_new=bool(ids or query or conversation_id is not None))
            )
        item_ids = self._named(ids) if ids else self._searched(query or question, conversation_id)
        if not item_ids:
            return QueryAnswer(
                question=question,
                answer=None,
                partial=True,
                ending=Ending.NOTHING_FOUND,
                cited_ids=(),
                removed_ids=(),
                excerpts=(),
                hint=RoutingHint(direct_is_enough=False, tokens_below=0),
                grant=None,
                note="No text contains these words; ask in other words, or name ids.",
            )
        return self._answered(question, self._granted(question, item_ids, depth, token_cap))

    def _answered(self, question: str, grant: GrantRecord) -> QueryAnswer:
        extent = Extent.of(grant.item_ids, depth=grant.depth)
        work = self._looked_into(question, grant, extent)
        answer, cited, removed = _checked(work, extent)
        excerpts: tuple[QueryExcerpt, ...] = ()
        if answer is None and work.ending not in (Ending.GRANT_REVOKED, Ending.GRANT_EXPIRED):
            excerpts = self._excerpts(question, grant, extent)
        return QueryAnswer(
            question=question,
            answer=answer,
            partial=work.ending is not Ending.ANSWERED,
            ending=work.ending,
            cited_ids=cited if answer is not None else tuple(excerpt.id for excerpt in excerpts),
            removed_ids=removed,
            excerpts=excerpts,
            hint=self._hint(extent),
            grant=self.grants.get_grant(grant_id=grant.grant_id),
            model=work.model,
            steps=tuple(work.steps),
            note=_note_of(work, removed, excerpts),
        )

    # -- the grant

    def _again(self, grant_id: str, *, is_new: bool) -> GrantRecord:
        grant = self.grants.usable(grant_id=grant_id)
        if is_new:
            refusal = GrantRecursion("Give grant_id without ids, query and conversation_id, or omit it.")
            raise self.grants.count_refusal(grant_id=grant_id, refusal=refusal)
        return grant

    def _granted(self, question: str, item_ids: Sequence[str], depth: int, token_cap: int | None) -> GrantRecord:
        policy = self.engine.policy
        wanted = policy.grant_tokens if token_cap is None else token_cap
        return self.grants.issue(
            workspace_id=self._workspace_of(item_ids),
            question=question,
            item_ids=item_ids,
            depth=depth,
            token_cap=min(wanted, policy.grant_tokens, self._room()),
            seconds=policy.grant_seconds,
        )

    def _named(self, ids: Sequence[str]) -> list[str]:
        """Parse ids of summaries and messages; raises NotFound unless all are visible."""
        found = [_one(id) for id in ids]
        for each in found:
            if each.kind is ItemKind.SUMMARY:
                self.engine.scope.summary(each.id)
            else:
                self.engine.scope.message(each.number)
        return list(dict.fromkeys(each.id for each in found))

    def _searched(self, query: str, conversation_id: int | None) -> list[str]:
        result = self.engine.grep(
            query=query[: self.engine.policy.max_query_length], conversation_id=conversation_id, limit=_MOST_FOUND
        )
        return to_be_read(result.matches)

    def _workspace_of(self, item_ids: Sequence[str]) -> int:
        if self.engine.scope.workspace_id is not None:
            return self.engine.scope.workspace_id
        # A grant belongs to one workspace, even if the caller may read several.
        extent = Extent.of(item_ids, depth=1)
        found = rows(_WORKSPACES, [extent.conversations()])
        if len(found) > 1:
            raise Invalid("ids: these belong to several workspaces; ask about each workspace separately.")
        return int(found[0][0])

    # -- the question

    def _looked_into(self, question: str, grant: GrantRecord, extent: Extent) -> Work:
        name = self._model()
        if name is None:
            return Work(ending=Ending.NO_MODEL)
        try:
            client = guarded_client(name, policy=self.models)
        except Misconfigured as wrong:
            return Work(ending=Ending.MODEL_FAILED, failure=wrong.reason.value)
        reader = GrantedReader(engine=self.engine, grants=self.grants, grant=grant, extent=extent)
        items = dict(rows(_SQL["item_lines"], [list(extent.roots), array(extent.messages)]))
        lines = [items[id] for id in grant.item_ids if id in items]
        return SubAgent(client=client, reader=reader).look_into(question, lines)

    def _model(self) -> str | None:
        """The name of the first model in the chain of summarizers, if there is one."""
        return next((name for name in chain_of(self.chain) if name in MODELS), None)

    def _room(self) -> int:
        """The number of tokens for read texts in the model's context window."""
        name = self._model()
        if name is None:
            return self.engine.policy.grant_tokens
        room = self.models.window_tokens(name) - self.models.model_max_output_tokens - MOST_PROMPT_TOKENS
        return max(_LEAST_WINDOW, room)

    def _excerpts(self, question: str, grant: GrantRecord, extent: Extent) -> tuple[QueryExcerpt, ...]:
        if self.grants.get_grant(grant_id=grant.grant_id).state is not GrantState.ACTIVE:
            return ()
        with self.grants.reserve(grant_id=grant.grant_id, wanted=self.engine.policy.max_expand_tokens) as room:
            found = _excerpts_of(self.engine, question, extent, room=room.tokens)
            room.used = sum(excerpt.tokens for excerpt in found)
        return found

    def _hint(self, extent: Extent) -> RoutingHint:
        """Decide whether reading everything directly is enough, and list the calls."""
        tokens = extent.tokens_below()
        calls = [f"lcm_expand summary_id={id} depth={extent.depth} include_messages=true" for id in extent.roots]
        calls += [
            f"lcm_expand_range conversation_id={id} from_seq={first} to_seq={last} only_messages=true"
            for id, first, last in extent.spans()
        ]
        is_enough = tokens <= _DIRECT_SHARE * self.engine.policy.max_expand_tokens and len(calls) <= _MOST_CALLS
        return RoutingHint(is_enough, tokens, tuple(calls) if is_enough else ())


def _one(id: str) -> Named:
    """Parse the id of a summary or message in a text; raises NotFound, Invalid."""
    found = named(id) or next(iter(names_in(id)), None)
    if found is None:
        raise NotFound(f"There is no summary or message {id[:80]!r} that you may see.")
    if found.kind not in (ItemKind.SUMMARY, ItemKind.MESSAGE):
        raise Invalid(
            f"ids: {found.id[:80]} is a {found.kind}; name summaries (sum_...) and messages (msg_...). To search a "
            "conversation, give conversation_id; to read a file, use lcm_read_file."
        )
    return found


def _checked(work: Work, extent: Extent) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
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


def _note_of(work: Work, removed: Sequence[str], excerpts: Sequence[QueryExcerpt]) -> str | None:
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


def _excerpts_of(engine: RetrievalEngine, question: str, extent: Extent, *, room: int) -> tuple[QueryExcerpt, ...]:
    """Select excerpts from the texts of the grant, best first, within `room` tokens."""
    matches = matches_within(engine, question, extent, limit=_MOST_EXCERPTS)
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
