"""What the built-in summaries keep of real conversations. The goals are those of the evaluation (`make eval`)."""

from __future__ import annotations

import pytest

from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from tests.conversations.real_data import needs_data
from tests.evaluation.summaries import answers_kept, names_kept, with_summarizer

pytestmark = needs_data


@pytest.mark.thorough
@pytest.mark.parametrize(("share", "goal"), [(0.2, 0.72), (0.3, 0.85)])
def test_readable_sentences_keep_the_words_of_later_answers(share, goal):
    assert answers_kept(with_summarizer(ExtractiveSummarizer()), share=share) >= goal


@pytest.mark.thorough
@pytest.mark.parametrize(("share", "goal"), [(0.2, 0.89), (0.3, 0.96)])
def test_telegrams_keep_nearly_all_words_of_later_answers(share, goal):
    assert answers_kept(with_summarizer(TelegraphicSummarizer()), share=share) >= goal


@pytest.mark.thorough
def test_names_that_an_agent_needs_again_are_kept():
    assert names_kept(with_summarizer(ExtractiveSummarizer())) >= 0.84
