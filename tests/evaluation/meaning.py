"""How well search by meaning finds, alone and with words: goal 14, on chats of BEAM and LoCoMo, beside words alone.

Everything is embedded first, by a real embedder. Questions are used word for word, each in its own conversation.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from conversations.models import Workspace
from conversations.scope import Scope
from retrieval.engine import RetrievalEngine
from retrieval.semantic.embedders import Embedders
from retrieval.semantic.embedding_worker import EmbeddingWorker
from retrieval.types import GrepScope
from tests.evaluation.figures import Figure, interval
from tests.evaluation.long_messages import stored_questions
from tests.evaluation.retrieval import Corpus

WORKSPACE = "evaluation of meaning"
MODES = ("full_text", "semantic", "hybrid")
# Of both together, for the first ten.
GOALS = {"BEAM": 0.60, "LoCoMo": 0.81}
SECONDS_BETWEEN_SWEEPS = 5.0

# A question, its conversation and the messages that answer it.
Asked = tuple[str, int, frozenset[int]]


def figures(*, is_sample: bool) -> Iterator[Figure]:
    """Goal 14: words, meaning, and both together; of one conversation each in a sample."""
    scope = Scope(Workspace.objects.get_or_create(name=WORKSPACE)[0].pk)
    of_chats = stored_questions(scope, chats=1 if is_sample else None)
    corpus = Corpus.loaded(WORKSPACE, named="locomo_26" if is_sample else "locomo")
    questions: Mapping[str, Sequence[Asked]] = {
        "BEAM": [(each.text, each.conversation_id, each.answers) for each in of_chats],
        "LoCoMo": [(each.text, each.conversation_id, each.answers) for each in corpus.questions()],
    }
    _embed()
    engine = RetrievalEngine.from_settings(scope)
    for kind, asked in questions.items():
        for mode in MODES:
            found, seconds = zip(*(_search(engine, mode, each) for each in asked), strict=True)
            for first in (10, 20):
                goal = GOALS[kind] if (mode, first) == ("hybrid", 10) else None
                yield _figure(f"{kind}: R@{first}", mode, asked, found, first, goal)
            # The second time: what the embedder took for the question is not in it.
            yield Figure(14, f"{kind}: ms a search", mode, 1000 * statistics.median(seconds))


def _search(engine: RetrievalEngine, mode: str, asked: Asked) -> tuple[list[int], float]:
    text, conversation_id, _ = asked
    for _ in range(2):
        began = time.perf_counter()
        result = engine.grep(query=text, mode=mode, scope=GrepScope.MESSAGES, conversation_id=conversation_id, limit=20)
        took = time.perf_counter() - began
    return [int(match.id.removeprefix("msg_")) for match in result.matches], took


def _figure(
    measure: str, mode: str, asked: Sequence[Asked], found: Sequence[list[int]], first: int, goal: float | None
) -> Figure:
    shares: dict[int, list[float]] = defaultdict(list)
    for (_, conversation_id, answers), ids in zip(asked, found, strict=True):
        shares[conversation_id].append(len(answers.intersection(ids[:first])) / len(answers))
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
