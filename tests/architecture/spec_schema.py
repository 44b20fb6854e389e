"""The schema of the specification, word for word: what the live database is compared with."""

from __future__ import annotations

from pathlib import Path

# Ours where the specification's own would refuse large texts, find no parts of names, and lead to other conversations.
OTHER_EXPRESSIONS = {
    ("messages", "content_tsv"): "lcm_tsv_at(content, conversation_id, seq)",
    ("summaries", "content_tsv"): "lcm_tsv_at(content, conversation_id, last_seq)",
}

DDL = Path(__file__).with_suffix(".sql").read_text()
