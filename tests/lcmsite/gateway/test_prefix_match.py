"""Which messages of a request are new, whatever was erased and whatever the agent still sends."""

from hypothesis import given
from hypothesis import strategies as st

from conversations.content.hashing import content_hash
from lcmsite.gateway.recording.prefix_match import Erased, History, match
from lcmsite.gateway.surfaces import Surface, wire_message
from lcmsite.gateway.surfaces_digest import links_of

WORDS = st.sampled_from(["yes", "no", "go on"])


def read(texts):
    """Read questions and answers by turns."""
    rows = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    messages = [wire_message(Surface.CHAT, at, row) for at, row in enumerate(rows)]
    return messages, list(links_of(message.digest for message in messages))


def history(texts, erased_seqs, sent):
    """What the recorder looks up for a request with these links."""
    messages, links = read(texts)
    seqs = {link.key: seq for seq, link in enumerate(links, start=1)}
    return History(
        head_seq=len(texts),
        seqs={link.key: seqs[link.key] for link in sent if link.key in seqs},
        active_keys=[link.key for seq, link in enumerate(links, start=1) if seq not in erased_seqs],
        erased=[
            Erased(seq, messages[seq - 1].message.role, content_hash(text))
            for seq, text in enumerate(texts, start=1)
            if seq in erased_seqs
        ],
    )


@given(st.data())
def test_only_the_newest_message_is_new_when_the_agent_drops_its_oldest(data):
    texts = data.draw(st.lists(WORDS, min_size=4, max_size=12).filter(lambda each: len(each) % 2 == 0))
    erased_seqs = data.draw(st.sets(st.integers(1, len(texts))))
    dropped = 2 * data.draw(st.integers(1, len(texts) // 2 - 1))
    messages, links = read([*texts[dropped:], data.draw(WORDS)])
    stored = history(texts, erased_seqs, links)

    found = match(messages, links, stored)

    # The rest of a repetitive history may equal its beginning: then it is a return to that.
    if not stored.seqs:
        assert (found.seq, found.new, found.is_boundary) == (len(texts), (len(messages) - 1,), True)


@given(st.data())
def test_another_branch_has_all_that_the_agent_kept_except_what_was_erased(data):
    texts = data.draw(st.lists(WORDS, min_size=4, max_size=12).filter(lambda each: len(each) % 2 == 0))
    edited = 2 * data.draw(st.integers(1, len(texts) // 2 - 1))
    erased_seqs = data.draw(st.sets(st.integers(1, len(texts)).filter(lambda seq: seq != edited + 1)))
    messages, links = read([*texts[:edited], "Something else", *texts[edited + 1 :], "And now?"])

    found = match(messages, links, history(texts, erased_seqs, links))

    kept = [(at % 2, text) for at, text in enumerate(texts) if at > edited and at + 1 not in erased_seqs]
    new = [(at % 2, messages[at].message.content) for at in found.new]
    assert found.seq == edited
    assert new[0] == (0, "Something else") and new[-1] == (0, "And now?")
    assert sorted(new[1:-1]) == sorted(kept)
