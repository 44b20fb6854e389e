"""How well search by meaning finds, alone and with words: goal 14, beside words alone, by the same engine.

On chats of BEAM, where an assistant writes pages, on LoCoMo, where two people write lines, and on LongMemEval, whose
answers are sessions: one is found with any of its messages. Everything is embedded first, by a real embedder. Questions
are used word for word, each in its own conversation.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from conversations.errors import LcmError, Unavailable
from conversations.models import Message, Workspace
from conversations.scope import Scope
from retrieval.engine import RetrievalEngine
from retrieval.semantic.embedders import Embedders
from retrieval.semantic.embedding_worker import EmbeddingWorker
from retrieval.semantic.questions import question_of
from retrieval.types import GrepScope
from tests.conversations.real_data import DATA, conversation_files, rows_of
from tests.evaluation.figures import Figure, interval
from tests.evaluation.long_messages import chats, stored_questions
from tests.evaluation.retrieval import Corpus

WORKSPACE = "evaluation of meaning"
MODES = ("full_text", "semantic", "hybrid")
# Of both together, for the first ten.
GOALS = {"BEAM": 0.60, "LoCoMo": 0.81}
SECONDS_BETWEEN_SWEEPS = 5.0


class Asked(NamedTuple):
    """A question; each of its answers is found with any of these messages."""

    text: str
    conversation_id: int
    answers: tuple[frozenset[int], ...]


def figures(*, sample: int | None) -> Iterator[Figure]:
    """Goal 14: words, meaning, and both together; of so many conversations of each kind, or of all."""
    scope = Scope(Workspace.objects.get_or_create(name=WORKSPACE)[0].pk)
    questions = {
        "BEAM": _of_beam(scope, sample),
        "LoCoMo": _of_locomo(sample),
        "LongMemEval": _of_longmemeval(),
        **_identifiers(sample),
    }
    _embed()
    engine = RetrievalEngine.from_settings(scope)
    for kind, asked in questions.items():
        for mode in MODES if asked else ():
            found, seconds = zip(*(_search(engine, mode, each) for each in asked), strict=True)
            for first in (10, 20):
                # The goals are for all conversations: a few may have harder questions than the others.
                goal = GOALS.get(kind) if sample is None and (mode, first) == ("hybrid", 10) else None
                yield _figure(f"{kind}: R@{first}", mode, asked, found, first, goal)
            # The second time: what the embedder took for the question is not in it.
            yield Figure(14, f"{kind}: ms a search", mode, 1000 * statistics.median(seconds))


def _drawn(names: Sequence[str], sample: int | None) -> list[str]:
    """All of these, or so many by chance, the same each time."""
    return list(names) if sample is None else random.Random(7).sample(names, min(sample, len(names)))


def _of_beam(scope: Scope, sample: int | None) -> list[Asked]:
    names = chats() if sample is None else [each for each in chats() if each.startswith("100K")]
    found = stored_questions(scope, of=_drawn(names, sample))
    return [Asked(each.text, each.conversation_id, _each_by_itself(each.answers)) for each in found]


def _of_locomo(sample: int | None) -> list[Asked]:
    names = [name for file in conversation_files() if (name := file.name.split(".")[0]).startswith("locomo")]
    corpora = [Corpus.loaded(WORKSPACE, named=name) for name in _drawn(names, sample)]
    found = [each for corpus in corpora for each in corpus.questions()]
    return [Asked(each.text, each.conversation_id, _each_by_itself(each.answers)) for each in found]


def _of_longmemeval() -> list[Asked]:
    corpus = Corpus.loaded(WORKSPACE, named="lme")
    sessions: Mapping[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for name, conversation_id in corpus.conversations.items():
        turns = rows_of(DATA / "conversations" / f"{name}.jsonl.gz")
        ids = Message.objects.filter(conversation_id=conversation_id).order_by("seq").values_list("pk", flat=True)
        for turn, message_id in zip(turns, ids, strict=True):
            sessions[name][turn["meta"]["session"]].add(message_id)
    found = []
    with gzip.open(DATA / "longmemeval_questions.json.gz", "rt") as file:
        for row in json.load(file):
            name = f"lme_{row['conv']}"
            answers = tuple(frozenset(sessions[name][each]) for each in row["sessions"])
            found.append(Asked(row["question"], corpus.conversations[name], answers))
    return found


def _identifiers(sample: int | None) -> dict[str, list[Asked]]:
    """Identifiers of sessions of agents, as they are and in a question."""
    names = [name for file in conversation_files() if (name := file.name.split(".")[0]).startswith("cc_ccl")]
    found: dict[str, list[Asked]] = {"identifiers": [], "identifiers in a question": []}
    for name in _drawn(names, sample):
        for form, query in Corpus.loaded(WORKSPACE, named=name).identifiers():
            kind = {"as they are": "identifiers", "in a question": "identifiers in a question"}.get(form)
            if kind is not None:
                found[kind].append(Asked(query.text, query.conversation_id, _each_by_itself(query.answers)))
    return found


def _each_by_itself(messages: frozenset[int]) -> tuple[frozenset[int], ...]:
    return tuple(frozenset({each}) for each in messages)


def _search(engine: RetrievalEngine, mode: str, asked: Asked) -> tuple[list[int], float]:
    where = {"scope": GrepScope.MESSAGES, "conversation_id": asked.conversation_id}
    if mode != "full_text":
        _embedded(asked.text)
    for _ in range(2):
        began = time.perf_counter()
        result = engine.grep(query=asked.text, mode=mode, limit=20, **where)
        took = time.perf_counter() - began
    return [int(match.id.removeprefix("msg_")) for match in result.matches], took


@retry(retry=retry_if_exception_type(Unavailable), wait=wait_fixed(5), stop=stop_after_delay(300), reraise=True)
def _embedded(text: str) -> None:
    """Cache the vector of a question, with more tries than a search has: this may run beside others."""
    if isinstance(question := question_of(text), LcmError):
        raise question


def _figure(
    measure: str, mode: str, asked: Sequence[Asked], found: Sequence[list[int]], first: int, goal: float | None
) -> Figure:
    shares: dict[int, list[float]] = defaultdict(list)
    for each, ids in zip(asked, found, strict=True):
        hits = sum(not answer.isdisjoint(ids[:first]) for answer in each.answers)
        shares[each.conversation_id].append(hits / len(each.answers))
    values = [share for each in shares.values() for share in each]
    mean = sum(values) / max(1, len(values))
    return Figure(14, measure, mode, mean, goal, interval(list(shares.values()), random.Random(7)))


def _embed() -> None:
    """Embed everything, and say how far it is."""
    embedders = Embedders.from_settings()
    status = embedders.set_up()
    while not status.is_ready:
        EmbeddingWorker.from_settings().sweep()
        status = embedders.status()
        print(status.note, file=sys.stderr, flush=True)
        if any(each.last_error for each in status.embedders):
            time.sleep(SECONDS_BETWEEN_SWEEPS)
