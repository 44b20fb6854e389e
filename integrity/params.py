"""What a caller may say to the integrity checker."""

from __future__ import annotations

from conversations.params import ConversationId, Params


class CheckParams(Params):
    conversation_id = ConversationId(required=False, help_text="The conversation; all of the workspace without one.")
