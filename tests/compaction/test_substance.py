"""A model's summary that says next to nothing of its sources is refused; a good short one is not."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict

import pytest

from compaction.engine import CompactionEngine
from compaction.summarizing.output_checks import Refusal, Rejected, require_substance
from conversations.models import Summary
from tests.compaction.summarizing import exact
from tests.compaction.vendor import Vendor, good, saying
from tests.conversations.real_data import DATA, needs_data, rows_of
from tests.factories import a_conversation
from tests.flows.vendors import asking

CUE = "Expand for details about: the rest."
# Some 1,900 tokens with names in them.
WORK = [
    f"The assistant opened src/export/rows_{n}.py, changed write_{n}_rows to getRows{n}, and ran the tests; "
    f"{n} of them failed with ERR-{4000 + n}. " + "They looked at it once more. " * 6
    for n in range(24)
]
TALK = ["We talked about the garden, and about what to plant when the frost is over. " * 6 for _ in range(24)]


def refused(text: str, sources: list[str], *, target_tokens: int = 600) -> Refusal | None:
    try:
        require_substance(text, sources=sources, target_tokens=target_tokens, count_tokens=exact)
    except Rejected as rejected:
        return rejected.reason
    return None


@pytest.mark.parametrize(
    "text",
    [
        CUE,
        f"- {CUE}",
        f"Summary.\n{CUE}",
        f"Several things were discussed.\n{CUE}",
        "Expand for details about:\n- the rest.",
        "The conversation covered a number of topics in some detail, several things were tried, and the participants "
        f"agreed to continue with them later on.\n{CUE}",
    ],
    ids=[
        "nothing but the cue",
        "the cue as a list",
        "a word",
        "a phrase",
        "the cue in two lines",
        "words about nothing",
    ],
)
def test_a_text_that_says_nothing_of_its_sources_is_refused(text):
    assert refused(text, WORK) is Refusal.EMPTY


@pytest.mark.parametrize("text", [CUE, f"Several things were discussed.\n{CUE}"])
def test_so_is_a_short_one_where_there_are_no_names_to_keep(text):
    assert refused(text, TALK) is Refusal.EMPTY


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        (f"The port was set to 5433.\n{CUE}", ["Set the port of staging to 5433, please. " * 3]),
        ("They greeted each other.", ["Hello!", "Hello, how are you?", "Fine, thanks."]),
        (f"All tests were run again and again until ERR-4003 was found in write_3_rows.\n{CUE}", WORK),
        (f"They planned the garden: what to plant after the frost, and where, was left open.\n{CUE}", TALK),
        ("Сначала они открыли src/export/rows_1.py и исправили getRows1, после чего тесты прошли.", WORK),
    ],
    ids=["of a request", "of a greeting", "terse", "of talk", "in another language"],
)
def test_a_short_summary_that_says_something_is_taken(text, sources):
    assert refused(text, sources) is None


@needs_data
def test_no_summary_that_a_model_wrote_of_real_talk_is_refused():
    wrong, looked_at = [], 0
    for file in sorted(DATA.glob("locomo_*.llm_summaries.json.gz")):
        name = file.name.partition(".")[0]
        sessions = defaultdict(list)
        for row in rows_of(next((DATA / "conversations").glob(f"{name}.*"))):
            sessions[str(row["meta"]["session"])].append(row["content"])
        with gzip.open(file, "rt") as written:
            summaries = json.load(written)
        for session, text in summaries.items():
            looked_at += 1
            for target in (100, 600, 5_000):
                if refused(text, sessions[session], target_tokens=target):
                    wrong.append((name, session, target, text))

    assert looked_at == 128
    assert wrong == []


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("text", [CUE, f"Several things were discussed.\n{CUE}"])
def test_an_empty_summary_is_asked_for_again_and_then_made_without_the_model(settings, text):
    conversation_id = a_conversation(*WORK, overrides={"fresh_tail_count": 2}).conversation_id

    with Vendor(saying(text)) as vendor:
        settings.LCM = asking(vendor, "chat", leaf_chunk_tokens=1_500, max_passes=1)
        CompactionEngine.from_settings().compact(conversation_id=conversation_id)

    [made] = Summary.objects.all()
    assert (made.level, made.is_degraded) == ("deterministic", True)
    assert made.quality["failures"] == ["chat normal: empty", "chat aggressive: empty"]
    assert made.token_count > 50


@pytest.mark.usefixtures("committed_db")
def test_where_it_is_better_the_second_time_that_one_is_taken(settings):
    conversation_id = a_conversation(*WORK, overrides={"fresh_tail_count": 2}).conversation_id

    with Vendor(saying(CUE), good) as vendor:
        settings.LCM = asking(vendor, "chat", leaf_chunk_tokens=1_500, max_passes=1)
        CompactionEngine.from_settings().compact(conversation_id=conversation_id)

    [made] = Summary.objects.all()
    assert (made.level, made.is_degraded) == ("aggressive", False)
    assert made.quality["failures"] == ["chat normal: empty"]
