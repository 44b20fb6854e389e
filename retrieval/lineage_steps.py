"""The steps that every walk along the lineage takes, as pieces of statements.

A recursion is guessed to go through many more summaries than it does, and a plain join would then read the links of all
conversations at each step. With an offset of 0, each step looks its few rows up.
"""

from __future__ import annotations

# Down to the sources of a summary, and up to what was made from it.
SOURCES = "LATERAL (SELECT parent_summary_id FROM summary_parents WHERE summary_id = {of}.summary_id OFFSET 0)"
DERIVED = "LATERAL (SELECT summary_id FROM summary_parents WHERE parent_summary_id = {of}.summary_id OFFSET 0)"


def above_messages(ids: str) -> str:
    """`above`: each of the messages that the placeholder stands for, with every summary that it went into."""
    return f"""
    WITH RECURSIVE above AS (
        SELECT message_id, summary_id FROM summary_messages WHERE message_id = ANY({ids})
        UNION
        SELECT above.message_id, derived.summary_id FROM above, {DERIVED.format(of="above")} AS derived
    )
"""
