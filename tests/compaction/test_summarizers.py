"""What holds for both summarizers that need no model, on any input whatever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from tests.compaction.summarizing import COUNTERS, a_message, a_request, any_sources, exact, said
from tests.conversations.real_data import needs_data
from tests.evaluation.summaries import answers_kept, names_kept, with_summarizer

both = pytest.mark.parametrize(
    "summarizer", [ExtractiveSummarizer(), TelegraphicSummarizer()], ids=lambda summarizer: summarizer.name
)

HOSTILE = {
    "one word of 5 MB": "a" * 5_000_000,
    "5 MB of blanks": " " * 5_000_000 + "x",
    "100,000 lines": "\n".join(f"line {n} error in part_{n}" for n in range(100_000)),
    "a million characters without a blank": "abXY09_/.-:" * 100_000,
    "Chinese without a full stop": "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(300_000)),
    "only punctuation": "!?.;,-" * 200_000,
    "emoji": "👍🏽😀" * 200_000,
    "NUL": "\0" * 1_000_000,
    "lone surrogates": "\ud800" * 100_000 + "\udfff",
    "400,000 different words": " ".join(f"w{n}" for n in range(400_000)),
    "endless quotes": '"a,' * 300_000,
    "endless paths": "/a" * 500_000,
    "endless full stops": "a. " * 500_000,
    "escape characters": "\x1b[" * 300_000,
    "a call nested too deep": "[tool_call X] " + '{"a":' * 50_000 + "1" + "}" * 50_000,
}


@pytest.mark.sampled(2)
@both
@pytest.mark.parametrize("count", COUNTERS.values(), ids=COUNTERS)
@given(sources=any_sources, target=st.integers(0, 300))
def test_a_text_is_within_its_target_storable_and_the_same_each_time(summarizer, count, sources, target):
    request = a_request(sources, target=target, count_tokens=count)

    draft = summarizer.summarize(request)

    assert count(draft.text) <= target
    draft.text.encode("utf-8")
    assert not any(ord(each) < 32 and each != "\n" or ord(each) in (0xFFFE, 0xFFFF) for each in draft.text)
    assert draft.model == summarizer.name
    assert 0 <= draft.quality <= 1
    assert 0 <= draft.left_out <= len(sources)
    assert draft == summarizer.summarize(request)


@both
@given(sources=any_sources, target=st.integers(0, 300))
def test_a_text_is_shorter_than_its_sources_and_there_is_one_where_there_is_room(summarizer, sources, target):
    cost = sum(exact(source.text) for source in sources)

    text = summarizer.summarize(a_request(sources, target=target)).text

    assert cost < 2 or exact(text) < cost
    assert target < 40 or bool(text.strip()) == bool(sources)


@pytest.mark.thorough
def test_an_answer_does_not_depend_on_the_order_of_hashes():
    program = (
        "from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer as E\n"
        "from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer as T\n"
        "from tests.compaction.summarizing import a_request, said\n"
        "words = [f'topic{n} value_{n % 7} src/part{n}.py is ready for {n % 5}.' for n in range(60)]\n"
        "for maker in (E(), T()):\n"
        "    print(maker.summarize(a_request(said(*words), target=120, count_tokens=len)).text)\n"
    )

    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(answers) == 1


@pytest.mark.thorough
@both
@pytest.mark.parametrize(
    ("role", "target"),
    [
        ("user", 1),
        ("tool", 600),
        pytest.param("user", 600, marks=pytest.mark.slow),
        pytest.param("tool", 1, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.timeout(30)
def test_hostile_input_is_summarized_like_any_other(summarizer, text, role, target):
    draft = summarizer.summarize(a_request([a_message(text, role=role)], target=target))

    assert 0 < exact(draft.text) <= target


@both
def test_sources_without_a_word_are_named_as_such(summarizer):
    draft = summarizer.summarize(a_request(said("👍" * 60, "--- " * 60), target=600))

    assert draft.text == "Expand for details about: 2 of 2 messages."
    assert draft.left_out == 2


@both
def test_with_room_for_next_to_nothing_there_is_a_mark_and_with_none_the_empty_text(summarizer):
    sources = said("Reconciliation of ledgers happens nightly. " * 20)

    def counting(text: str) -> int:
        return 3 * len(text)

    assert summarizer.summarize(a_request(sources, target=3, count_tokens=counting)).text != ""
    assert summarizer.summarize(a_request(sources, target=2, count_tokens=counting)).text == ""


# What they keep of real conversations. The goals are those of the evaluation (`make eval`).


@needs_data
@pytest.mark.thorough
@pytest.mark.parametrize(("share", "goal"), [(0.2, 0.72), (0.3, 0.85)])
def test_readable_sentences_keep_the_words_of_later_answers(share, goal):
    assert answers_kept(with_summarizer(ExtractiveSummarizer()), share=share) >= goal


@needs_data
@pytest.mark.thorough
@pytest.mark.parametrize(("share", "goal"), [(0.2, 0.89), (0.3, 0.96)])
def test_telegrams_keep_nearly_all_words_of_later_answers(share, goal):
    assert answers_kept(with_summarizer(TelegraphicSummarizer()), share=share) >= goal


@needs_data
@pytest.mark.thorough
def test_names_that_an_agent_needs_again_are_kept():
    assert names_kept(with_summarizer(ExtractiveSummarizer())) >= 0.84
