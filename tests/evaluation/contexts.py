"""What of an answer is in the context that was assembled for its question: goal 7, beside the newest messages alone.

LoCoMo's conversations are compacted, 32 messages to a leaf and each to about a fifth of its tokens, and its questions
are the queries, word for word. Counted are the messages with the evidence that are in the context as they were said,
and the answer's words, of those that the evidence says, that stand anywhere in it, summaries too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from compaction.engine import CompactionEngine
from conversations.models import Message
from retrieval.assembler import ContextAssembler
from tests.evaluation.figures import Figure, words_of
from tests.evaluation.retrieval import Corpus, Query

WORKSPACE = "evaluation of contexts"
OVERRIDES = {"leaf_batch_messages": 32, "leaf_target_tokens": 200}
# By budget: the evidence as it was said, and the words of the answer.
GOALS = {2_000: (0.83, 0.94), 4_000: (0.88, 0.97)}


@dataclass(frozen=True)
class Context:
    """What a model would be shown: the messages that are in it as they were said, and all its words."""

    message_ids: frozenset[int]
    words: frozenset[str]


Assemble = Callable[[Query, int], Context]


def figures() -> Iterator[Figure]:
    """Goal 7: ours, then what most agents do."""
    corpus = Corpus.loaded(WORKSPACE, named="locomo", overrides=OVERRIDES)
    engine = CompactionEngine.from_settings(corpus.scope)
    for conversation_id in corpus.conversations.values():
        engine.compact(conversation_id=conversation_id)
    questions = corpus.questions()
    said = {
        message_id: words_of(content)
        for message_id, content in Message.objects.filter(
            conversation_id__in=corpus.conversations.values()
        ).values_list("message_id", "content")
    }
    methods: Mapping[str, Assemble] = {"lcm": _ours(corpus), "newest messages": _Newest(said).context}
    for budget, goals in GOALS.items():
        for method, assemble in methods.items():
            evidence, answers = _kept(questions, said, assemble, budget)
            of_evidence, of_answers = goals if method == "lcm" else (None, None)
            yield Figure(7, f"context of {budget:,} tokens: evidence as it was said", method, evidence, of_evidence)
            yield Figure(7, f"context of {budget:,} tokens: words of the answer", method, answers, of_answers)


def _kept(
    questions: list[Query], said: Mapping[int, frozenset[str]], assemble: Assemble, budget: int
) -> tuple[float, float]:
    """The mean share of the evidence, over questions; the share of the words of all answers."""
    shares = []
    kept = needed = 0
    for query in questions:
        context = assemble(query, budget)
        shares.append(len(query.answers & context.message_ids) / len(query.answers))
        need = words_of(query.answer) & _together(said[each] for each in query.answers)
        kept += len(need & context.words)
        needed += len(need)
    return sum(shares) / len(shares), kept / needed


def _ours(corpus: Corpus) -> Assemble:
    assembler = ContextAssembler.from_settings(corpus.scope)

    def assemble(query: Query, budget: int) -> Context:
        context = assembler.assemble(conversation_id=query.conversation_id, budget=budget, query=query.text)
        if context.total_tokens > budget:
            raise AssertionError(f"A context of {context.total_tokens} tokens, where {budget} were asked for.")
        shown = [int(item.id.removeprefix("msg_")) for item in context.items if item.id.startswith("msg_")]
        return Context(frozenset(shown), words_of(" ".join(item.text for item in context.items)))

    return assemble


class _Newest:
    """The newest messages that fit, and nothing else."""

    def __init__(self, said: Mapping[int, frozenset[str]]) -> None:
        self.said = said

    def context(self, query: Query, budget: int) -> Context:
        shown = []
        newest = Message.objects.filter(conversation_id=query.conversation_id).order_by("-seq")
        for message_id, tokens in newest.values_list("message_id", "token_count").iterator():
            budget -= tokens
            if budget < 0:
                break
            shown.append(message_id)
        return Context(frozenset(shown), _together(self.said[each] for each in shown))


def _together(words: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset(chain.from_iterable(words))
